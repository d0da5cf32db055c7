"""Who speaks when. Pure: ``step(state, event) -> (state, actions)``; no clock, no I/O, no threads."""
