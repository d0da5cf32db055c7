from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import filelock
import pytest

from ondam.errors import EngineError
from ondam.messages import reader_language
from ondam.messages import text as message
from ondam.places import Places
from ondam.supervisor import environment
from ondam.supervisor.environment import build, built, installed, is_current, remove, variant_for
from ondam.supervisor.manifest import EngineFolder, Manifest, read_engine
from ondam.supervisor.stamp import STAMP, Stamp

BACKEND = """
import os, zipfile
def build_wheel(folder, settings=None, metadata=None):
    for n in (1, 2, 3):
        print(f"[{n}/3] Building C object {os.environ['FLAVOUR']}.o", flush=True)
    name, info = "thing-1.0-py3-none-any.whl", "thing-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("thing.py", f"flavour = {os.environ['FLAVOUR']!r}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
PROJECT += '[project]\nname = "thing"\nversion = "1.0"\n'
MANIFEST = """
name = "toy"
stage = "tts"
protocol = "wyoming"
licence = "Apache-2.0"
summary_en = "-"
summary_ko = "-"
launch = { command = ["{python}", "-m", "ondam_engines.toy.serve"] }
environment = { locks = { cpu = "requirements.lock" } }
capabilities = { languages = ["en"] }
needs = { memory_mib = 1 }
limits = { busy_after_cancel_ms = 1 }
"""


class Shelf:
    """No network: a folder of packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def uv_environment(self) -> dict[str, str]:
        return {
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.folder),
            "UV_CACHE_DIR": str(self.folder / ".cache"),
        }


class Steps:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int | None, int | None]] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.seen.append((text, done, total))


class Workshop:
    def __init__(self, root: Path) -> None:
        self.places = Places(root / "c", root / "d", root / "s", root / "r")
        self.folder = root / "engines" / "toy"
        self.shelf = Shelf(root / "shelf")
        self.shelf.folder.mkdir()
        self.folder.mkdir(parents=True)
        (self.folder / "engine.toml").write_text(MANIFEST)
        (self.folder / "requirements.lock").write_text("")
        (self.folder / "serve.py").write_text("print('one')")
        self.log = root / "build.log"
        self.steps = Steps()

    @property
    def engine(self) -> EngineFolder:
        return read_engine(self.folder)

    @property
    def compiled(self) -> EngineFolder:
        tables = self.engine.manifest.environment.model_copy(
            update={
                "locks": {"cpu": "requirements.lock", "cuda": "requirements.lock"},
                "build_locks": {"cpu": "build.lock", "cuda": "build.lock"},
                "build_env": {"FLAVOUR": "vanilla"},
                "variant_env": {"cuda": {"FLAVOUR": "cherry"}},
            }
        )
        return EngineFolder(self.folder, self.engine.manifest.model_copy(update={"environment": tables}))

    def build(self, engine: EngineFolder | None = None, variant: str = "cpu") -> str:
        return build(
            engine or self.engine,
            variant,
            self.places,
            registry=self.shelf,
            progress=self.steps,
            log=self.log,
        )

    def says(self) -> str:
        home = installed(self.engine, self.places)
        command = [str(home.python), "-m", "ondam_engines.toy.serve"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()

    def add_sdist(self) -> None:
        path = self.shelf.folder / "thing-1.0.tar.gz"
        metadata = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
        with tarfile.open(path, "w:gz") as tar:
            for name, text in (
                ("backend.py", BACKEND),
                ("pyproject.toml", PROJECT),
                ("PKG-INFO", metadata),
            ):
                member = tarfile.TarInfo(f"thing-1.0/{name}")
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        (self.folder / "requirements.lock").write_text(f"thing==1.0 --hash=sha256:{digest}\n")
        (self.folder / "build.lock").write_text("")


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_an_engine_runs_from_its_own_environment_and_sees_the_kit(shop: Workshop) -> None:
    (shop.folder / "serve.py").write_text(
        "import sys, ondam_engines.kit; print(sys.prefix); assert 'pytest' not in sys.modules"
    )
    assert shop.build() == "built"
    assert shop.says() == str(shop.places.environments / "toy")
    assert list(built(shop.places)) == ["toy"]


def test_nothing_is_done_when_nothing_changed(shop: Workshop) -> None:
    shop.build()
    before = (shop.places.environments / "toy" / "pyvenv.cfg").stat().st_mtime_ns
    assert shop.build() == "current"
    assert is_current(shop.engine, "cpu", shop.places)
    assert (shop.places.environments / "toy" / "pyvenv.cfg").stat().st_mtime_ns == before


def test_a_changed_program_is_copied_without_installing_anything(shop: Workshop) -> None:
    shop.build()
    inode = (shop.places.environments / "toy").stat().st_ino
    (shop.folder / "serve.py").write_text("print('two')")
    assert not is_current(shop.engine, "cpu", shop.places)
    assert shop.build() == "updated"
    assert (shop.says(), (shop.places.environments / "toy").stat().st_ino) == ("two", inode)


def test_a_changed_lock_makes_the_environment_anew(shop: Workshop) -> None:
    shop.build()
    (shop.folder / "requirements.lock").write_text("# other\n")
    assert shop.build() == "built"


def test_an_interrupted_build_is_begun_anew_and_never_used(shop: Workshop) -> None:
    shop.build()
    root = shop.places.environments / "toy"
    (root / STAMP).unlink()
    assert Stamp.read(root) is None and list(built(shop.places)) == []
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places)
    assert raised.value.code == "engine_not_built"
    leftover = shop.places.environments / ".toy.building"
    leftover.mkdir()
    (leftover / "half").touch()
    assert shop.build() == "built"
    assert shop.says() == "one" and not leftover.exists()


