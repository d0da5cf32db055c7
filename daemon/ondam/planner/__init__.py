"""Which engines and models this machine gets."""
