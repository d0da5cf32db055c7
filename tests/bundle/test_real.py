"""A bundle made here installs and completes ``ondam demo`` without a network, from its files alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uv
from packaging.utils import canonicalize_name
from tests.bundle.real import ENGINES, Made, hidden
from tests.bundle.small import Small, says
from tests.bundle.small import install as install_small

from ondam.deploy import bundle_sbom
from ondam.deploy.bundle_versions import Versions

pytestmark = [pytest.mark.engines, pytest.mark.timeout(400)]

ALONE = """
set -e
ip link set lo up
for folder in $HIDDEN; do [ ! -d "$folder" ] || mount -t tmpfs none "$folder"; done
mkdir -p "$HOME"
exec "$@"
"""
"""In a network and a view of the disk of its own: nothing of ours is there but what the bundle brings."""


@dataclass(frozen=True)
class Site:
    """A machine that has Debian's Python and the file, as far as one can be had here."""

    folder: Path
    python: str

    def run(self, *command: object, **settings: Any) -> subprocess.CompletedProcess[str]:
        """In there."""
        return subprocess.run(
            self.command(*command), env=self.environment, cwd=self.folder, capture_output=True, text=True,
            check=False, **settings,
        )  # fmt: skip

    def command(self, *command: object) -> list[str]:
        """What has to be run for ``command`` to run in there."""
        inside = ["unshare", "--net", "--mount", "--", "sh", "-c", ALONE, "sh"]
        return [*inside, *map(str, command)]

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of ours, and a HOME that is empty."""
        return {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8",
            "HOME": str(self.folder / "home"),
            "HIDDEN": " ".join(map(str, hidden(Path(self.python), self.folder))),
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    wanted = f"python3.{sys.version_info.minor}"
    own = str(Path(sys.base_prefix) / "bin" / wanted)
    return Site(tmp_path_factory.mktemp("site"), shutil.which(wanted, path="/usr/bin") or own)


def test_a_real_bundle(
    made: Made, one: Small, site: Site, record_property: Callable[[str, object], None]
) -> None:
    folder, manifest = site.folder, made.manifest
    bundle = folder / "ondam.bundle"
    bundle.hardlink_to(made.path)
    shutil.copy(made.signers, folder / "signers")
    done = site.run("tar", "-xf", bundle, "install.py")
    assert done.returncode == 0, done.stderr
    install = [site.python, "install.py", bundle, "--allowed-signers", "signers", "--root", folder / "root"]
    install += ["--bin", folder / "bin"]
    versions = Versions(folder / "root")

    # Killed while the engines' environments are made, it leaves what ran before; the next one goes on.
    before = install_small(one, versions)
    killed_in_the_middle(site, install, versions)
    assert says(versions) == "ondam 1.0"
    assert versions.current() == before.identity and versions.all() == [before]

    began = time.monotonic()
    done = site.run(*install, timeout=200)
    installed = time.monotonic() - began
    assert done.returncode == 0, done.stderr + done.stdout
    assert versions.current() == manifest.identity
    assert not versions.incoming.exists()

    began = time.monotonic()
    demo = [folder / "bin/ondam", "demo", "--language", "en", "--quiet", "--json"]
    done = site.run(*demo, "--out", folder / "answer.wav", timeout=200)
    answered = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (turn,) = told["turns"]
    assert turn["outcome"] == "answered" and turn["audio"]["seconds"] > 0
    assert {engine["name"] for engine in told["engines"]} >= {"faster_whisper", "llama_server", "piper"}
    record_property("seconds", {"create": made.seconds, "install": installed, "demo": answered})
    print(f"create {made.seconds:.0f} s, install {installed:.1f} s, demo {answered:.1f} s")

    listed = site.run(folder / "bin/ondam", "bundle", "list", "--json")
    rows = {row["state"]: row["engines"] for row in json.loads(listed.stdout)}
    assert rows == {"current": list(ENGINES), "previous": []}


def killed_in_the_middle(site: Site, install: Sequence[object], versions: Versions) -> None:
    with subprocess.Popen(
        site.command(*install), env=site.environment, cwd=site.folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any("environment of espeak" in line for line in process.stderr)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    assert versions.folder("").is_dir()


def test_it_carries_what_an_auditor_asks_for(made: Made) -> None:
    manifest = made.manifest
    paths = {entry.path for entry in manifest.files}
    for name in ("ondam", *ENGINES):
        assert f"sbom/{name}.cdx.json" in paths and f"locks/{name}.txt" in paths
    assert {"licences/overview.tsv", "install.py", "README.txt"} <= paths
    assert any(path.startswith("debian/libportaudio2_") for path in paths)
    assert any(path.startswith("wheels/uv-") for path in paths)
    contents = read(made)
    sbom = json.loads(contents["sbom/faster_whisper.cdx.json"])
    assert sbom["bomFormat"] == "CycloneDX"
    lock = contents["locks/faster_whisper.txt"].decode()
    named = {(canonicalize_name(each["name"]), each["version"]) for each in sbom["components"]}
    for line in lock.splitlines():
        name, _, version = line.partition(" ")[0].partition("==")
        assert (canonicalize_name(name), version) in named, line
    overview = contents["licences/overview.tsv"].decode()
    assert "model-whisper-base\t\tMIT\tlicences/model-whisper-base/MIT.txt" in overview
    texts = [line.split("\t")[3] for line in overview.splitlines()[1:]]
    assert all(text == "-" or set(text.split(" ")) <= paths for text in texts if " " not in text)
    # Debian's Python 3.11 and glibc 2.36 have to do for it.
    glibc = manifest.target.glibc
    assert glibc is not None and tuple(map(int, glibc.split("."))) <= (2, 36)


def head_faults(sbom: bytes) -> str:
    """What is wrong with what every reader looks at first."""
    told = json.loads(sbom)
    head = (told["bomFormat"], told["specVersion"], all(each["purl"] for each in told["components"]))
    return "" if head == ("CycloneDX", "1.6", True) else str(head)


def schema_faults(sbom: bytes) -> str:
    """What CycloneDX's own schema has against it."""
    code = (
        "import sys; from cyclonedx.schema import SchemaVersion as V;"
        "from cyclonedx.validation.json import JsonStrictValidator as J;"
        "print(J(V.V1_6).validate_str(sys.stdin.read()) or '')"
    )
    tool = [uv.find_uv_bin(), "tool", "run", "--quiet", "--no-config", "--from", bundle_sbom.TOOL]
    done = subprocess.run(
        [*tool, "python", "-c", code], input=sbom.decode(), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "faults",
    [
        head_faults,
        pytest.param(schema_faults, marks=pytest.mark.thorough),
    ],
)
def test_its_sboms_are_cyclonedx(made: Made, faults: Callable[[bytes], str]) -> None:
    sboms = [content for path, content in read(made).items() if path.endswith(".cdx.json")]
    assert len(sboms) == 1 + len(ENGINES)
    assert [faults(sbom) for sbom in sboms] == [""] * len(sboms)


def read(made: Made) -> dict[str, bytes]:
    """Small files of the bundle."""
    import tarfile

    found = {}
    with tarfile.open(made.path) as archive:
        members = {member.name: member for member in archive.getmembers()}
        for entry in made.manifest.files:
            if entry.kind in {"sbom", "lock", "licence"}:
                content = archive.extractfile(members[entry.member])
                assert content is not None
                found[entry.path] = content.read()
    return found
