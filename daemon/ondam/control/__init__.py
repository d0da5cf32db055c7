"""The door into the running daemon: HTTP and WebSocket on a Unix socket. See docs/control-api.md."""
