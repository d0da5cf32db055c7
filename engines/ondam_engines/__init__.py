"""Model servers, each a folder with a manifest, a lock and its own environment. Never imports ``ondam``."""
