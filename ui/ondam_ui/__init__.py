"""The tray and the panel: processes of their own that see the daemon through its control socket."""
