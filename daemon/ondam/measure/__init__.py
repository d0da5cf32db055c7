"""Numbers: how a turn's time is drawn and compared."""
