"""Engines as processes: what they are, their environments, how they start, live, die and come back."""
