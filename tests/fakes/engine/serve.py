"""An engine of the standard library alone that answers every protocol, and misbehaves as its options say.

Options (all off by default): ``stage`` stt, llm or tts · ``load_until`` PATH: loads until the file exists ·
``mute``: never listens · ``deaf``: listens, never answers · ``crash`` N: ends with status N instead of
listening · ``exit_after`` N (and ``exit_status``): ends after N answers · ``hang_when`` PATH: answers
nothing, pings included, once the file exists · ``report`` {…}: laid over a truthful report · ``no_report`` ·
``reports`` [{…}, …] and ``lives`` PATH: one for each life, counted in that file; the last for all after ·
``onnx`` PATH (``kit`` FOLDER: where our kit is): opens that network as engines on onnxruntime do, by the
``provider`` that was asked for, and reports what it got ·
``calls`` PATH (``abstract`` NAME): tries every way out at its start, and writes what became of it there ·
``ignore_sigterm`` · ``grandchild``: starts a child that ignores SIGTERM; ``clean_grandchild``: one that wiped
our marks off · ``flood`` BYTES: says that much first · ``leak_mib``: keeps that much more with each answer ·
``thinks`` "tag" or "field": the language engine reasons aloud · ``refuse``: answers with an error ·
``words`` and ``says``: what it hears and what it answers, else its process id · ``slow_s``: waits so long
before each answer · ``exit_now`` N: ends with status N in the middle of the next answer · ``lie``
"garbage" (no frame, no JSON), "half" (ends in the middle of a frame) or "nothing" (an empty answer).

``mood`` PATH: JSON that is laid over these options for as long as the file is there; each request looks.
"""

