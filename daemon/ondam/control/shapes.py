"""What the daemon knows, in the shapes of ``wire``; texts in the language of whoever reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ondam.audio.devices import DEFAULT, Device, choose
from ondam.config import AudioConfig
from ondam.control import wire
from ondam.house.switching import Switch
from ondam.messages import message, without_password
from ondam.supervisor.isolation import Isolation
from ondam.supervisor.status import EngineStatus, Fault
from ondam.types import Language


def fault_shape(fault: Fault, language: Language, since: str | None = None) -> wire.Fault:
    """``since``: ISO 8601, for one that lasts."""
    told = message(fault.code, language, **fault.facts)
    made: wire.Fault = {"code": told.code, "text": told.text, "next": told.next}
    if since:
        made["since"] = since
    return made


def engine_shape(engine: EngineStatus, language: Language) -> wire.EngineStatus:
    """All of it but its address and its log."""
    return {
        "name": without_password(engine.name),
        "stage": engine.stage,
        "state": engine.state,
        "pid": engine.pid,
        "loads": engine.loads,
        "device": engine.device,
        "model": engine.model,
        "rss_mib": engine.rss_mib,
        "isolation": isolation_shape(engine.isolation),
        "restarts": engine.restarts,
        "uptime_s": round(engine.uptime_s, 1),
        "spare": engine.spare,
        "outside": engine.outside,
        "policy": engine.policy,
        "fit": engine.fit,
        "faults": [fault_shape(fault, language) for fault in engine.faults],
        "report": engine.report,
    }


def isolation_shape(isolation: Isolation | None) -> wire.Isolation | None:
    """What keeps an engine from the network."""
    if isolation is None:
        return None
    return {
        "network": isolation.network,
        "means": list(isolation.means),
        "closed": isolation.closed,
        "remains": list(isolation.remains),
    }


def devices_shape(found: Iterable[Device], audio: AudioConfig) -> wire.Devices:
    """What there is, and what is used of it: ``audio`` says what was chosen."""
    found = tuple(found)
    return {
        "microphones": device_choices("microphone", audio.microphone, found),
        "speakers": device_choices("speaker", audio.speaker, found),
    }


def device_choices(kind: wire.DeviceKind, spec: str, found: Sequence[Device]) -> list[wire.DeviceChoice]:
    """The devices of one kind, that which ``spec`` means chosen; also one that is gone, a file, or "none"."""
    meant = None if spec == DEFAULT else choose(spec, kind, found)
    made: list[wire.DeviceChoice] = [
        {
            "name": device.name,
            "label": device.title,
            "chosen": device == meant,
            "default": device.default,
            "present": True,
        }
        for device in found
        if device.kind == kind and (not device.monitor or device == meant)
    ]
    if spec != DEFAULT and meant is None:  # unplugged, a file, or "none": still what was chosen
        made.append({"name": spec, "label": spec, "chosen": True, "default": False, "present": False})
    return made


def switch_shape(switch: Switch, language: Language) -> wire.Switch:
    """How far a change of engines is, or how it ended."""
    return {
        "state": switch.state,
        "wanted": dict(switch.wanted),
        "since": switch.since,
        "stages": list(switch.stages),
        "beside": switch.beside,
        "short": [phrase.in_language(language) for phrase in switch.short],
        "kept": switch.kept,
        "fault": None if switch.fault is None else fault_shape(switch.fault, language),
    }
