"""What a person may change while the daemon runs, described so that a tray or a panel can show it. Pure.

Everything else of the configuration is for its file: of that, ``keys`` says when it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import annotated_types

from ondam import messages
from ondam.audio.devices import DEFAULT, Device, Kind
from ondam.config import Config
from ondam.config.keys import annotation, flat
from ondam.control import wire
from ondam.control.shapes import device_choices
from ondam.errors import ConfigError
from ondam.messages import Phrase, Phrases
from ondam.planner.candidates import AUTO
from ondam.types import Language, Mode

SLOWEST, QUICKEST = 0.5, 2.0
"""Of a voice whose engine has an option ``speed``. Options are the engine's own: no schema has them."""

DEVICES: Mapping[str, Kind] = {"audio.microphone": "microphone", "audio.speaker": "speaker"}


@dataclass(frozen=True, slots=True)
class Around:
    """What the choices are made of, beside the configuration."""

    mode: Mode
    devices: Sequence[Device] = ()
    voices: Sequence[str] = ()
    """Voice engines that are built, have their weights and know the language."""
    models: Sequence[str] = ()
    """Models of the voice engine that serves, likewise."""
    speed_of: tuple[str, float] | None = None
    """The voice engine that serves, and its own pace where nothing is set; None where it has none."""


@dataclass(frozen=True, slots=True)
class _Shown:
    key: str
    kind: wire.SettingKind
    code: str
    """Of its label and help in the messages."""
    choices: Callable[[Config, Around, Language], list[wire.Choice]] | None = None
    least: float | None = None
    most: float | None = None
    """Where the schema says nothing."""
    otherwise: Any = None
    """The value where nothing is set."""


def settings(config: Config, kept: Config | None, around: Around, language: Language) -> list[wire.Setting]:
    """Each with its value in force, told in ``language``. ``kept``: what config.toml says, if whole."""
    values = flat(config) | {"listen.mode": around.mode}
    there = None if kept is None else flat(kept)
    return [_described(one, config, values, there, around, language) for one in _all(config, around)]


def refuse_others(wanted: Mapping[str, Any], config: Config, around: Around) -> None:
    """Raises ConfigError naming all that may not be changed this way, and those that may.

    Also for devices that there are not, and for a pace that no ear can follow; all other values are the
    schema's to judge.
    """
    known = {one.key: one for one in _all(config, around)}
    names = ", ".join(known)
    problems = [Phrase("problem_no_setting", key=key, names=names) for key in wanted if key not in known]
    for key, value in wanted.items():
        one = known.get(key)
        if one is None or one.least is None or one.most is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not one.least <= value <= one.most:
            limits = {"least": one.least, "most": one.most}
            problems.append(Phrase("problem_between", key=key, found=repr(value)[:80], **limits))
    for key, names_of in (("tts.engine", around.voices), ("tts.model", around.models)):
        if key in known and wanted.get(key, AUTO) not in (AUTO, *names_of, flat(config)[key]):
            told = {"found": repr(wanted[key])[:80], "names": ", ".join([AUTO, *names_of])}
            problems.append(Phrase("problem_no_choice", key=key, **told))
    problems += _no_such_devices({DEVICES[k]: v for k, v in wanted.items() if k in DEVICES}, config, around)
    _raise(problems)


def _no_such_devices(wanted: Mapping[Kind, Any], config: Config, around: Around) -> Iterator[Phrase]:
    """A file ("wav:…") is no device: it would be read or written as the daemon's user, for its commander."""
    for kind, name in wanted.items():
        names = [DEFAULT, *(one.name for one in around.devices if one.kind == kind)]
        if name not in (*names, getattr(config.audio, kind)):
            told = {"key": f"audio.{kind}", "name": str(name)[:80], "names": ", ".join(names)}
            yield Phrase("problem_no_device", **told)


def _raise(problems: Sequence[Phrase]) -> None:
    if problems:
        origin = Phrase("origin_settings")
        raise ConfigError("config_problems", origin=origin, problems=Phrases(tuple(problems)))


