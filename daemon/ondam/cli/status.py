"""``ondam status``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import click

from ondam.cli.terminal import as_json, columns, daemon, duration, named, print_json, say
from ondam.control import wire


@click.command("status")
@click.option("--watch", is_flag=True, help="Go on: one line for each change, until Ctrl-C.")
@as_json
def command(watch: bool, json_wanted: bool) -> None:
    """Show what the daemon is doing, its engines, and what is wrong."""
    if watch:
        _watch(json_wanted)
        return
    status = daemon(lambda client: client.status())
    if json_wanted:
        print_json(status)
        return
    for line in lines(status):
        click.echo(line)


def lines(status: wire.Status) -> Iterator[str]:
    """The status for a person."""
    yield say(
        "cli_head",
        version=status["version"],
        state=_doing(status),
        language=named("cli_language_", status["language"]),
        uptime=duration(status["uptime_s"]),
        pid=status["pid"],
    )
    turns = say("cli_turns_count", count=status["turns"])
    if (last := status["last_turn"]) and last["first_audio_ms"] is not None:
        turns = say("cli_turns_last", count=status["turns"], ms=last["first_audio_ms"])
    yield from columns(
        [
            [say("cli_microphone"), _device(status["microphone"])],
            [say("cli_speaker"), _device(status["speaker"])],
            [say("cli_turns"), turns],
        ]
    )
    yield say("cli_engines")
    for row in columns([_engine(engine) for engine in status["engines"]], right=(6,)):
        yield f"  {row}"
    if switch := status["switch"]:
        yield from switching(switch)
    faults = [*status["faults"], *(fault for engine in status["engines"] for fault in engine["faults"])]
    told = {(fault["text"], fault["next"]): None for fault in faults}
    if told:
        yield say("cli_faults")
        for text, after in told:
            yield f"  ! {text}"
            if after:
                yield f"    → {after}"


def switching(switch: wire.Switch) -> Iterator[str]:
    """How far a change of engines is."""
    wanted = " ".join(f"{key}={value}" for key, value in switch["wanted"].items())
    yield say("cli_switching", wanted=wanted, state=named("cli_switch_", switch["state"]))
    if switch["state"] == "loading":
        yield from switch["short"]
    if switch["fault"]:
        yield f"! {switch['fault']['text']}"


def _doing(status: wire.Status) -> str:
    """What it does; while nothing happens, what it waits for."""
    if status["state"] == "listening" and status["mode"] != "open":
        return named("cli_waits_", status["mode"])
    return named("cli_state_", status["state"])


def _device(device: wire.Device) -> str:
    return f"{device['name']} ({named('cli_device_', device['state'])})"


def _engine(engine: wire.EngineStatus) -> list[str]:
    remarks = [say("cli_spare")] if engine["spare"] else []
    if engine["fit"] not in {"unknown", "as_planned"}:
        remarks.append(named("cli_fit_", engine["fit"]))
    if engine["outside"]:
        remarks += _told_by_address(engine["report"] or {})
    if engine["restarts"]:
        remarks.append(say("cli_restarted", count=engine["restarts"]))
    return [
        engine["stage"],
        engine["name"],
        named("cli_engine_", engine["state"]),
        engine["model"] or "–",
        engine["device"] or "–",
        f"pid {engine['pid']}" if engine["pid"] else "–",
        "–" if engine["rss_mib"] is None else f"{engine['rss_mib']:.0f} MiB",
        ", ".join(remarks),
    ]


def _told_by_address(report: Mapping[str, object]) -> list[str]:
    """What a server that is not ours told when it was asked: little, and not all of them."""
    versions, tokens, cache = report.get("versions"), report.get("context_length"), report.get("kv_dtype")
    told = (
        [f"{name} {version}" for name, version in versions.items()] if isinstance(versions, Mapping) else []
    )
    if tokens is not None:
        told.append(say("cli_outside_context", tokens=tokens))
    if cache is not None:
        told.append(say("cli_outside_cache", cache=cache))
    return told


def _watch(json_wanted: bool) -> None:
    from ondam.control.client import Client

    known: dict[str, str] = {}

    async def follow(client: Client) -> None:
        async for event in client.events():
            if json_wanted:
                print_json(event)
            else:
                for line in _told(event, known):
                    click.echo(
                        line if event["type"] == "snapshot" else f"{time.strftime('%H:%M:%S')}  {line}"
                    )

    daemon(follow)


def _told(event: wire.Event, known: dict[str, str]) -> Iterator[str]:
    """Lines for one event. ``known``: texts of faults by code, so that their end can be told in words."""
    match event["type"]:
        case "snapshot":
            known.update({fault["code"]: fault["text"] for fault in event["status"]["faults"]})
            yield from lines(event["status"])
        case "state":
            yield named("cli_state_", event["state"])
        case "mode":
            yield named("cli_mode_", event["mode"])
        case "transcript":
            yield f"{say('cli_you')}: {event['text']}"
        case "turn":
            if event["turn"]["reply"]:
                yield f"{say('cli_ondam')}: {event['turn']['reply']}"
            if event["turn"]["first_audio_ms"] is not None:
                yield say("cli_first_audio", ms=event["turn"]["first_audio_ms"])
        case "engine":
            state = named("cli_engine_", event["engine"]["state"])
            yield say("cli_engine_is", name=event["engine"]["name"], state=state)
        case "switch":
            yield from switching(event["switch"])
        case "fault":
            known[event["fault"]["code"]] = event["fault"]["text"]
            yield f"! {event['fault']['text']}"
            if event["fault"]["next"]:
                yield f"  → {event['fault']['next']}"
        case "fault_cleared":
            yield say("cli_fault_over", text=known.pop(event["code"], event["code"]))
        case "notice":
            yield named("", event["code"])
