"""Ondam: a voice assistant that lives entirely on the user's own machine."""

__version__ = "0.1.0"
