"""How the daemon asks engines: Wyoming for speech, OpenAI chat completions for language.

A client object is cheap, holds no connection and keeps no pool: every request opens a connection of its own
and closes it, because closing is how a request is cancelled, and because llama.cpp's server fails on the
fourth streamed answer over one kept-alive connection.
"""