def test_a_failed_build_names_the_log_and_leaves_the_old_environment(shop: Workshop) -> None:
    shop.build()
    (shop.folder / "requirements.lock").write_text(f"missing==1.0 --hash=sha256:{'a' * 64}\n")
    with pytest.raises(EngineError) as raised:
        shop.build()
    assert (raised.value.code, raised.value.facts["log"]) == ("engine_build_failed", shop.log)
    assert "missing" in str(raised.value.facts["reason"]) and "missing" in shop.log.read_text()
    assert shop.says() == "one"


def test_a_wrong_hash_is_refused(shop: Workshop) -> None:
    shop.add_sdist()
    lock = shop.folder / "requirements.lock"
    lock.write_text(f"thing==1.0 --hash=sha256:{'b' * 64}\n")
    with pytest.raises(EngineError):
        shop.build(shop.compiled)
    assert not (shop.places.environments / "toy").exists()


def test_a_source_package_without_pinned_build_tools_is_refused(shop: Workshop) -> None:
    shop.add_sdist()
    with pytest.raises(EngineError):
        shop.build()


def test_compiling_shows_how_far_it_is(shop: Workshop) -> None:
    shop.add_sdist()
    assert shop.build(shop.compiled) == "built"
    counted = [step for step in shop.steps.seen if step[1] is not None]
    assert counted == [("Building C object vanilla.o", n, 3) for n in (1, 2, 3)]


def test_the_users_own_build_settings_win(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAVOUR", "chocolate")
    shop.add_sdist()
    shop.build(shop.compiled)
    (shop.folder / "serve.py").write_text("import thing; print(thing.flavour)")
    shop.build(shop.compiled)
    assert shop.says() == "chocolate"


def test_a_variant_of_the_same_source_is_compiled_with_its_own_variables(shop: Workshop) -> None:
    shop.add_sdist()
    (shop.folder / "serve.py").write_text("import thing; print(thing.flavour)")
    for variant, flavour in (("cpu", "vanilla"), ("cuda", "cherry"), ("cpu", "vanilla")):
        assert shop.build(shop.compiled, variant) == "built"
        assert shop.says() == flavour
        assert is_current(shop.compiled, variant, shop.places)


def test_two_builders_wait_for_each_other(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    lock = filelock.FileLock(shop.places.environments / ".toy.lock", thread_local=False)
    shop.places.environments.mkdir(parents=True)
    outcomes: list[str] = []
    with lock:
        second = threading.Thread(target=lambda: outcomes.append(shop.build()))
        second.start()
        while not shop.steps.seen:
            second.join(0.01)
        assert shop.steps.seen == [("이 엔진의 다른 빌드가 끝나기를 기다리는 중", None, None)]
        assert outcomes == []
    second.join()
    assert outcomes == ["built"]


def test_an_environment_can_be_removed(shop: Workshop) -> None:
    shop.build()
    assert remove("toy", shop.places) and not remove("toy", shop.places)
    assert list(built(shop.places)) == []


def test_a_variant_that_the_engine_does_not_have_is_named(shop: Workshop) -> None:
    with pytest.raises(EngineError) as raised:
        Stamp.wanted(shop.engine, "cu99")
    assert raised.value.facts["known"] == "cpu"
    assert variant_for(shop.engine) == "cpu"


def test_an_environment_of_another_variant_is_told_and_replaced(shop: Workshop) -> None:
    tables = 'locks = { cpu = "requirements.lock", cu13 = "cu13.lock" }, drivers = { cu13 = "580" }'
    (shop.folder / "engine.toml").write_text(
        MANIFEST.replace('locks = { cpu = "requirements.lock" }', tables)
    )
    (shop.folder / "cu13.lock").write_text("")
    assert shop.build() == "built"
    assert installed(shop.engine, shop.places, "cpu") == installed(shop.engine, shop.places)
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places, "cu13")
    told = raised.value.message("en")
    assert told.text == 'The environment of toy was built for "cpu"; the plan wants "cu13".'
    assert told.next == "ondam engines build toy --variant cu13"
    assert shop.build(variant="cu13") == "built"
    assert is_current(shop.engine, "cu13", shop.places) and not is_current(shop.engine, "cpu", shop.places)
    found = Stamp.read(shop.places.environments / "toy")
    assert found is not None and found.variant == "cu13"


def test_a_display_that_fails_does_not_leave_uv_running(shop: Workshop) -> None:
    begins = message("build_begins", reader_language())

    class Broken:
        def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
            if text != begins:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(shop.engine, "cpu", shop.places, registry=shop.shelf, progress=Broken(), log=shop.log)
    assert shop.build() == "built"


def test_every_shipped_manifest_has_its_locks() -> None:
    import ondam_engines
    from ondam.supervisor.manifest import find_engines

    for engine in find_engines(map(Path, ondam_engines.__path__)).values():
        wanted: Manifest = engine.manifest
        for lock in (*wanted.environment.locks.values(), *wanted.environment.build_locks.values()):
            assert (engine.path / lock).is_file(), f"{engine.name}: {lock}"
    assert environment.PERCENT.search("[ 45%] Building") and shutil.which("sh")


@pytest.mark.parametrize("where", ["toy/serve.py", "kit/server.py", "kit/new.py", "toy/engine.toml"])
def test_a_program_that_was_changed_after_it_was_built_is_named_and_not_started(
    shop: Workshop, where: str
) -> None:
    shop.build()
    home = installed(shop.engine, shop.places)
    changed = home.folder.parent / where
    with changed.open("a") as file:
        file.write("\nimport os\n")
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places)
    assert (raised.value.code, raised.value.facts["path"]) == ("engine_changed", changed)
    assert raised.value.message().next == "ondam engines remove toy && ondam engines build toy"