def _all(config: Config, around: Around) -> Iterator[_Shown]:
    yield _Shown("listen.mode", "choice", "mode", _words("mode"))
    yield _Shown("audio.microphone", "choice", "microphone", _devices("microphone"))
    yield _Shown("audio.speaker", "choice", "speaker", _devices("speaker"))
    yield _Shown("language", "choice", "language", _words("language"))
    if not config.tts.address and around.voices:
        yield _Shown("tts.engine", "choice", "voice_engine", _names(lambda around: around.voices))
        if len(around.models) > 1:
            yield _Shown("tts.model", "choice", "voice_model", _names(lambda around: around.models))
    if around.speed_of is not None:
        engine, pace = around.speed_of
        key = f"engines.{engine}.speed"
        yield _Shown(key, "number", "speed", least=SLOWEST, most=QUICKEST, otherwise=pace)
    yield _Shown("llm.max_tokens", "number", "answer_length")
    yield _Shown("journal.keep_text", "switch", "keep_text")
    yield _Shown("journal.text_days", "number", "text_days")
    yield _Shown("journal.keep_audio", "switch", "keep_audio")
    yield _Shown("journal.audio_days", "number", "audio_days")
    yield _Shown("journal.keep_days", "number", "keep_days")


def _described(
    one: _Shown,
    config: Config,
    values: Mapping[str, Any],
    kept: Mapping[str, Any] | None,
    around: Around,
    language: Language,
) -> wire.Setting:
    value = values.get(one.key, one.otherwise)
    told: wire.Setting = {
        "key": one.key,
        "value": value,
        "kind": one.kind,
        "label": messages.text(f"setting_{one.code}", language),
        "help": messages.text(f"setting_{one.code}_help", language),
        "kept": kept is not None and kept.get(one.key, one.otherwise) == value,
    }
    if one.choices is not None:
        told["choices"] = one.choices(config, around, language)
    if one.kind == "number":
        least, most, whole = bounds(one.key)
        told["least"] = one.least if one.least is not None else least
        told["most"] = one.most if one.most is not None else most
        told["whole"] = whole
    return told


def bounds(key: str) -> tuple[float, float, bool]:
    """The least and the most that the schema allows, and whether it must be whole; 0 to infinity where it is
    not the schema's to say."""
    hint = annotation(key)
    if hint is None:
        return 0.0, float("inf"), False
    kind, *about = (hint, ()) if isinstance(hint, type) else get_args(hint)
    least, most = 0.0, float("inf")
    for field in about:
        for limit in getattr(field, "metadata", [field]):
            if isinstance(limit, annotated_types.Ge):
                least = float(limit.ge)  # type: ignore[arg-type]  # of ours all are numbers
            elif isinstance(limit, annotated_types.Le):
                most = float(limit.le)  # type: ignore[arg-type]
    return least, most, kind is int


def _words(code: str) -> Callable[[Config, Around, Language], list[wire.Choice]]:
    def made(config: Config, around: Around, language: Language) -> list[wire.Choice]:
        words = get_args(Mode if code == "mode" else Literal["auto", "ko", "en"])
        return [{"value": word, "label": messages.text(f"setting_{code}_{word}", language)} for word in words]

    return made


def _names(of: Callable[[Around], Sequence[str]]) -> Callable[[Config, Around, Language], list[wire.Choice]]:
    def made(config: Config, around: Around, language: Language) -> list[wire.Choice]:
        auto: wire.Choice = {"value": AUTO, "label": messages.text("setting_auto", language)}
        named: list[wire.Choice] = [{"value": name, "label": name} for name in of(around)]
        return [auto, *named]

    return made


def _devices(kind: Kind) -> Callable[[Config, Around, Language], list[wire.Choice]]:
    def made(config: Config, around: Around, language: Language) -> list[wire.Choice]:
        default: wire.Choice = {"value": DEFAULT, "label": messages.text("setting_default_device", language)}
        spec = getattr(config.audio, kind)
        found = device_choices(kind, spec, around.devices)
        # A device may be configured by a part of its name: that is its value then.
        named: list[wire.Choice] = [
            {"value": spec if one["chosen"] else one["name"], "label": one["label"]} for one in found
        ]
        return [default, *named]

    return made
