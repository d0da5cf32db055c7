"""Where packages come from: the index, mirrors and wheel folders that pip is configured with.

pip is not asked: our environment need not hold it, and another pip would answer for another environment. What
is read, and in which order, is pip's own (its ``_internal/configuration.py`` and ``cli/parser.py``; see
docs/decisions/registry-settings.md). A ``UV_*`` variable that the user has set wins over pip's setting.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from ondam.errors import ModelError

SECTIONS = ("global", "install", "download")
"""Of a pip configuration file, later over earlier: what counts when something is fetched."""

MACHINE = Path("/etc")
"""Where pip looks on Unix beside XDG_CONFIG_DIRS."""


@dataclass(frozen=True, slots=True)
class Registry:
    """Where to look for a package. URLs may hold credentials: print ``redacted`` ones only."""

    index_url: str | None = field(default=None, repr=False)
    """The main index; None for the public one."""
    extra_index_urls: tuple[str, ...] = field(default=(), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    """Folders as ``file://`` URLs, or pages that link to files."""
    no_index: bool = False
    """Only ``find_links``."""
    trusted_hosts: tuple[str, ...] = ()
    cert: Path | None = None
    """A bundle of certificate authorities, or a folder of them."""
    proxy: str | None = field(default=None, repr=False)
    timeout_s: int | None = None

    @classmethod
    def from_pip(cls, environ: Mapping[str, str] = os.environ, prefix: Path | None = None) -> Registry:
        """What pip would use in the Python environment at ``prefix`` (default: this one).

        Raises ModelError when a configuration file is broken or a value has the wrong form.
        """
        values = _pip_values(environ, Path(sys.prefix) if prefix is None else prefix)

        def several(name: str) -> list[str]:
            return values.get(name, "").split()

        index = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or values.get("index-url")
        extra = _uv_indexes(environ) or several("extra-index-url")
        # Both separators that uv and pip use between links.
        links = environ.get("UV_FIND_LINKS", "").replace(",", " ").split() or several("find-links")
        no_index = environ.get("UV_NO_INDEX") or values.get("no-index", "no")
        cert = values.get("cert")
        timeout = values.get("timeout") or values.get("default-timeout")
        return cls(
            index_url=_location(_unnamed(index)) if index else None,
            extra_index_urls=tuple(_location(_unnamed(url)) for url in extra),
            find_links=tuple(map(_location, links)),
            no_index=_truth("no-index", no_index),
            trusted_hosts=tuple(
                environ.get("UV_INSECURE_HOST", "").replace(",", " ").split() or several("trusted-host")
            ),
            cert=Path(cert).expanduser() if cert else None,
            proxy=values.get("proxy"),
            timeout_s=_whole("timeout", timeout) if timeout else None,
        )

    def uv_environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The variables that make uv look where ``self`` says; lay them over ``environ`` for the child.

        A variable that ``environ`` has already is left out. A folder that does not exist is left out as well:
        pip passes over it, uv would stop.
        """
        extra = [] if self.no_index else [url for url in self.extra_index_urls if _there(url)]
        links = [url for url in self.find_links if _there(url)]
        wanted: dict[str, str] = {}
        if self.index_url and not self.no_index and "UV_INDEX_URL" not in environ:
            wanted["UV_DEFAULT_INDEX"] = self.index_url
        if extra and "UV_EXTRA_INDEX_URL" not in environ:
            wanted["UV_INDEX"] = " ".join(extra)
        if extra:
            # Like pip: the best of all indexes, not the first that knows the name. What Ondam installs is
            # pinned by hash, so that no index can put its own package in the place of another's.
            wanted["UV_INDEX_STRATEGY"] = "unsafe-best-match"
        if links:
            wanted["UV_FIND_LINKS"] = ",".join(url.replace(",", "%2C") for url in links)
        if self.no_index:
            wanted["UV_NO_INDEX"] = "1"
        if self.trusted_hosts:
            wanted["UV_INSECURE_HOST"] = " ".join(self.trusted_hosts)
        if self.cert:
            wanted["SSL_CERT_DIR" if self.cert.is_dir() else "SSL_CERT_FILE"] = str(self.cert)
        if self.proxy and "ALL_PROXY" not in environ:
            wanted |= {"HTTP_PROXY": self.proxy, "HTTPS_PROXY": self.proxy}
        if self.timeout_s:
            wanted["UV_HTTP_TIMEOUT"] = str(self.timeout_s)
        return {
            name: value
            for name, value in wanted.items()
            if name not in environ and name.lower() not in environ
        }


def redacted(url: str) -> str:
    """``url`` without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def pip_files(environ: Mapping[str, str], prefix: Path) -> list[Path]:
    """The files that pip reads, later over earlier. They need not exist."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "win32":
        name = "pip.ini"
        machine = [Path(environ.get("PROGRAMDATA", "C:/ProgramData")) / "pip"]
        user = [home / "pip", Path(environ.get("APPDATA", home)) / "pip"]
    elif sys.platform == "darwin":
        name = "pip.conf"
        support = home / "Library/Application Support/pip"
        machine = [Path("/Library/Application Support/pip")]
        user = [home / ".pip", support if support.is_dir() else home / ".config/pip"]
    else:
        name = "pip.conf"
        shared = environ.get("XDG_CONFIG_DIRS", "").strip() or "/etc/xdg"
        machine = [*(Path(path).expanduser() / "pip" for path in shared.split(os.pathsep)), MACHINE]
        user = [home / ".pip", Path(environ.get("XDG_CONFIG_HOME", "").strip() or home / ".config") / "pip"]
    if chosen and Path(chosen).exists():
        user = []
    return [*(folder / name for folder in (*machine, *user, prefix)), *([Path(chosen)] if chosen else [])]


def _pip_values(environ: Mapping[str, str], prefix: Path) -> dict[str, str]:
    by_section: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for path in pip_files(environ, prefix):
        for section, name, value in _settings(path):
            if section in by_section:
                by_section[section][name] = value
    by_section["environment"] = {
        _normal(name.removeprefix("PIP_")): value
        for name, value in environ.items()
        if name.startswith("PIP_")
    }
    # As in pip, an empty value counts as not set.
    return {name: value for section in by_section.values() for name, value in section.items() if value}


def _settings(path: Path) -> Iterator[tuple[str, str, str]]:
    # RawConfigParser, as pip does: a "%" in a password is itself.
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        raise ModelError("pip_file_broken", path=path, reason=_first_line(error)) from error
    for section in parser.sections():
        for name, value in parser.items(section):
            yield section, _normal(name), value


def _first_line(error: Exception) -> str:
    # configparser quotes the whole broken line, which may hold a password.
    return type(error).__name__ if isinstance(error, configparser.Error) else str(error).splitlines()[0]


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _uv_indexes(environ: Mapping[str, str]) -> list[str]:
    return [url for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL") for url in environ.get(name, "").split()]


def _unnamed(index: str) -> str:
    """uv lets an index have a name in front: ``name=https://…``."""
    name, equals, url = index.partition("=")
    return url if equals and name.replace("-", "").replace("_", "").isalnum() else index


def _location(value: str) -> str:
    """A URL as it is; a path, possibly relative or with ``~``, as a ``file://`` URL."""
    return value if "://" in value else Path(value).expanduser().absolute().as_uri()


def _there(url: str) -> bool:
    """False for a folder on this machine that does not exist."""
    return (path := local_path(url)) is None or path.exists()


def local_path(url: str) -> Path | None:
    """The path of a ``file://`` URL; None for any other."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _truth(name: str, value: str) -> bool:
    if value.lower() in ("1", "yes", "true", "on", "y", "t"):
        return True
    if value.lower() in ("0", "no", "false", "off", "n", "f"):
        return False
    raise ModelError("pip_value_broken", name=name, value=value, wanted="yes, no")


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ModelError("pip_value_broken", name=name, value=value, wanted="180") from error
