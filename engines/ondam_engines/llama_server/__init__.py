"""The ``llama_server`` engine: llama.cpp's own server, prebuilt."""