def test_one_that_is_older_than_the_package_is_what_it_was_built_from(shop: Workshop) -> None:
    shop.build()
    (shop.folder / "serve.py").write_text("print('two')")
    assert shop.says() == "one"
    (installed(shop.engine, shop.places).folder / "serve.py").unlink()
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places)
    assert raised.value.code == "engine_changed"


def test_a_lock_that_is_gone_is_named(shop: Workshop) -> None:
    (shop.folder / "requirements.lock").unlink()
    with pytest.raises(EngineError) as raised:
        shop.build()
    assert raised.value.code == "engine_lock_missing"
    assert raised.value.facts["path"] == shop.folder / "requirements.lock"


def test_a_place_that_cannot_be_written_is_named(shop: Workshop) -> None:
    shop.places.environments.parent.mkdir(parents=True)
    shop.places.environments.write_text("no folder")
    with pytest.raises(EngineError) as raised:
        shop.build()
    assert raised.value.code == "engine_environment_unwritable"
    assert str(raised.value.facts["path"]) == str(shop.places.environments)


def test_no_right_to_write_is_told_by_building_and_removing(shop: Workshop) -> None:
    shop.build()
    (shop.folder / "requirements.lock").write_text("# another\n")
    lock = shop.places.environments / ".toy.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()  # no file can be made there, not even by the superuser
    for change in (shop.build, lambda: remove("toy", shop.places)):
        with pytest.raises(EngineError) as raised:
            change()
        assert raised.value.code == "engine_environment_unwritable"
        assert str(raised.value.facts["path"]) == str(lock)
    assert shop.says() == "one"


def test_a_build_that_was_killed_before_it_was_swapped_in_is_taken_up(shop: Workshop) -> None:
    shop.build()
    root = shop.places.environments / "toy"
    root.rename(root.with_name(".toy.building"))
    (root.parent / ".toy.old").mkdir()
    began = len(shop.steps.seen)
    assert shop.build() == "built"
    assert shop.steps.seen[began:] == []  # nothing was installed again
    assert shop.says() == "one"
    assert not (root.parent / ".toy.old").exists()


def test_an_environment_that_is_a_link_to_nowhere_is_made_anew(shop: Workshop) -> None:
    shop.places.environments.mkdir(parents=True)
    (shop.places.environments / "toy").symlink_to("nowhere")
    (shop.places.environments / ".toy.building").symlink_to("nowhere")
    assert shop.build() == "built"
    assert shop.says() == "one"


def test_an_environment_whose_python_is_gone_is_not_whole_and_is_made_anew(shop: Workshop) -> None:
    shop.build()
    python = installed(shop.engine, shop.places).python
    python.unlink()
    python.symlink_to("/nowhere/python3")  # as after the system's Python was taken away
    assert not is_current(shop.engine, "cpu", shop.places)
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places)
    assert raised.value.code == "engine_not_built"
    assert shop.build() == "built"
    assert shop.says() == "one"


@pytest.mark.parametrize(
    "stamp",
    ["", "{", "[]", "3", "[" * 100_000, '{"packages": 5, "source": [], "variant": {}}', '{"packages": "a"}'],
    ids=lambda stamp: stamp[:20],
)
def test_a_stamp_that_is_none_is_of_an_environment_that_was_not_finished(shop: Workshop, stamp: str) -> None:
    shop.build()
    (shop.places.environments / "toy" / STAMP).write_text(stamp)
    assert list(built(shop.places)) == []
    with pytest.raises(EngineError) as raised:
        installed(shop.engine, shop.places)
    assert raised.value.code == "engine_not_built"
    assert shop.build() == "built"
