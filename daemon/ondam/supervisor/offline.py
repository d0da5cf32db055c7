"""What an engine's environment holds so that its libraries call nobody, and what of the daemon's it lacks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ondam.supervisor.airlock import VARIABLE

PROXY = re.compile(r"^(?:https?|ftp|socks|all|no)_proxy$", re.IGNORECASE)
"""A way out that a library takes by itself."""

SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRETS?|PASS|AUTH|CREDENTIALS?|COOKIE|APIKEY|ACCESS_KEY_ID)(?:$|_)"
    r"|PASSWORD|PASSWD|PASSPHRASE|SSHPASS|_(?:KEYS?|PWD|PAT)$",
    re.IGNORECASE,
)
"""Names of variables that hold what nobody else is to know (``HF_TOKEN``, ``OPENAI_API_KEY``), or
lead to whoever proves who one is (``SSH_AUTH_SOCK``)."""

PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
"""``postgres://me:word@host``: a secret whatever the variable is called."""


@dataclass(frozen=True, slots=True)
class Library:
    """One library that calls home, or would."""

    packages: tuple[str, ...]
    """Names on the registry."""
    what: str
    """What it sends or looks for, and when."""
    set: Mapping[str, str]
    """Its switches. Empty where it has none, and ``what`` says what closes it."""


@cache
def libraries() -> tuple[Library, ...]:
    """All that are known."""
    text = resources.files("ondam.supervisor").joinpath("offline.toml").read_text("utf-8")
    return tuple(
        Library(tuple(one["packages"]), one["what"], one["set"]) for one in tomllib.loads(text)["library"]
    )


@cache
def offline() -> Mapping[str, str]:
    """Set for every engine."""
    return {name: value for library in libraries() for name, value in library.set.items()}


def secret(name: str) -> bool:
    """Whether the variable ``name`` may hold a secret."""
    return SECRET.search(name) is not None


def handed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Of the daemon's own variables those that an engine may have: no proxies, no secrets, nothing of how the
    daemon itself was cut off."""
    return {
        name: value
        for name, value in environ.items()
        if not PROXY.match(name)
        and not secret(name)
        and not PASSWORD_IN_ADDRESS.search(value)
        and name != VARIABLE
    }
