"""Journals, claims, leases, mail, alarms and notices on memory, SQLite or Redis."""
