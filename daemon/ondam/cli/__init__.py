"""The command line. Each command is a module with ``command`` in it; this is the table of them."""

from __future__ import annotations

import os

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
    "privacy": Entry("ondam.cli.privacy", "What is kept on this machine, for how long, and away with it."),
    "doctor": Entry("ondam.cli.doctor", "Look for what keeps Ondam from working, and say what to type."),
    "tray": Entry("ondam.cli.tray", "An icon in the panel: what it is doing, and why that took so long."),
    "bundle": Entry("ondam.cli.bundle", "One file to carry to a machine without a network; its versions."),
    "panel": Entry("ondam.cli.panel", "The Ondam window, in a browser: turns, numbers, engines, budget."),
    "service": Entry("ondam.cli.service", "Let systemd start Ondam, and start it again when it breaks down."),
    "down": Entry("ondam.cli.down", "Ask the daemon to end."),
}
"""Every command that exists, in the order a newcomer meets them."""


def _of_the_system(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """What is typed now counts before what a shell happens to export."""
    if wanted:
        os.environ["ONDAM_SYSTEM"] = "1"
        os.environ.pop("ONDAM_HOME", None)
        context.call_on_close(_hand_over)


def _hand_over() -> None:
    from ondam.owner import hand_over
    from ondam.places import MACHINE_STATE

    hand_over(MACHINE_STATE)


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 daemon, 5 models, 6 engines, 7 audio, "
    "8 a regression (bench compare), 9 bundles, 11 desktop, 130 interrupted. ONDAM_LANGUAGE=ko|en chooses "
    "the language of messages, ONDAM_HOME moves everything.",
)
@click.option(
    "--system",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_of_the_system,
    help="The system's daemon and its folders, not your own, whatever ONDAM_HOME says: "
    "sudo -u ondam ondam --system COMMAND.",
)
@click.version_option(__version__, message="ondam %(version)s")
def command() -> None:
    """Ondam, a voice assistant that lives entirely on your own machine."""
