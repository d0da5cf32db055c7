"""Weights: which exist, where they are, whether they are whole."""
