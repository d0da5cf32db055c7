"""What the assistant is made of: room and sound, who does each stage, what is wrong, what is remembered."""
