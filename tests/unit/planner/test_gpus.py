from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.unit.planner.fake_nvml import GIB, FakeCard, FakeNvml

from ondam.messages import message
from ondam.places import places
from ondam.planner import gpus, nvml
from ondam.planner.gpus import Neighbour, Sight, vulkan_drivers
from ondam.planner.probe import probe
from ondam.supervisor.family import INSTANCE


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file system of its own in which NVIDIA's driver is loaded."""
    monkeypatch.setattr(gpus, "ROOT", tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path / "home"))
    return tmp_path


def saying(answer: object) -> Sequence[str]:
    return (sys.executable, "-c", f"print({json.dumps(answer)!r})")


def look(*cards: FakeCard, environ: Mapping[str, str] | None = None) -> Sight:
    return gpus.look(environ or {}, ask=saying(nvml.look(FakeNvml([*cards]))))


def test_what_is_on_a_card_and_not_ours_is_a_neighbours() -> None:
    (card,) = look(FakeCard(used=20 * GIB, compute={os.getppid(): 12 * GIB})).cards
    assert (card.total_mib, card.free_mib, card.neighbours_mib) == (140 * 1024, 119 * 1024, 20 * 1024)
    assert card.neighbours is not None
    assert [(n.pid, n.mib) for n in card.neighbours] == [(os.getppid(), 12 * 1024)]


def test_our_own_engines_memory_is_free_for_the_next_plan() -> None:
    environ = {**os.environ, INSTANCE: places().runtime.name}
    engine = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ)
    try:
        (card,) = look(FakeCard(used=20 * GIB, compute={engine.pid: 12 * GIB})).cards
    finally:
        engine.communicate(b"\n")
    assert (card.free_mib, card.neighbours_mib, card.neighbours) == (131 * 1024, 8 * 1024, ())


def test_a_process_of_another_container_has_no_name() -> None:
    (card,) = look(FakeCard(used=GIB, compute={2**22 + 5: None})).cards
    assert card.neighbours == (Neighbour(2**22 + 5, "?", None),)


def test_a_driver_that_hangs_is_waited_for_no_longer_than_said() -> None:
    began = time.monotonic()
    hung = (sys.executable, "-c", "import time; time.sleep(60)")
    sight = gpus.look({}, ask=hung, longest_s=0.2)
    assert time.monotonic() - began < 10
    assert (sight.cards, str(sight.trouble)) == (
        (),
        "NVIDIA's driver did not answer within 0.2 s; it seems to hang.",
    )


@pytest.mark.parametrize("script", ["raise SystemExit('no symbol x')", "import os; os.abort()"])
def test_a_driver_that_kills_whoever_asks_is_a_told_reason(script: str) -> None:
    sight = gpus.look({}, ask=(sys.executable, "-c", script))
    assert sight.cards == () and sight.trouble is not None
    assert sight.trouble.code == "gpu_driver_fails"


def test_a_mismatch_of_driver_and_library_says_to_restart() -> None:
    sight = gpus.look({}, ask=saying(nvml.look(FakeNvml(init_fails=18))))
    assert sight.trouble is not None and "Driver/library version mismatch" in str(sight.trouble)
    assert message(sight.trouble.code, "en").next == "Restart the machine."


def test_without_driver_and_card_nothing_is_asked_and_nothing_missing(root: Path) -> None:
    (root / "dev/nvidiactl").unlink()
    sight = gpus.look({}, ask=("/does/not/exist",))
    assert sight.absent and str(sight.trouble) == "This machine has no NVIDIA GPU."


@pytest.mark.parametrize(("kind", "found"), [("0x030000", True), ("0x030200", True), ("0x040300", False)])
def test_a_card_whose_driver_is_not_loaded_is_told(root: Path, kind: str, found: bool) -> None:
    (root / "dev/nvidiactl").unlink()
    device = root / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text(kind + "\n")
    sight = gpus.look({})
    assert sight.absent is not found
    assert sight.trouble is not None
    assert sight.trouble.code == ("gpu_no_driver" if found else "gpu_none")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("1,0", ["B", "A"]),
        ("GPU-b", ["B"]),
        ("0,9,1", ["A"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
    ],
)
def test_only_cards_that_cuda_would_show_us_count(value: str, names: list[str]) -> None:
    cards = FakeCard("A", uuid="GPU-a1"), FakeCard("B", uuid="GPU-b2")
    sight = look(*cards, environ={"CUDA_VISIBLE_DEVICES": value})
    assert [card.name for card in sight.cards] == names
    assert (sight.trouble is None) == bool(names)


def test_of_a_card_that_is_cut_in_slices_a_program_gets_one() -> None:
    slices: list[FakeCard | None] = [
        FakeCard("A MIG 3g.40gb", uuid="MIG-1", total=40 * GIB),
        FakeCard("A MIG 1g.10gb", uuid="MIG-2", total=10 * GIB),
    ]
    cards = FakeCard("B", uuid="GPU-b"), FakeCard("A", uuid="GPU-a", slices=slices)
    assert [card.name for card in look(*cards).cards] == ["A MIG 3g.40gb"]
    named = look(*cards, environ={"CUDA_VISIBLE_DEVICES": "MIG-2"})
    assert [card.name for card in named.cards] == ["A MIG 1g.10gb"]


def test_facts_hold_the_cards_in_gib() -> None:
    gpu = probe(look(FakeCard(used=20 * GIB))).gpus[0]
    assert (gpu.name, gpu.vram_gib, gpu.free_gib, gpu.neighbours_gib) == ("NVIDIA H200", 140.0, 119.0, 20.0)
    assert (gpu.driver, gpu.compute_capability, gpu.bandwidth_gb_s) == ("580.65.06", "9.0", 4916.7)


def test_a_card_without_memory_of_its_own_has_the_machines() -> None:
    facts = probe(look(FakeCard("NVIDIA GB10", fails={"GetMemoryInfo": 3, "GetMemoryBusWidth": 3})))
    (gpu,) = facts.gpus
    assert facts.unified_memory and facts.memory_gb_s == gpu.bandwidth_gb_s == 273
    assert gpu.vram_gib == round(facts.memory_mib / 1024, 2) and gpu.free_gib <= gpu.vram_gib
    assert gpu.neighbours_gib is None


def test_what_is_not_known_is_left_out_of_the_facts(root: Path) -> None:
    facts = probe(Sight(absent=True), folder=root)
    told = facts.as_json()
    assert (told["gpus"], facts.unified_memory) == ([], False) and "memory_gb_s" not in told
    assert facts.disk_free_gib is not None and facts.disk_free_gib > 0


def test_vulkan_is_its_loader_and_a_driver_for_real_hardware(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root / "usr/share/vulkan/icd.d"
    folder.mkdir(parents=True)
    (folder / "lvp_icd.x86_64.json").touch()
    monkeypatch.setattr("ctypes.util.find_library", lambda _: "libvulkan.so.1")
    assert vulkan_drivers({}) == ()
    (folder / "radeon_icd.x86_64.json").touch()
    assert vulkan_drivers({}) == ("radeon_icd.x86_64",)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    assert vulkan_drivers({}) == ()
