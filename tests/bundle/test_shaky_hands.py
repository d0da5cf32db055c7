"""What an operator types by mistake, and where: nobody's folders go, nothing waits, no traceback."""

from __future__ import annotations

import ast
import errno
import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bundle.small import ROOT, Small, first, install

from ondam.cli.bundle import command
from ondam.deploy.bundle_first import main
from ondam.deploy.bundle_manifest import Entry
from ondam.deploy.bundle_versions import Versions, default_bin, default_root, in_use
from ondam.errors import BundleError

INSTALL = ROOT / "packaging/bundle/install.py"


def refusal(*arguments: object) -> str:
    done = CliRunner().invoke(command, list(map(str, arguments)))
    assert isinstance(done.exception, BundleError), done.output
    return done.exception.code


def script(*arguments: object) -> tuple[int, str]:
    """``install.py`` with ``arguments``."""
    done = subprocess.run(
        [sys.executable, INSTALL, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("verb", ["prune", "install", "rollback"])
def test_a_folder_of_somebody_elses_is_no_place_of_versions(one: Small, tmp_path: Path, verb: str) -> None:
    # As a version manager of another program has it.
    mine = tmp_path / "other" / "versions" / "3.12" / "bin" / "python"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    bundle = [one.path, "--unsigned", "--bin", tmp_path / "bin"] if verb == "install" else []
    assert refusal(verb, *bundle, "--root", tmp_path / "other") == "bundle_root_foreign"
    assert mine.read_text() == "mine"
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["versions"]


@pytest.mark.parametrize("verb", ["prune", "rollback"])
def test_a_place_that_is_not_there_is_not_made(tmp_path: Path, verb: str) -> None:
    assert refusal(verb, "--root", tmp_path / "mistyped") == "bundle_none_installed"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["list", "verify", "install", "prune", "rollback"])
def test_a_place_that_may_not_be_looked_at_is_told(
    one: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def closed(path: Path) -> bool:
        if path.is_relative_to(tmp_path / "closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return os.path.exists(path)  # noqa: PTH110 - what is replaced cannot be asked

    monkeypatch.setattr(Path, "exists", closed)
    bundle = [one.path, "--unsigned"] if verb in {"verify", "install"} else []
    assert refusal(verb, *bundle, "--root", tmp_path / "closed" / "place") == "bundle_root_closed"


def test_what_runs_is_seen_through_a_link_to_the_place(versions: Versions, tmp_path: Path) -> None:
    folder = versions.folder("1.0")
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(versions.root)
    line = [sys.executable, "-c", "print(flush=True); input()", f"{folder}/venv/bin/ondam"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        try:
            assert in_use(Versions(tmp_path / "link").folder("1.0")) == [process.pid]
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("umask", "root", "mode"), [(0o077, True, 0o755), (0, True, 0o755), (0o027, False, 0o750)]
)
def test_root_installs_for_everybody_to_read_and_nobody_to_write(
    one: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int, root: bool, mode: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    versions = Versions(tmp_path / "place" / "root")
    before = os.umask(umask)
    try:
        folder = install(one, versions).folder
        assert os.umask(umask) == umask, "it is what it was"
    finally:
        os.umask(before)
    made = (versions.root.parent, versions.root, folder, folder / "venv", versions.launcher.parent)
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {mode}
    assert stat.S_IMODE((folder / "models/toy/model.bin").stat().st_mode) == mode & 0o644


def test_without_a_home_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_bin() is None
    with pytest.raises(BundleError) as caught:
        default_root()
    assert caught.value.code == "bundle_no_root"


def test_a_locale_without_its_letters_installs_all_the_same(one: Small, tmp_path: Path) -> None:
    bundle = tmp_path / "번들.bundle"
    bundle.hardlink_to(one.path)
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environ["PYTHONIOENCODING"] = "ascii:strict"
    line = first(0, bundle, "--unsigned", "--root", tmp_path / "뿌리", "--bin", tmp_path / "빈")
    # -I would leave the variables of Python out.
    done = subprocess.run(
        [part for part in line if part != "-I"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "빈" / "ondam").exists()


def test_a_pipe_is_no_bundle_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal("verify", tmp_path / "pipe", "--unsigned") == "bundle_unreadable"


def test_the_script_says_what_is_wrong_with_its_bundle(tmp_path: Path) -> None:
    missing, broken = tmp_path / "a.bundle", tmp_path / "b.bundle"
    broken.write_text("cut off")
    assert script("--root", tmp_path / "r", missing) == (1, f"{missing} is not there.\n")
    assert script(broken) == (
        1,
        f"{broken} is no bundle of Ondam, or its beginning is damaged. Copy it once more.\n",
    )
    code, told = script("--help", broken)
    assert (code, "--verify-only" in told and "--bin DIR" in told) == (0, True)
    assert script()[0] == 2


def test_the_script_speaks_the_language_of_whoever_runs_it(
    one: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LANG", "ko_KR.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    missing = tmp_path / "a.bundle"
    assert script(missing) == (1, f"{missing} 파일이 없습니다.\n")
    assert "--verify-only           모두 확인하고" in script("--help")[1]
    with pytest.raises(SystemExit) as ended:
        main([str(one.path), "--unsinged"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "이해하지 못했습니다" in told and "--unsinged" in told and "→ python3 install.py --help" in told
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert script(missing)[1] == f"{missing} is not there.\n"


def with_python(one: Small, path: Path) -> Path:
    """The same bundle with a Python that only says that it runs."""
    tar = path.with_suffix(".tar")
    program = b'#!/bin/sh\necho "carried: $@"\nexit 7\n'
    with tarfile.open(tar, "w") as out:
        info = tarfile.TarInfo("python/bin/python3.13")
        info.size, info.mode = len(program), 0o755
        out.addfile(info, io.BytesIO(program))
    sha256 = hashlib.sha256(tar.read_bytes()).hexdigest()
    entry = Entry("python/python.tar", "python", tar.stat().st_size, sha256)
    manifest = replace(one.manifest, files=(*one.manifest.files, entry))
    return Small(path, manifest, {**one.sources, entry.path: tar}).write(path, manifest)


OLD = """
import runpy, sys
sys.version_info = (3, 9, 0, "final", 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def by_an_older_python(folder: Path, *arguments: object) -> tuple[int, str]:
    """``install.py`` as a Python before 3.11 runs it; its temporary files go to ``folder``."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", OLD, INSTALL, *map(str, arguments)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_the_python_that_a_bundle_carries_goes_on_where_that_of_the_system_is_too_old(
    one: Small, tmp_path: Path
) -> None:
    ast.parse(INSTALL.read_text("utf-8"), feature_version=(3, 6))
    code, told = by_an_older_python(tmp_path / "t", one.path)
    assert code == 1 and "this is 3.9, and the bundle carries none" in told
    bundle = with_python(one, tmp_path / "a.bundle")
    code, told = by_an_older_python(tmp_path / "t", bundle, "--unsigned")
    assert (code, told) == (7, f"carried: {INSTALL} {bundle} --unsigned\n")
    content = bundle.read_bytes()
    bundle.write_bytes(content.replace(b"echo", b"evil"))
    code, told = by_an_older_python(tmp_path / "t", bundle)
    assert code == 1 and "is damaged: python/python.tar" in told
    assert list((tmp_path / "t").iterdir()) == [], "what it ran from is gone"
