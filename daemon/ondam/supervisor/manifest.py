"""``engine.toml``: what an engine is, how it is launched, and what it promises. See docs/engines.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from ondam.config.schema import Table, check, read_toml
from ondam.errors import ConfigError
from ondam.models.card import ModelCard

MANIFEST = "engine.toml"

MODELS = "models.toml"
"""Beside it, optional: more ``[[models]]``, where they would bury the manifest."""


class Launch(Table):
    """How the process is started. Placeholders in ``command`` and ``env``: see docs/engines.md."""

    command: list[str] = pydantic.Field(min_length=1)
    once: list[str] = pydantic.Field(default=[])
    """One job in a process of its own, stdin to stdout, for ``ondam bench --cold``; see docs/engines.md."""
    warm: list[str] = pydantic.Field(default=[])
    """What is computed once for this machine, for ``ondam engines warm``; see docs/engines.md."""
    warmed: list[str] = pydantic.Field(default=[])
    """Whether that is made, for ``ondam doctor``; see docs/engines.md."""
    network: Literal["none", "loopback"] = "none"
    """What it is let have: no network at all, or a loopback between its own processes."""
    env: dict[str, str] = pydantic.Field(default={})


class Environment(Table):
    """The engine's own virtual environment."""

    locks: dict[str, str]
    """Platform variant (``cpu``, ``cu12``, …) to a hash-pinned requirements file in the folder."""
    drivers: dict[str, str] = pydantic.Field(default={})
    """Variant to the lowest major version of NVIDIA's driver that it runs with (``cu13 = "580"``)."""
    build_locks: dict[str, str] = pydantic.Field(default={})
    """Variant to a lock of build tools, installed first; the lock's sdists then build without isolation."""
    build_env: dict[str, str] = pydantic.Field(default={})
    """Set while building (``CMAKE_ARGS``); the user's own environment wins."""
    variant_env: dict[str, dict[str, str]] = pydantic.Field(default={})
    """Variant to what is laid over ``build_env`` for it, where one lock compiles for several devices."""
    tools: dict[str, str] = pydantic.Field(default={})
    """Variant to the program that compiling it takes (``cuda = "nvcc"``)."""
    needs_compiler: bool = False
    portable_env: dict[str, str] = pydantic.Field(default={})
    """Laid over ``build_env`` where it is compiled for another machine (``ondam bundle create``)."""
    portable_flags: list[str] = pydantic.Field(default=[])
    """What an x86-64 processor must have to run what was compiled so, as /proc/cpuinfo names it."""

    def variables(self, variant: str) -> dict[str, str]:
        """Set while ``variant`` is built."""
        return {**self.build_env, **self.variant_env.get(variant, {})}


class Readiness(Table):
    """When the engine counts as ready; always after a real inference was answered over the socket."""

    timeout_s: float = 120.0
    """From process start to the first answered inference."""


class Capabilities(Table):
    """What may be asked of the engine."""

    languages: list[str]
    streaming: bool = False
    hotwords: bool = False
    sample_rate_hz: int | None = None
    """What an STT engine wants, or what a TTS engine gives; none for an LLM."""


class Needs(Table):
    """What the machine must have."""

    devices: list[Literal["cpu", "cuda", "metal", "vulkan"]] = pydantic.Field(default=["cpu"])
    minimum_driver: str | None = None
    """Lowest major version of NVIDIA's driver, where ``environment.drivers`` does not say."""
    several_cards: bool = False
    """Whether one model can lie over several cards; its device is then ``cuda`` without a number."""
    one_at_a_time: bool = False
    """Whether it holds one conversation, however many come side by side: memory is counted for one."""
    spills: bool = False
    """Whether layers that do not fit on the card can lie in the main memory (``gpu_layers``)."""
    memory_mib: int
    """Resident memory with the embedded model; ``ondam plan`` corrects it by measuring."""


class _Models(Table):
    models: list[ModelCard]


class Limits(Table):
    """What the contract suite holds the engine to."""

    busy_after_cancel_ms: int
    """How long the engine may go on computing after the client closed its connection."""


class Manifest(Table):
    """One engine's ``engine.toml``."""

    name: Annotated[str, pydantic.Field(pattern=r"^[a-z][a-z0-9_]{1,31}$")]
    stage: Literal["stt", "llm", "tts"]
    protocol: Literal["wyoming", "openai"]
    licence: str
    """SPDX identifier of the strictest code that the process links."""
    summary_en: str
    summary_ko: str
    launch: Launch
    environment: Environment
    readiness: Readiness = Readiness()
    capabilities: Capabilities
    needs: Needs
    limits: Limits
    options: dict[str, Any] = pydantic.Field(default={})
    """The engine's own settings and their defaults; ``[engines.NAME]`` in config.toml overrides each."""
    models: list[ModelCard] = pydantic.Field(default=[])


@dataclass(frozen=True, slots=True)
class EngineFolder:
    """An engine as found on disk."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.manifest.name


def read_engine(folder: Path) -> EngineFolder:
    """The engine in ``folder``. Raises ConfigError listing every problem of its manifest or its models."""
    path = folder / MANIFEST
    manifest = check(Manifest, read_toml(path), path)
    if (more := folder / MODELS).exists():
        cards = check(_Models, read_toml(more), more).models
        manifest = manifest.model_copy(update={"models": [*manifest.models, *cards]})
    if manifest.name != folder.name:
        raise ConfigError("engine_name_differs", path=path, name=manifest.name, folder=folder.name)
    return EngineFolder(folder, manifest)


def find_engines(roots: Iterable[Path]) -> dict[str, EngineFolder]:
    """Every engine below ``roots`` by name; a later root wins over an earlier one."""
    found: dict[str, EngineFolder] = {}
    for root in roots:
        if root.is_dir():
            for manifest in sorted(root.glob(f"*/{MANIFEST}")):
                engine = read_engine(manifest.parent)
                found[engine.name] = engine
    return found


def comes_with_ondam(engine: EngineFolder) -> bool:
    """Whether it is one of ours, of which it is known what it prints."""
    return engine.path.parent.resolve() in {root.resolve() for root in _own_roots()}


def engine_roots(user_engines: Path) -> list[Path]:
    """Where engines are looked for: the package, the user's data folder, the machine's."""
    return [*_own_roots(), user_engines, Path("/etc/ondam/engines")]


def _own_roots() -> list[Path]:
    import ondam_engines

    return [*map(Path, ondam_engines.__path__)]
