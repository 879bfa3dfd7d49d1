"""Sagas: what a user declares, the engine that decides, the owners that act."""
