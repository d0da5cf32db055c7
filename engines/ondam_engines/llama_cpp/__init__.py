"""The ``llama_cpp`` engine: llama-cpp-python and its server, compiled for this machine."""