# ruff: noqa: ASYNC220, ASYNC240 (it misbehaves; blocking a moment is the least of it)

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RATE_HZ = 16_000
HALF_A_SECOND = b"\x10\x00" * (RATE_HZ // 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("socket", "report", "model", "model-id", "device", "threads", "options"):
        parser.add_argument(f"--{name}")
    told = parser.parse_args()
    asyncio.run(Engine(told, json.loads(told.options)).run())


class Engine:
    def __init__(self, told: argparse.Namespace, options: dict[str, Any]) -> None:
        self.told = told
        self.given = options
        self.answers = 0
        self.leaked: list[bytes] = []

    @property
    def options(self) -> dict[str, Any]:
        """What it is told to do at this moment."""
        try:
            return {**self.given, **json.loads(Path(self.given.get("mood") or "/nowhere").read_bytes())}
        except (OSError, ValueError):
            return self.given  # none, or half written

    async def run(self) -> None:
        options = self.options
        if options.get("ignore_sigterm"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = [
            sys.executable,
            "-c",
            "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
        ]
        if options.get("grandchild"):
            subprocess.Popen(child)
        if options.get("clean_grandchild"):
            subprocess.Popen(child, env={})
        if flood := options.get("flood"):
            sys.stdout.write("x" * flood + "\n")
            sys.stdout.flush()
        if (status := options.get("crash")) is not None:
            sys.exit(status)
        if into := options.get("calls"):
            # Beside this file: found where it is run as a script, and nowhere else.
            from outward import call_out  # type: ignore[import-not-found]

            call_out(Path(into), options.get("abstract", "nobody"))
        while (path := options.get("load_until")) and not Path(path).exists():
            await asyncio.sleep(0.01)
        if not options.get("no_report"):
            self.write_report()
        if options.get("mute"):
            await asyncio.sleep(600)
        talk = self.http if options["stage"] == "llm" else self.wyoming
        server = await asyncio.start_unix_server(talk, self.told.socket, limit=2**20)
        async with server:
            await server.serve_forever()

    def write_report(self) -> None:
        told = self.told
        report = {
            "schema": 1,
            "engine": told.model_id,
            "pid": os.getpid(),
            "started_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "model": {"id": told.model_id, "path": told.model, "sha256": "0" * 64} if told.model else None,
            "weight_loads": 1 if told.model else 0,
            "device": told.device,
            "dtype": "int8",
            "quantization": None,
            "threads": int(told.threads),
            "providers": {"main": ["CPUExecutionProvider"]},
            "cuda_graphs": None,
            "context_length": None,
            "memory_mib": 10,
            "versions": {},
            **self.options.get("report", {}),
            **self.report_of_this_life(),
            **self.report_of_a_session(),
        }
        beside = Path(f"{told.report}.new")
        beside.write_text(json.dumps(report))
        beside.rename(told.report)

    def report_of_this_life(self) -> dict[str, Any]:
        reports: list[dict[str, Any]] = self.options.get("reports", [])
        if not reports:
            return {}
        lives = Path(self.options["lives"])
        life = int(lives.read_text()) if lives.exists() else 0
        lives.write_text(str(life + 1))
        return reports[min(life, len(reports) - 1)]

    def report_of_a_session(self) -> dict[str, Any]:
        if not (network := self.options.get("onnx")):
            return {}
        sys.path.insert(0, self.options["kit"])
        from ondam_engines.kit.onnx_sessions import open_session

        provider = self.options.get("provider", "cuda")
        device = self.told.device if self.told.device == "cpu" else f"{provider}:0"
        opened = open_session(Path(network), device=device, threads=1, fall_back=True)
        return {
            "device": opened.device,
            "providers": {"main": opened.providers},
            "nodes": {"main": opened.nodes},
            "why": {"main": opened.instead} if opened.instead else {},
        }

    async def wyoming(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                head = json.loads(line)
                await reader.readexactly(head.get("data_length") or 0)
                await reader.readexactly(head.get("payload_length") or 0)
                await self.stuck()
                if head["type"] in {"audio-stop", "synthesize"} and await self.misbehaves(writer):
                    return
                for event, payload in self.spoken(head["type"]):
                    tell(writer, event, payload)
                await writer.drain()
                if head["type"] in {"audio-stop", "synthesize"}:
                    self.answered()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, as clients do
        finally:
            writer.close()

    def spoken(self, asked: str) -> list[tuple[dict[str, Any], bytes]]:
        sound = {"rate": RATE_HZ, "width": 2, "channels": 1}
        if self.options.get("refuse") and asked in {"audio-stop", "synthesize"}:
            return [({"type": "error", "data": {"text": "no", "code": "failed"}}, b"")]
        match asked:
            case "ping":
                return [({"type": "pong", "data": {}}, b"")]
            case "describe":
                return [({"type": "info", "data": {}}, b"")]
            case "audio-stop":
                words = self.options.get("words") or str(os.getpid())
                return [({"type": "transcript", "data": {"text": words}}, b"")]
            case "synthesize":
                return [
                    ({"type": "audio-start", "data": sound}, b""),
                    ({"type": "audio-chunk", "data": sound}, HALF_A_SECOND),
                    ({"type": "audio-stop", "data": {}}, b""),
                ]
        return []

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            sent = b""
            for line in head.splitlines():
                if line.startswith("content-length:"):
                    sent = await reader.readexactly(int(line.split(":")[1]))
            await self.stuck()
            asked = " /v1/chat/completions " in head
            if asked and await self.misbehaves(writer):
                return
            if asked and not self.options.get("refuse") and json.loads(sent).get("stream"):
                await self.streamed(writer)
                return
            status, body = self.said() if asked else (200, {"status": "ok", "data": []})
            raw = json.dumps(body).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + raw
            )
            await writer.drain()
            if asked:
                self.answered()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, as clients do
        finally:
            writer.close()

    async def streamed(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        pieces = [
            {"content": f"{word} "} for word in (self.options.get("says") or str(os.getpid())).split(" ")
        ]
        match self.options.get("thinks"):
            case "tag":
                pieces.insert(0, {"content": "<think>secret</think>"})
            case "field":
                pieces.insert(0, {"reasoning_content": "secret"})
        for piece in pieces:
            chunk = {"choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
            writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await writer.drain()
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        writer.write(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        await writer.drain()
        self.answered()

    async def misbehaves(self, writer: asyncio.StreamWriter) -> bool:
        """Slow, or gone, or no answer at all: then True, and the connection is over."""
        options = self.options
        await asyncio.sleep(options.get("slow_s", 0))
        if (status := options.get("exit_now")) is not None:
            os._exit(status)
        lie = options.get("lie")
        http = options["stage"] == "llm"
        if http and lie:
            writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        if lie == "garbage":
            writer.write(b"data: \xff{]\n\n" if http else b"\x00\xff\xfe{not a frame\n" * 100)
        elif lie == "half":
            frame = b'{"type": "transcript", "data_length": 90}\n{"te'
            writer.write(b'data: {"choices": [{"ind' if http else frame)
        elif lie == "nothing" and http:
            writer.write(b"data: [DONE]\n\n")
        elif lie == "nothing":
            tell(writer, {"type": "audio-stop", "data": {}}, b"")
        await writer.drain()
        return bool(lie)

    def said(self) -> tuple[int, dict[str, Any]]:
        if self.options.get("refuse"):
            return 500, {"error": {"message": "no"}}
        message: dict[str, Any] = {"role": "assistant", "content": str(os.getpid())}
        match self.options.get("thinks"):
            case "tag":
                message["content"] = "<think>secret</think>hello"
            case "field":
                message |= {"content": None, "reasoning_content": "secret"}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    async def stuck(self) -> None:
        while self.options.get("deaf") or ((path := self.options.get("hang_when")) and Path(path).exists()):
            await asyncio.sleep(0.05)

    def answered(self) -> None:
        self.answers += 1
        self.leaked.append(b"\1" * (self.options.get("leak_mib", 0) << 20))
        if self.answers == self.options.get("exit_after"):
            asyncio.get_running_loop().call_later(0.02, os._exit, self.options.get("exit_status", 0))


def tell(writer: asyncio.StreamWriter, event: dict[str, Any], payload: bytes) -> None:
    data = json.dumps(event["data"]).encode()
    head = {"type": event["type"], "data_length": len(data), "payload_length": len(payload)}
    writer.write(json.dumps(head).encode() + b"\n" + data + payload)


if __name__ == "__main__":
    main()
