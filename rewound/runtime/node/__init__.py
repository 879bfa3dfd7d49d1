"""A node: one runtime in one process, its lease, and how it finds runs that need an owner."""
