"""What is there as source alone is built once, with the locked tools, for machines like this one alone."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bundle.small import HERE, Silent, wheel

from ondam.deploy.bundle_manifest import Target
from ondam.deploy.bundle_prebuilt import portable, wheel_of
from ondam.errors import BundleError
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines, read_engine

MINOR = f"3.{sys.version_info.minor}"
TARGET = Target(HERE.system, HERE.machine, MINOR)

BACKEND = """\
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "toy-1.0-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as out:
        info = "toy-1.0.dist-info/"
        out.writestr("toy.py", "flags = %r" % os.environ.get("CMAKE_ARGS"))
        out.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: toy\\nVersion: 1.0\\n")
        out.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: {tag}\\n")
        out.writestr(info + "RECORD", "")
    return name
"""

SOURCE = {
    "pyproject.toml": (
        '[build-system]\nrequires = ["backend"]\nbuild-backend = "backend"\n'
        '[project]\nname = "toy"\nversion = "1.0"\n'
    ),
    "PKG-INFO": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
}

MANIFEST = """\
name = "toyengine"
stage = "llm"
protocol = "openai"
licence = "MIT"
summary_en = "toy"
summary_ko = "장난감"
[launch]
command = ["{python}"]
[environment]
locks = { cpu = "requirements.lock" }
build_locks = { cpu = "build.lock" }
build_env = { CMAKE_ARGS = "-DNATIVE=ON" }
portable_env = { CMAKE_ARGS = "-DNATIVE=OFF" }
portable_flags = ["avx2"]
[capabilities]
languages = ["en"]
[needs]
memory_mib = 1
[limits]
busy_after_cancel_ms = 1
"""


@pytest.fixture
def mirrors(tmp_path: Path) -> dict[str, str]:
    """Nothing is reached but a folder of wheels."""
    return {"UV_FIND_LINKS": str(tmp_path), "UV_OFFLINE": "1", "UV_NO_INDEX": "1"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "toy-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        for name, text in SOURCE.items():
            info = tarfile.TarInfo(f"toy-1.0/{name}")
            info.size = len(text)
            out.addfile(info, io.BytesIO(text.encode()))
    return path


def engine_with(tmp_path: Path, tag: str) -> EngineFolder:
    """An engine whose locked build tool makes wheels with this tag."""
    tool = wheel(tmp_path, "backend", "1.0", {"backend.py": BACKEND.replace("{tag}", tag)})
    folder = tmp_path / "toyengine"
    folder.mkdir()
    (folder / "engine.toml").write_text(MANIFEST, "utf-8")
    digest = hashlib.sha256(tool.read_bytes()).hexdigest()
    (folder / "build.lock").write_text(f"backend==1.0 --hash=sha256:{digest}\n")
    return read_engine(folder)


def test_it_is_built_for_other_machines_too_once_and_kept(
    tmp_path: Path, source: Path, mirrors: dict[str, str]
) -> None:
    tag = f"cp3{MINOR[2:]}-cp3{MINOR[2:]}-linux_{HERE.machine}"
    engine, told = engine_with(tmp_path, tag), Silent()
    assert portable(engine, "cpu") == ({"CMAKE_ARGS": "-DNATIVE=OFF"}, ("avx2",))
    made = wheel_of(source, engine, "cpu", TARGET, tmp_path / "cache", mirrors, told)
    assert made.name == f"toy-1.0-{tag}.whl"
    assert b"-DNATIVE=OFF" in made.read_bytes()
    assert wheel_of(source, engine, "cpu", TARGET, tmp_path / "cache", mirrors, told) == made
    assert len(told.lines) == 1
    content = made.read_bytes()
    made.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert wheel_of(source, engine, "cpu", TARGET, tmp_path / "cache", mirrors, told) == made
    assert made.read_bytes()[0] == content[0] and len(told.lines) == 2, "what rotted is built again"
    for other in (replace(TARGET, machine="riscv64"), replace(TARGET, glibc="2.2")):
        with pytest.raises(BundleError) as caught:
            wheel_of(source, engine, "cpu", other, tmp_path / "cache", mirrors, told)
        assert caught.value.code == "bundle_cannot_compile"
    assert "cannot compile for linux" in str(caught.value) and "glibc 2.2." in str(caught.value)
    newer = replace(TARGET, glibc="2.100")
    assert wheel_of(source, engine, "cpu", newer, tmp_path / "cache", mirrors, told) == made


def test_a_build_that_fails_names_its_log(tmp_path: Path, source: Path, mirrors: dict[str, str]) -> None:
    engine = engine_with(tmp_path, "py3-none-any")
    (engine.path / "build.lock").write_text(f"backend==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BundleError) as caught:
        wheel_of(source, engine, "cpu", TARGET, tmp_path / "cache", mirrors, Silent())
    assert caught.value.code == "bundle_compile_failed"
    assert "hash" in Path(str(caught.value.facts["log"])).read_text("utf-8").lower()


def test_llama_cpp_is_carried_for_more_machines_than_the_one_that_compiles(tmp_path: Path) -> None:
    variables, flags = portable(find_engines(engine_roots(tmp_path))["llama_cpp"], "cuda")
    assert "-DGGML_NATIVE=OFF" in variables["CMAKE_ARGS"] and "avx2" in flags
    assert variables["SKBUILD_CMAKE_DEFINE"] == "LLAVA_BUILD=OFF;GGML_CUDA=ON"
