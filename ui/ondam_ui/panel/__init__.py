"""The panel: one page for looking closer, served on 127.0.0.1 by a process of its own.

A turn, its figures, the engines, the latency budget and what may be changed while the daemon runs. Outside it
speaks HTTP to a browser on this machine, inside the control API; the daemon opens no TCP port. docs/panel.md.
"""
