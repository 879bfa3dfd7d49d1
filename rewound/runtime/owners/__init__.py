"""Owners: the actors that feed the engine, commit its records, then act."""
