"""``ondam status``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from ondam.cli.terminal import as_json, columns, daemon, duration, named, print_json, say
from ondam.control import wire


@click.command("status")
@click.option("--watch", "watched", is_flag=True, help="Go on until Ctrl-C: a full screen, or lines.")
@click.option("--plain", is_flag=True, help="With --watch: a line for each event, also at a terminal.")
@as_json
def command(watched: bool, plain: bool, json_wanted: bool) -> int:
    """Show what the daemon is doing, its engines, and what is wrong.

    With --watch: everything as it happens. At a terminal a full screen; into a pipe, or with --plain, a line
    for each event: time, the event's name in docs/control-api.md, and what it is in words; with --json each
    as JSON. A daemon that goes away is waited for. Ctrl-C, SIGTERM and a reader who leaves end it with exit
    code 0; without a daemon at the beginning it is 4.
    """
    if plain and not watched:
        raise click.UsageError(say("watch_plain_alone"), click.get_current_context())
    if watched:
        from ondam.cli.watch import Json, Lines, connect, for_person, on_screen, watch

        if json_wanted or plain or not for_person():
            return watch(Json() if json_wanted else Lines(), connect)
        return on_screen()
    status = daemon(lambda client: client.status())
    if json_wanted:
        print_json(status)
        return 0
    for line in lines(status):
        click.echo(line)
    return 0


def one_line(status: wire.Status) -> str:
    """What it is, and what it does."""
    return say(
        "cli_head",
        version=status["version"],
        state=doing(status),
        language=named("cli_language_", status["language"]),
        uptime=duration(status["uptime_s"]),
        pid=status["pid"],
    )


def lines(status: wire.Status) -> Iterator[str]:
    """The status for a person."""
    yield one_line(status)
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
    for row in columns([engine_row(engine) for engine in status["engines"]], right=(6,)):
        yield f"  {row}"
    yield from isolation(status["engines"])
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


def isolation(engines: Iterable[wire.EngineStatus]) -> Iterator[str]:
    """What keeps the engines from the network: a line for those that have the same."""
    alike: dict[tuple[str, str], list[str]] = {}
    for engine in engines:
        if held := engine["isolation"]:
            alike.setdefault((_network(held), ", ".join(held["means"])), []).append(engine["name"])
    for (network, means), names in alike.items():
        yield "  " + say(f"cli_isolation_{network}", names=", ".join(names), means=means)


def _network(held: wire.Isolation) -> str:
    if not held["closed"]:
        return "open"
    return "abstract" if held["remains"] else held["network"]


def switching(switch: wire.Switch) -> Iterator[str]:
    """How far a change of engines is."""
    wanted = " ".join(f"{key}={value}" for key, value in switch["wanted"].items())
    yield say("cli_switching", wanted=wanted, state=named("cli_switch_", switch["state"]))
    if switch["state"] == "loading":
        yield from switch["short"]
    if switch["fault"]:
        yield f"! {switch['fault']['text']}"


def doing(status: wire.Status) -> str:
    """What it does; while nothing happens, what it waits for."""
    if status["state"] == "listening" and status["mode"] != "open":
        return named("cli_waits_", status["mode"])
    return named("cli_state_", status["state"])


def _device(device: wire.Device) -> str:
    return f"{device['name']} ({named('cli_device_', device['state'])})"


def engine_row(engine: wire.EngineStatus) -> list[str]:
    """Stage, name, state, model, device, process, memory, and what else there is to say."""
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


def told(event: wire.Event) -> Iterator[str]:
    """A line for one event after the snapshot; none for what is fleeting. For faults see ``compared``."""
    match event["type"]:
        case "state":
            yield named("cli_state_", event["state"])
        case "mode":
            yield named("cli_mode_", event["mode"])
        case "transcript":
            yield f"{say('cli_you')}: {event['text']}"
        case "turn":
            turn = event["turn"]
            reply = turn["reply"] or named("cli_outcome_", turn["outcome"])
            after = turn["first_audio_ms"]
            first = "" if after is None else f" ({say('cli_first_audio', ms=after)})"
            yield f"{say('cli_ondam')}: {reply}{first}"
        case "engine":
            state = named("cli_engine_", event["engine"]["state"])
            yield say("cli_engine_is", name=event["engine"]["name"], state=state)
        case "switch":
            yield " ".join(switching(event["switch"]))
        case "settings":
            yield say("watch_settings", keys=", ".join(event["keys"]))
        case "notice":
            yield named("", event["code"])


def compared(before: Sequence[wire.Fault], now: Sequence[wire.Fault]) -> Iterator[tuple[str, str]]:
    """An event's type and a line for each fault that is over, and for each that is new.

    By their texts: two engines may have the same fault, which has one code.
    """
    known, found = ({fault["text"]: fault for fault in faults} for faults in (before, now))
    for text in known:
        if text not in found:
            yield "fault_cleared", say("cli_fault_over", text=text)
    for text, fault in found.items():
        if text not in known:
            yield "fault", f"! {text}" + (f" → {fault['next']}" if fault["next"] else "")
