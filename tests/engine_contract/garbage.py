"""What is no request, by the protocol it is none of."""

from __future__ import annotations

import json

WYOMING = {
    "nothing": b"",
    "half a line": b'{"type": "synth',
    "a list": b"[]\n",
    "null": b"null\n",
    "a type that is no text": b'{"type": 1}\n',
    "not a number": b'{"type": "ping", "data": {"a": NaN}}\n',
    "bytes that are no text": b'{"type": "\xff\xfe"}\n',
    "a length of 4 GiB": b'{"type": "audio-chunk", "payload_length": 4294967295}\n' + b"x" * 1000,
    "a length below zero": b'{"type": "audio-chunk", "payload_length": -1}\n',
    "a length in words": b'{"type": "ping", "data_length": "four"}\n',
    "half a payload": b'{"type": "audio-chunk", "payload_length": 100}\nxx',
    "deep nesting": b"[" * 100_000 + b"\n",
    "no samples": b'{"type": "audio-stop"}\n',
    "an odd format": b'{"type":"audio-start","data":{"rate":-1,"width":"x","channels":[]}}\n',
    "text that is none": b'{"type": "synthesize", "data": {"text": ["a"]}}\n',
    "a voice that is none": b'{"type": "synthesize", "data": {"text": "a", "voice": 7}}\n',
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHAT = POST + b"Content-Length: %d\r\n\r\n%s"
HELLO = [{"role": "user", "content": "Hello"}]


def chat(body: object) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CHAT % (len(text), text)


OPENAI = {
    "nothing": b"",
    "half a head": b"POST /v1/chat/completions HT",
    "another protocol": b'{"type": "ping"}\n\n\n',
    "bytes": bytes(range(256)) * 16,
    "half a body": (CHAT % (100, b'{"mess')),
    "no JSON": chat(b"{"),
    "a list": chat([]),
    "null": chat(b"null"),
    "no messages": chat({}),
    "messages that are none": chat({"messages": 7}),
    "a message that is none": chat({"messages": [1]}),
    "a role that is none": chat({"messages": [{"role": 1, "content": {}}]}),
    "tokens below zero": chat({"messages": HELLO, "max_tokens": -5, "stream": True}),
    "tokens in words": chat({"messages": HELLO, "max_tokens": "few"}),
    "not a number": chat({"messages": HELLO, "temperature": float("nan"), "max_tokens": 1}),
    "a length of 4 GiB": POST + b"Content-Length: 4294967295\r\n\r\nx",
    "a length below zero": POST + b"Content-Length: -1\r\n\r\n",
    "deep nesting": chat(b"[" * 10_000),
    "a route that is none": b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
}


GARBAGE = {"wyoming": WYOMING, "openai": OPENAI}
