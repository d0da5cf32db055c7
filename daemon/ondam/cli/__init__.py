"""The command line. Each command is a module with ``command`` in it; this is the table of them."""

from __future__ import annotations

import click

from ondam import __version__
from ondam.cli.frame import Entry, LazyGroup

COMMANDS = {
    "demo": Entry("ondam.cli.demo", "One whole spoken turn from a WAV file; no sound card needed."),
    "bench": Entry("ondam.cli.bench", "Many turns, as a distribution with its conditions."),
    "up": Entry("ondam.cli.up", "Run the daemon: listen, think and answer until it is asked to end."),
    "status": Entry("ondam.cli.status", "What the daemon is doing, its engines, and what is wrong."),
    "listen": Entry("ondam.cli.listen", "Push to talk: hear one question and answer it aloud."),
    "mode": Entry("ondam.cli.mode", "When it listens: always, by name, by a button, or never."),
    "ask": Entry("ondam.cli.ask", "Ask in writing."),
    "say": Entry("ondam.cli.say", "Speak a text aloud, or a list of texts into WAV files."),
    "transcribe": Entry("ondam.cli.transcribe", "Write down what is said in sound files."),
    "stop": Entry("ondam.cli.stop", "Make the daemon fall silent."),
    "turns": Entry("ondam.cli.turns", "The last turns and their timings."),
    "report": Entry("ondam.cli.report", "What the turns come to, and what should be looked at."),
    "budget": Entry("ondam.cli.budget", "What the wait is made of, what it could be, and what would help."),
    "read": Entry("ondam.cli.read", "Show how a voice would be given a text."),
    "engines": Entry("ondam.cli.engines", "List, build and remove engines; read their logs."),
    "models": Entry("ondam.cli.models", "List, fetch, import, verify and remove weights."),
    "plan": Entry("ondam.cli.plan", "Which engines and models fit this machine, with the sums."),
    "switch": Entry("ondam.cli.switch", "Change the model or the engine of a stage while the daemon runs."),
    "config": Entry("ondam.cli.config", "Check and show the configuration."),
    "doctor": Entry("ondam.cli.doctor", "Look for what keeps Ondam from working, and say what to type."),
    "down": Entry("ondam.cli.down", "Ask the daemon to end."),
}
"""Every command that exists, in the order a newcomer meets them."""


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 daemon, 5 models, 6 engines, 7 audio, "
    "8 a regression (bench compare), 130 interrupted. ONDAM_LANGUAGE=ko|en chooses the language of messages, "
    "ONDAM_HOME moves everything.",
)
@click.version_option(__version__, message="ondam %(version)s")
def command() -> None:
    """Ondam, a voice assistant that lives entirely on your own machine."""
