"""Bringing Ondam onto a machine."""
