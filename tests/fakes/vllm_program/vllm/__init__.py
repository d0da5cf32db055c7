"""A program that behaves as vLLM does from outside. Put before everything else on the path of its Python."""
