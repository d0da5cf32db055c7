"""``--prompt FILE``: a system prompt as production sends it, with its tools.

Tools go along as OpenAI's field ``tools`` where the server makes them a part of the prompt, which is up to
the model's chat template. Where the field would be left out in silence, they stand in the system prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ondam.errors import ConfigError
from ondam.messages import Phrase
from ondam.tools import BrokenTools, Tool, tools_of
from ondam.types import Language

LONGEST = 100_000
"""Bytes: some 25,000 tokens. The daemon is given it as one argument, and Linux allows those 131,072."""


ToolsSent: TypeAlias = Literal["field", "text"]
"""As the request's field ``tools``, or written into the system prompt."""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What is put before every question."""

    name: str
    system: str
    tools: tuple[Tool, ...]
    sha256: str
    """Of the file."""

    @property
    def text(self) -> str:
        """With the tools' definitions, as chat templates write them."""
        return "\n\n".join(part for part in (self.system, _listed(self.tools)) if part)

    def settings(self, language: Language, sent: ToolsSent, folder: Path) -> dict[str, Any]:
        """What a daemon's configuration has to hold for it, by key. ``folder`` is given the tools' file."""
        file = ""
        if self.tools and sent == "field":
            file = str(folder / "tools.json")
            Path(file).write_text(json.dumps(self.tools, ensure_ascii=False), "utf-8")
        told = self.system if file else self.text
        return {f"llm.system_prompt_{language}": told, "llm.tools": file}

    def as_json(self, sent: ToolsSent | None) -> dict[str, Any]:
        """What conditions say of it. Never its words: they are somebody's own."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "characters": len(self.text),
            "tools": len(self.tools),
            "tools_sent": sent if self.tools else None,
        }


def read_prompt(path: Path) -> SystemPrompt:
    """Plain text, ``{"system": …, "tools": […]}``, or a request's body with ``messages`` and ``tools``.

    Raises ConfigError with what is wrong.
    """
    try:
        data = path.read_bytes()
        written = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError("cli_file_missing", path=path) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("cli_file_unreadable", path=path, reason=error) from error
    system = written.strip()
    tools: tuple[Tool, ...] = ()
    if system.startswith("{") or path.suffix.lower() == ".json":
        system, tools = _from_json(path, system)
    if not system and not tools:
        raise ConfigError("bench_prompt_broken", path=path, reason=Phrase("bench_prompt_empty"))
    found = SystemPrompt(path.name, system, tools, hashlib.sha256(data).hexdigest())
    text = found.text
    if "\x00" in text:
        raise ConfigError("bench_prompt_broken", path=path, reason=Phrase("bench_prompt_zero"))
    if (length := len(json.dumps(text, ensure_ascii=False).encode())) > LONGEST:
        reason = Phrase("bench_prompt_long", length=length, limit=LONGEST)
        raise ConfigError("bench_prompt_broken", path=path, reason=reason)
    return found


def _from_json(path: Path, written: str) -> tuple[str, tuple[Tool, ...]]:
    try:
        given = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ConfigError("bench_prompt_broken", path=path, reason=error) from error
    shape = ConfigError("bench_prompt_broken", path=path, reason=Phrase("bench_prompt_shape"))
    if not isinstance(given, dict) or not {"system", "messages"} & set(given):
        raise shape
    try:
        tools = tools_of(given.get("tools") or [])
    except BrokenTools as error:
        raise shape from error
    if "system" in given:
        system = given["system"]
    else:
        messages = given["messages"]
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise shape
        told = [m.get("content") for m in messages if m.get("role") in ("system", "developer")]
        system = [part for content in told for part in _parts(content)]
    texts = _parts(system)
    if not all(isinstance(text, str) for text in texts):
        raise shape
    return "\n\n".join(texts).strip(), tools


def _parts(content: object) -> list[Any]:
    """A content's texts: it is a text, or a list of ``{"type": "text", "text": …}``. Any: what is no text is
    for the caller to refuse."""
    if isinstance(content, list):
        return [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return [content]


def _listed(tools: Sequence[Tool]) -> str:
    """As the templates of Hermes, Qwen and their kin write tools into the system prompt: one a line."""
    if not tools:
        return ""
    lines = [json.dumps(tool, ensure_ascii=False) for tool in tools]
    return "\n".join(["# Tools", "<tools>", *lines, "</tools>"])
