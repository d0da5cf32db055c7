"""What turns a model into an engine: launch arguments, report, Wyoming server, cancellation.

Copied into every engine's environment, so it needs nothing but the standard library and ``wyoming``
(``launch`` and ``report`` not even that). See docs/engines.md for the contract it keeps.
"""
