"""The icon in the panel: a process of its own; it knows the daemon through ``ondam.control.client`` alone."""
