"""Text and speech, pure: what of an answer is spoken, in which pieces, and how it is read."""
