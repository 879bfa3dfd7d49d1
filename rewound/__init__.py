"""Durable sagas as actors: work inside an async service that finishes or is taken back."""

__version__ = "0.1.0"
