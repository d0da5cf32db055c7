from __future__ import annotations

import os
from pathlib import Path

import pytest

from ondam.errors import ModelError
from ondam.models.registry import Registry, pip_files, redacted


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose pip files all lie below ``tmp_path``."""
    monkeypatch.setattr("ondam.models.registry.MACHINE", tmp_path / "etc")
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "PIP_CONFIG_FILE": str(tmp_path / "chosen.conf"),
    }


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def read(machine: dict[str, str], tmp_path: Path, **more: str) -> Registry:
    return Registry.from_pip({**machine, **more}, prefix=tmp_path / "prefix")


def test_later_files_win_over_earlier_ones(machine: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = https://shared/simple\ntimeout = 7\n")
    write(tmp_path / "home/.pip/pip.conf", "[global]\nindex-url = https://legacy/simple\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://user/simple\n")
    assert read(machine, tmp_path).index_url == "https://user/simple"
    write(tmp_path / "prefix/pip.conf", "[global]\nindex_url = https://prefix/simple\n")
    registry = read(machine, tmp_path)
    assert (registry.index_url, registry.timeout_s) == ("https://prefix/simple", 7)


def test_a_chosen_file_replaces_the_users_and_wins(machine: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://user/\nproxy = http://p:1\n")
    write(tmp_path / "prefix/pip.conf", "[global]\nindex-url = https://prefix/\n")
    write(tmp_path / "chosen.conf", "[global]\nindex-url = https://chosen/\n")
    registry = read(machine, tmp_path)
    assert (registry.index_url, registry.proxy) == ("https://chosen/", None)


def test_a_command_section_wins_over_the_global_one_of_a_later_file(
    machine: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "[install]\nindex-url = https://install/\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://global/\n")
    assert read(machine, tmp_path).index_url == "https://install/"


def test_environment_variables_win_over_files_and_empty_ones_do_not(
    machine: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "chosen.conf", "[global]\nextra-index-url =\n    https://one/\n    https://two/\n")
    assert read(machine, tmp_path, PIP_EXTRA_INDEX_URL="").extra_index_urls == (
        "https://one/",
        "https://two/",
    )
    assert read(machine, tmp_path, PIP_EXTRA_INDEX_URL="https://three/").extra_index_urls == (
        "https://three/",
    )


def test_null_device_means_no_file_is_read(machine: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "prefix/pip.conf", "[global]\nindex-url = https://prefix/\n")
    assert read(machine, tmp_path, PIP_CONFIG_FILE=os.devnull) == Registry()


def test_folders_become_file_urls_spaces_and_hangul_included(machine: dict[str, str], tmp_path: Path) -> None:
    registry = read(machine, tmp_path, PIP_FIND_LINKS="~/휠 /opt/a,b", HOME=os.environ["HOME"])
    assert registry.find_links == (
        (Path.home() / "휠").as_uri(),
        "file:///opt/a%2Cb",
    )


def test_a_broken_file_is_named_without_its_contents(machine: dict[str, str], tmp_path: Path) -> None:
    path = write(tmp_path / "chosen.conf", "index-url = https://me:secret@host/\n")
    with pytest.raises(ModelError) as caught:
        read(machine, tmp_path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("PIP_NO_INDEX", "perhaps"), ("PIP_TIMEOUT", "long")])
def test_a_value_of_the_wrong_form_is_refused(
    machine: dict[str, str], tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(ModelError, match=value):
        read(machine, tmp_path, **{name: value})


def test_uv_gets_every_setting_under_its_own_name(tmp_path: Path) -> None:
    cert = write(tmp_path / "ca.pem", "")
    registry = Registry(
        index_url="https://main/simple",
        extra_index_urls=("https://extra/simple", tmp_path.as_uri()),
        find_links=(tmp_path.as_uri(), "https://page/a,b.html"),
        trusted_hosts=("one:8080", "two"),
        cert=cert,
        proxy="http://proxy:3128",
        timeout_s=180,
    )
    assert registry.uv_environment({}) == {
        "UV_DEFAULT_INDEX": "https://main/simple",
        "UV_INDEX": f"https://extra/simple {tmp_path.as_uri()}",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{tmp_path.as_uri()},https://page/a%2Cb.html",
        "UV_INSECURE_HOST": "one:8080 two",
        "SSL_CERT_FILE": str(cert),
        "HTTP_PROXY": "http://proxy:3128",
        "HTTPS_PROXY": "http://proxy:3128",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_without_an_index_uv_gets_the_folders_only(tmp_path: Path) -> None:
    registry = Registry("https://main/", ("https://extra/",), (tmp_path.as_uri(),), no_index=True)
    assert registry.uv_environment({}) == {"UV_FIND_LINKS": tmp_path.as_uri(), "UV_NO_INDEX": "1"}


def test_folders_that_do_not_exist_are_not_passed_on(tmp_path: Path) -> None:
    gone = (tmp_path / "gone").as_uri()
    assert Registry(extra_index_urls=(gone,), find_links=(gone,)).uv_environment({}) == {}


def test_what_the_user_set_for_uv_wins(machine: dict[str, str], tmp_path: Path) -> None:
    own = {"UV_DEFAULT_INDEX": "https://uv/simple", "UV_INDEX": "name=https://extra/?a=b"}
    registry = read(machine, tmp_path, PIP_INDEX_URL="https://pip/simple", **own)
    assert registry.index_url == "https://uv/simple"
    assert registry.extra_index_urls == ("https://extra/?a=b",)
    assert registry.uv_environment(own) == {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def test_credentials_are_never_shown() -> None:
    registry = Registry(
        "https://me:secret@main/simple",
        ("https://tok:secret@extra/simple?key=secret",),
        ("https://u:secret@links/",),
        proxy="http://p:secret@proxy:1",
    )
    assert "secret" not in repr(registry)
    assert redacted("https://tok:secret@extra/simple?key=secret#secret") == "https://extra/simple"
    assert redacted("file:///opt/wheels") == "file:///opt/wheels"


def test_the_files_are_those_of_pip(machine: dict[str, str], tmp_path: Path) -> None:
    assert pip_files(machine, tmp_path / "prefix") == [
        tmp_path / "xdg/pip/pip.conf",
        tmp_path / "etc/pip.conf",
        tmp_path / "home/.pip/pip.conf",
        tmp_path / "home/.config/pip/pip.conf",
        tmp_path / "prefix/pip.conf",
        tmp_path / "chosen.conf",
    ]
