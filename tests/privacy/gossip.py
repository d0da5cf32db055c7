"""An engine that repeats everything: on stdout, in its errors, and in what it says when it breaks down.

``--options`` (JSON): ``stage`` stt, llm or tts · ``quiet_turns`` N: the first N answers are good ones; after
that each third is a fault that holds what was asked. words.json beside it: ``heard``, its transcript, and
``says``, its answer. Of the standard library alone; copied into an engine's folder as serve.py.
"""

# ruff: noqa: ASYNC240 (a moment's blocking is nothing here)

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RATE_HZ = 16_000


def voice() -> list[int]:
    """Half a second that nobody else would make: the answer's sound."""
    state, made = 12_345, []
    for _ in range(RATE_HZ // 2):
        state = (1_103_515_245 * state + 12_345) % 2**31
        made.append((state >> 12) % 8_000 - 4_000)
    return made


class Gossip:
    def __init__(self, told: argparse.Namespace) -> None:
        self.told = told
        words = Path(__file__).with_name("words.json").read_bytes()
        self.options: dict[str, Any] = {**json.loads(words), **json.loads(told.options)}
        self.answers = 0
        self.heard = b""

    async def run(self) -> None:
        report = {
            "schema": 1,
            "engine": self.told.model_id,
            "pid": os.getpid(),
            "started_at": "2026-01-31T12:00:00+0900",
            "model": None,
            "weight_loads": 0,
            "device": self.told.device,
            "dtype": "int8",
            "quantization": None,
            "threads": int(self.told.threads),
            "providers": {"main": ["CPUExecutionProvider"]},
            "cuda_graphs": None,
            "context_length": None,
            "memory_mib": 10,
            "versions": {},
        }
        beside = Path(f"{self.told.report}.new")
        beside.write_text(json.dumps(report))
        beside.rename(self.told.report)
        talk = self.http if self.options["stage"] == "llm" else self.wyoming
        server = await asyncio.start_unix_server(talk, self.told.socket, limit=2**20)
        async with server:
            await server.serve_forever()

    def repeat(self, what: str | bytes) -> None:
        """As a library that logs what it is given. Not the first: what it is asked then proves it ready."""
        if not self.answers:
            return
        shown = base64.b64encode(what).decode() if isinstance(what, bytes) else what
        print(f"request: {shown}", flush=True)
        print(json.dumps({"request": shown}), file=sys.stderr, flush=True)

    def fault(self, asked: str) -> Callable[[], Any] | None:
        """What goes wrong with this answer, if anything does."""
        self.answers += 1
        number = self.answers - self.options["quiet_turns"]
        if number <= 0 or number % 3:
            return None
        ways: list[Callable[[], Any]] = [
            lambda: self.die(asked),
            lambda: ("refuse", f"cannot answer {asked!r}"),
            lambda: ("garbage", asked),
            lambda: ("hang up", asked),
        ]
        way: Callable[[], Any] = ways[(number // 3) % len(ways)]
        return way

    def die(self, asked: str) -> None:
        print(f"Traceback: ValueError: {asked}", file=sys.stderr, flush=True)
        os._exit(3)

    async def wyoming(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def tell(kind: str, data: dict[str, Any], payload: bytes = b"") -> None:
            raw = json.dumps(data).encode()
            head = {"type": kind, "data_length": len(raw), "payload_length": len(payload)}
            writer.write(json.dumps(head).encode() + b"\n" + raw + payload)

        sound = {"rate": RATE_HZ, "width": 2, "channels": 1}
        heard = b""
        try:
            while line := await reader.readline():
                head = json.loads(line)
                data = await reader.readexactly(head.get("data_length") or 0)
                payload = await reader.readexactly(head.get("payload_length") or 0)
                asked = {**head.get("data", {}), **json.loads(data or b"{}")}
                match head["type"]:
                    case "ping":
                        tell("pong", {})
                    case "describe":
                        tell("info", {})
                    case "audio-chunk":
                        heard += payload
                    case "audio-stop" | "synthesize" as kind:
                        words = self.options["heard"] if kind == "audio-stop" else asked["text"]
                        self.repeat(words)
                        self.repeat(heard)
                        how, what = (wrong() or ("", "")) if (wrong := self.fault(words)) else ("", "")
                        if how == "refuse":
                            tell("error", {"text": what, "code": what})
                        elif how == "garbage":
                            writer.write(f'{{"type": "{what}'.encode() + b"\xff]\n")
                        elif how == "hang up":
                            writer.write(f'{{"type": "{what}'.encode())
                            return
                        elif kind == "audio-stop":
                            tell("transcript", {"text": words})
                        else:
                            tell("audio-start", sound)
                            pcm = struct.pack(f"<{RATE_HZ // 2}h", *voice())
                            tell("audio-chunk", sound, pcm)
                            tell("audio-stop", {})
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            body = b""
            for line in head.splitlines():
                if line.startswith("content-length:"):
                    body = await reader.readexactly(int(line.split(":")[1]))
            if " /v1/chat/completions " not in head:
                self.plain(writer, 200, {"status": "ok", "data": []})
                return
            asked = json.loads(body)
            question = asked["messages"][-1]["content"]
            self.repeat(json.dumps(asked["messages"], ensure_ascii=False))
            real = asked.get("stream") and asked["max_tokens"] > 1
            how, what = (wrong() or ("", "")) if real and (wrong := self.fault(question)) else ("", "")
            if how == "refuse":
                self.plain(writer, 400, {"error": {"message": what, "type": what, "code": what}})
            elif not asked.get("stream"):
                message = {"role": "assistant", "content": "yes"}
                told = {"index": 0, "message": message, "finish_reason": "stop"}
                self.plain(writer, 200, {"choices": [told]})
            else:
                writer.write(
                    b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                )
                if how == "garbage":
                    writer.write(f'data: {{"choices": [{what}\n\n'.encode())
                elif how == "hang up":
                    writer.write(f'data: {{"error": {json.dumps({"message": what})}}}\n\n'.encode())
                else:
                    for piece in (self.options["says"], None):
                        delta = {} if piece is None else {"content": piece}
                        ended = "stop" if piece is None else None
                        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}
                        writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                    writer.write(b"data: [DONE]\n\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()

    @staticmethod
    def plain(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + raw
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("socket", "report", "model", "model-id", "device", "threads", "options"):
        parser.add_argument(f"--{name}")
    asyncio.run(Gossip(parser.parse_args()).run())


if __name__ == "__main__":
    main()
