"""One turn from microphone to speaker: capture, detect, recognize, respond, speak, and the gate."""
