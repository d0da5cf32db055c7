"""What is remembered of every turn: when things happened, what they cost, on which engines."""
