"""Bytes that a broken or malicious peer may send: valid traffic, mutated, and field case B28's whole list.

Everything comes of a seed: the same seed, the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

METHODS = ("PUT", "DELETE", "OPTIONS", "get", "G\0T", "PRI", "X" * 300)

NUMBERS = (0, 1, -1, 2, 255, 4_096, 65_535, 65_536, 2**20, 2**31, 2**32 - 1, 2**63, -(2**63), 10**30)

ODD: tuple[object, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, "", "x", " ", "\ud800", "é" * 9, [], [1], {}, {"type": 1},
    [[[[[[]]]]]], {"a": {"a": {"a": {}}}}, "0", "NaN", "\u0000", "가나다" * 30,
)  # fmt: skip

RAW = (
    b"", b"\n", b"\0", b"\r\n\r\n", b"[]\n", b"null\n", b'{"type": 1}\n', b'{"type": NaN}\n', b"{\n",
    b'{"type": "ping", "data": {"text": Infinity}}\n', b"\xff\xfe\xfd\n", b'"\\ud800"\n', b"\xef\xbb\xbf{}\n",
    b"[" * 50_000 + b"\n", b'{"a":' * 20_000 + b"\n", b"x" * 70_000, b"x" * 70_000 + b"\n",
    b'{"type": "ping", "data": {"text": "' + b"x" * 70_000 + b'"}}\n', b"9" * 6_000 + b"\n",
    b'{"type": "ping", "data_length": 4294967295}\n', b'{"type": "ping", "data_length": -1}\n{}',
    b'{"type": "audio-chunk", "payload_length": 4294967295}\n', b'{"type": "transcript", "data_length": 0}\n',
)  # fmt: skip


class Hostile:
    """A source of bytes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def http(self) -> bytes:
        """A request to the control socket."""
        chance = self.random
        usual = chance.random() < 0.85
        method = chance.choice(("GET", "POST", "POST") if usual else METHODS)
        path = chance.choice(
            ("/api/status", "/api/turns", "/api/report", "/api/ask", "/api/say", "/api/listen", "/api/mode",
             "/api/press", "/api/stop", "/api/wav-turn", "/api/transcribe", "/api/events",
             "/api/engines/x/log", "/api/switch", "/metrics", "/v1/chat/completions", "/v1/models",
             "/v1/audio/speech", "/v1/audio/transcriptions", "/api/nothing", "/../etc/passwd", "//", "*",
             "/" + "a" * 9_000)
        )  # fmt: skip
        query = chance.choice(
            ("", "?limit=" + self.word(), "?language=" + self.word(), "?a=%00&b=%ff%fe&&=", "?")
        )
        body = self.body()
        length: object = len(body)
        if chance.random() < 0.2:
            length = chance.choice((*NUMBERS, "x", "", "1, 1", "+5", "0x10", " 3"))
        headers = [
            "Host: " + chance.choice(("ondam", "ondam", "ondam", "", "a" * 3_000, "evil.example", "[::1")),
            *(f"X-{n}: {self.word()}" for n in range(chance.choice((0, 0, 0, 0, 1, 40, 400)))),
        ]
        if chance.random() < 0.8:
            headers.append(f"Content-Length: {length}")
        if chance.random() < 0.15:
            headers.append("Transfer-Encoding: chunked")
            body = b"".join(
                chance.choice((b"%x" % len(p), b"FFFFFFFF0", b"zz", b"-1")) + b"\r\n" + p + b"\r\n"
                for p in (body, b"")
            )
        if chance.random() < 0.1:
            headers += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
            headers.append("Sec-WebSocket-Key: " + chance.choice(("dGhlIHNhbXBsZSBub25jZQ==", "x", "")))
            body = chance.randbytes(chance.randrange(200))
        version = (
            "HTTP/1.1" if chance.random() < 0.9 else chance.choice(("HTTP/1.0", "HTTP/2.0", "HTTP/9", ""))
        )
        ending = "\r\n" if chance.random() < 0.95 else chance.choice(("\n", "\r"))
        head = ending.join([f"{method} {path}{query} {version}", *headers, "", ""]).encode(
            "utf-8", "surrogatepass"
        )
        return self.mutated(head + body)

    def body(self) -> bytes:
        """Of a request: JSON that is nearly right, or sound that is not."""
        chance = self.random
        match chance.randrange(4):
            case 0:
                return chance.choice(RAW)
            case 1:
                return b"RIFF" + chance.randbytes(chance.randrange(600))
        valid = chance.choice(
            ({"text": "hello", "speak": False}, {"text": "hello", "language": "en"}, {"timeout_s": 0.01},
             {"mode": "open"}, {"wanted": {"llm": "x"}}, {"model": "x", "input": "hi", "voice": "x"},
             {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1})
        )  # fmt: skip
        return self.json({key: self.value(value) for key, value in valid.items()})

    def frames(self, *kinds: str) -> bytes:
        """Wyoming frames of ``kinds`` and others, some broken."""
        chance = self.random
        return self.mutated(b"".join(self.frame(kinds) for _ in range(chance.choice((1, 1, 2, 3, 12)))))

    def frame(self, kinds: tuple[str, ...]) -> bytes:
        """One of them."""
        chance = self.random
        if chance.random() < 0.25:
            return chance.choice(RAW)
        kind = chance.choice((*kinds, *kinds, "ping", "describe", "nothing", "error", ""))
        data = {
            "text": self.value("hello"), "rate": self.value(16_000), "width": self.value(2),
            "channels": self.value(1), "language": self.value("en"), "code": self.value("failed"),
            "context": self.value({"ondam": {"engine_ms": self.value(1.0)}}),
            "voice": self.value({"name": "x"}), "transcript_names": self.value(["a"]),
        }  # fmt: skip
        payload = chance.randbytes(chance.choice((0, 1, 2, 3, 320, 5_000))) if chance.random() < 0.6 else b""
        raw = self.json(data)
        head: dict[str, object] = {"type": self.value(kind), "payload_length": len(payload)}
        if chance.random() < 0.5:
            head["data"] = data
            raw = b""
        head["data_length"] = len(raw)
        for key in ("data_length", "payload_length"):
            if chance.random() < 0.05:
                head[key] = chance.choice((*NUMBERS, *ODD))
        return self.json(head) + b"\n" + raw + payload

    def sse(self) -> bytes:
        """An HTTP answer of a language engine: a stream, an error, or neither."""
        chance = self.random
        status = chance.choice(
            ("200 OK", "200 OK", "200 OK", "400 Bad", "500 No", "503 Wait", "302 Go", "99 x")
        )
        kinds = ("text/event-stream", "application/json", "text/html", "", "\xff")
        kind = kinds[0] if chance.random() < 0.85 else chance.choice(kinds)
        events = []
        for _ in range(chance.choice((0, 1, 2, 5, 30))):
            delta = {"content": self.value("hello "), "reasoning_content": self.value(None)}
            if chance.random() < 0.1:
                delta["tool_calls"] = self.value([{"function": {"name": self.value("f")}}])
            part: dict[str, object] = {
                "choices": self.value(
                    [{"index": 0, "delta": self.value(delta), "finish_reason": self.value(None)}]
                ),
                "usage": self.value({"prompt_tokens": self.value(3)}),
                "timings": self.value({"prompt_ms": self.value(1.5), "cache_n": self.value(1)}),
            }
            if chance.random() < 0.1:
                part = {"error": self.value({"message": self.value("no"), "type": self.value("x")})}
            line = chance.choice((b"data: ", b"data:", b"data", b": ", b"event: x\ndata: ", b"id: 1\ndata: "))
            events.append(line + (chance.choice(RAW) if chance.random() < 0.1 else self.json(part)))
        events.append(chance.choice((b"data: [DONE]", b"data: [DONE", b"", b"data: {}")))
        gap = chance.choice((b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n"))
        body = gap.join(events) + chance.choice((gap, b""))
        head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close"]
        match chance.randrange(16):
            case 0:
                head.append(f"Content-Length: {chance.choice((len(body), len(body) + 9, *NUMBERS))}")
            case 1:
                head.append("Transfer-Encoding: chunked")
                body = b"%x\r\n" % len(body) + body + chance.choice((b"\r\n0\r\n\r\n", b"\r\nzz\r\n", b""))
            case 2:
                head.append("Content-Encoding: " + chance.choice(("gzip", "br", "nonsense")))
            case 3:
                head += [f"X-{n}: y" for n in range(300)]
        return self.mutated("\r\n".join([*head, "", ""]).encode("latin-1") + body)

    def value(self, usual: object) -> object:
        """``usual``, or now and then something else."""
        return usual if self.random.random() < 0.98 else self.random.choice((*ODD, *NUMBERS))

    def word(self) -> str:
        """For a header or a query."""
        return self.random.choice(
            ("1", "-1", "x", "", "ko", "en", "9" * 400, "a b", "%0d%0a", "é", "\t", "1e9")
        )

    def json(self, value: object) -> bytes:
        """As JSON, with NaN and lone surrogates where they are."""
        if self.random.random() < 0.02:
            return json.dumps(value).replace("1", "NaN").encode()
        if self.random.random() < 0.02:
            return b"[" * self.random.choice((10, 2_000, 60_000)) + json.dumps(value).encode()
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")

    def mutated(self, data: bytes) -> bytes:
        """Half of the time as it is, else bent, cut, doubled or spliced."""
        chance = self.random
        ways: tuple[Callable[[bytearray], None], ...] = (
            self.flip, self.flip, self.cut, self.double, self.insert, self.digits
        )  # fmt: skip
        bent = bytearray(data)
        while bent and chance.random() < 0.25:
            chance.choice(ways)(bent)
        return bytes(bent)

    def flip(self, data: bytearray) -> None:
        """Some bytes become others."""
        for _ in range(self.random.choice((1, 1, 3, 20))):
            data[self.random.randrange(len(data))] = self.random.randrange(256)

    def cut(self, data: bytearray) -> None:
        """The end is missing, or the beginning."""
        at = self.random.randrange(len(data))
        del data[slice(at, None) if self.random.random() < 0.8 else slice(0, at)]
        if not data:
            data += b"\n"

    def double(self, data: bytearray) -> None:
        """A piece comes twice."""
        begin = self.random.randrange(len(data))
        piece = data[begin : begin + self.random.choice((1, 10, 300))]
        data[begin:begin] = piece * self.random.choice((1, 2, 50))

    def insert(self, data: bytearray) -> None:
        """Something else stands in it."""
        at = self.random.randrange(len(data))
        data[at:at] = self.random.choice((*RAW[:13], b"\r\n", b"\xc3", b"\xed\xa0\x80", b'"', b"}", b"\\u"))

    def digits(self, data: bytearray) -> None:
        """A number becomes another."""
        places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
        if places:
            at = self.random.choice(places)
            data[at : at + 1] = str(self.random.choice(NUMBERS)).encode()
