"""A bundle for another machine is refused with the difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.bundle.small import Silent, Small, install, retargeted

from ondam.deploy.bundle_install import Installation
from ondam.deploy.bundle_manifest import Entry, Target
from ondam.deploy.bundle_target import MARGIN, System, differences, refuse
from ondam.deploy.bundle_versions import Versions
from ondam.errors import BundleError

TARGET = Target(
    "linux", "x86_64", "3.11", glibc="2.28", driver=580, cpu_flags=("avx2", "fma"), release="bookworm"
)

FITS = System(
    "linux", "x86_64", ("3.11",), "2.36", "580.65.06", frozenset({"avx2", "fma", "sse2"}), "bookworm", 1 << 40
)


def told(one: Small, system: System, target: Target = TARGET) -> list[str]:
    manifest = replace(one.manifest, target=target, installed_size=10_000_000)
    return [str(difference) for difference in differences(manifest, system)]


def test_the_machine_that_it_was_made_for_fits(one: Small) -> None:
    assert told(one, FITS) == []


@pytest.mark.parametrize(
    ("system", "difference"),
    [
        (replace(FITS, system="darwin"), "operating system: for linux, this is darwin"),
        (replace(FITS, machine="aarch64"), "processor: for x86_64, this is aarch64"),
        (
            replace(FITS, pythons=("3.13",)),
            "Python: for 3.11, here is 3.13; a bundle can carry its own (create --python)",
        ),
        (replace(FITS, glibc="2.27"), "glibc: 2.28 or newer, here is 2.27"),
        (replace(FITS, glibc=None), "glibc: 2.28 or newer, here is –"),
        (replace(FITS, driver="570.10"), "NVIDIA's driver: 580 or newer, here is 570.10"),
        (replace(FITS, driver=None), "NVIDIA's driver: 580 or newer, here is –"),
        (replace(FITS, cpu_flags=frozenset({"fma"})), "the processor lacks avx2 (needed: avx2 fma)"),
        (replace(FITS, free=MARGIN), "disk: 278 MB are needed while it is installed, 268 MB are free"),
    ],
)
def test_each_difference_is_told(one: Small, system: System, difference: str) -> None:
    assert told(one, system) == [difference]


def test_all_of_them_are_told_at_once(one: Small) -> None:
    assert len(told(one, System("darwin", "arm", (), None, None, frozenset(), None, 0))) == 7


def test_a_newer_glibc_and_a_newer_driver_fit(one: Small) -> None:
    assert told(one, replace(FITS, glibc="2.100", driver="1000")) == []


def test_what_the_system_does_not_tell_of_its_processor_is_not_held_against_it(one: Small) -> None:
    assert told(one, replace(FITS, cpu_flags=None)) == []


def test_another_python_does_not_matter_where_one_is_carried(one: Small) -> None:
    carried = replace(one.manifest, files=(*one.manifest.files, Entry("python/p.tar", "python", 1, "0" * 64)))
    assert differences(replace(carried, target=TARGET), replace(FITS, pythons=())) == []


def test_the_wrong_machine_changes_nothing(
    one: Small, two: Small, versions: Versions, tmp_path: Path
) -> None:
    install(one, versions)
    wrong = retargeted(two, replace(two.manifest.target, machine="riscv64"), tmp_path / "b")
    with pytest.raises(BundleError) as caught:
        Installation(wrong, versions, Silent()).run(None, unsigned=True)
    assert caught.value.code == "bundle_wrong_target" and "for riscv64" in str(caught.value)
    assert [version.identity for version in versions.all()] == [one.manifest.identity]
    assert not versions.incoming.exists()


def advised(one: Small, system: System) -> tuple[str, str, str]:
    manifest = replace(one.manifest, target=TARGET, installed_size=10_000_000)
    with pytest.raises(BundleError) as caught:
        refuse(Path("/media/a.bundle"), manifest, system, Path("/opt/ondam"))
    return caught.value.code, caught.value.message("en").next, caught.value.message("ko").next


def test_where_only_room_is_lacking_it_is_said_how_much_to_free_and_where(one: Small) -> None:
    # 10,000,000 bytes and the margin of 268,435,456 are wanted; 200,000,001 are free: 78,435,455 lack.
    code, english, korean = advised(one, replace(FITS, free=200_000_001))
    assert code == "bundle_disk_short"
    assert english == "Free 79 MB on the disk of /opt/ondam, or name a folder on another disk: --root DIR"
    assert "79 MB" in korean and "/opt/ondam" in korean and "create" not in korean


def test_a_driver_that_is_too_old_can_be_mended_here(one: Small) -> None:
    code, english, _ = advised(one, replace(FITS, driver="570.10"))
    assert code == "bundle_wrong_target"
    assert english.startswith("Install NVIDIA's driver 580 or newer, or make a bundle for this machine")


def test_another_processor_takes_another_bundle_and_room_all_the_same(one: Small) -> None:
    _, english, _ = advised(one, replace(FITS, machine="aarch64", free=0))
    assert english == (
        "Make one for this machine: ondam bundle create --help "
        "And free 279 MB on the disk of /opt/ondam, or name a folder on another disk: --root DIR"
    )
    assert "free" not in advised(one, replace(FITS, machine="aarch64"))[1]


def test_an_installation_without_room_changes_nothing_and_says_what_to_free(
    one: Small, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 1_000_000}))
    with pytest.raises(BundleError) as caught:
        install(one, versions)
    assert caught.value.code == "bundle_disk_short"
    assert f"on the disk of {versions.root}" in caught.value.message("en").next
    assert versions.all() == [] and not versions.incoming.exists()
