"""What the daemon knows, in the shapes of ``wire``; texts in the language of whoever reads them."""

from __future__ import annotations

from ondam.control import wire
from ondam.messages import message
from ondam.supervisor.status import EngineStatus, Fault
from ondam.switching import Switch
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
        "name": engine.name,
        "stage": engine.stage,
        "state": engine.state,
        "pid": engine.pid,
        "loads": engine.loads,
        "device": engine.device,
        "model": engine.model,
        "rss_mib": engine.rss_mib,
        "restarts": engine.restarts,
        "uptime_s": round(engine.uptime_s, 1),
        "spare": engine.spare,
        "outside": engine.outside,
        "policy": engine.policy,
        "fit": engine.fit,
        "faults": [fault_shape(fault, language) for fault in engine.faults],
        "report": engine.report,
    }


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
