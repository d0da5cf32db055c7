"""``ondam bench --quality``: how well it hears and how clearly it speaks, beside how quickly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.bench.modes import Asked, Running, Table, Told, progress
from ondam.cli.terminal import say

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.measure.transcripts import Recording
    from ondam.types import Language

MOST_SENTENCES = 100
"""Of a folder's transcripts that are spoken as well, where no sentences are given."""


class Quality:
    """Implements ``modes.Mode``; ``turns`` does not matter: every recording counts once."""

    def __init__(self) -> None:
        self._clips: Sequence[Recording] = ()
        self._sentences: Sequence[str] = ()

    def check(self, config: Config, asked: Asked) -> None:
        """The transcripts are read, and every recording once."""
        from ondam.measure.transcripts import recordings, sentences

        language: Language = config.spoken_language
        self._clips = recordings(asked.folder, language)
        self._sentences = (
            sentences(asked.sentences, language)
            if asked.sentences is not None
            else list(dict.fromkeys(clip.words for clip in self._clips))[:MOST_SENTENCES]
        )

    async def run(self, running: Running) -> Told:
        """Recognition, then there and back."""
        from ondam.measure.quality import measure
        from ondam.measure.raw import RawEngines

        asked = running.asked
        names = asked.names if asked.names is not None else tuple(running.config.stt.names)
        engines = RawEngines.of(await running.client.status(), running.here, running.config, running.language)
        with progress(len(self._clips) + len(self._sentences)) as tick:
            made = await measure(
                engines.recognizer,
                engines.synthesizer,
                self._clips,
                self._sentences,
                names,
                language=running.language,
                tick=tick,
            )
        run = {
            "folder": str(asked.folder) if asked.folder else None,
            "clips": len(self._clips),
            "seconds_of_clips": round(sum(clip.seconds for clip in self._clips), 1),
            "sentences": len(self._sentences),
            "language": running.language,
        }
        return {"run": run, **made.as_json()}

    def draw(self, result: Told) -> None:
        """A line for each way; errors beside what they took."""
        table = Table([say(f"quality_{title}") for title in TITLES])

        def row(name: str, told: Mapping[str, Any], ms: Mapping[str, Any]) -> None:
            rates = (_percent(told[key]) for key in ("wer", "cer", "cer_as_written"))
            table.rows.append((name, *rates, ms["p50"], ms["p90"], ms["n"], told["failed"]))

        stt, back = result["stt"], result["round_trip"]
        row(say("quality_without_names"), stt["without_names"], stt["without_names"]["ms"])
        if stt["with_names"] is not None:
            row(say("quality_with_names"), stt["with_names"], stt["with_names"]["ms"])
        row(say("quality_round_trip"), back, back["first_audio_ms"])
        table.print()
        worst = [clip for clip in result["clips"] if clip["without_names"].get("cer")]
        for clip in sorted(worst, key=lambda one: -one["without_names"]["cer"])[:WORST]:
            heard = clip["without_names"]["heard"]
            click.echo(say("quality_misheard", clip=clip["clip"], words=clip["words"], heard=heard))
        errors = {
            told["error"]
            for told in (
                *(clip["without_names"] for clip in result["clips"]),
                *(one["round_trip"] for one in result["sentences"]),
            )
            if "error" in told
        }
        for error in sorted(errors):
            click.echo(error)
        run = result["conditions"]["run"]
        facts = {"clips": run["clips"], "seconds": run["seconds_of_clips"], "load": run["load_average_after"]}
        click.echo(say("quality_conditions", **facts))


TITLES = ("way", "wer", "cer", "as_written", "p50", "p90", "n", "failed")

WORST = 5


def _percent(rate: float | None) -> str | None:
    return None if rate is None else f"{100 * rate:.1f} %"
