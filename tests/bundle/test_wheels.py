"""Which file of a lock's line is carried, for a machine that need not be this one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ondam.deploy.bundle_manifest import Target
from ondam.deploy.bundle_wheels import as_lock, choose, glibc_of, pinned, tags
from ondam.errors import BundleError, ModelError
from ondam.models.registry import Registry
from ondam.models.wheels import open_client

DEBIAN_12 = Target("linux", "x86_64", "3.11")

LOCK = """\
# made by uv
alpha==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
alpha==2.0 ; python_full_version >= '3.12' \\
    --hash=sha256:{b}
beta==3.0 ; sys_platform == 'win32' \\
    --hash=sha256:{a}
gamma==4.0 ; platform_machine == 'aarch64' or platform_machine == 'x86_64' \\
    --hash=sha256:{a}
"""

A, B = "a" * 64, "b" * 64


def test_only_the_lines_for_the_target_are_wanted() -> None:
    lock = LOCK.format(a=A, b=B)
    assert [(pin.name, pin.version) for pin in pinned(lock, DEBIAN_12)] == [
        ("alpha", "1.0"),
        ("gamma", "4.0"),
    ]
    assert pinned(lock, DEBIAN_12)[0].hashes == {A, B}
    arm = Target("linux", "riscv64", "3.12")
    assert [(pin.name, pin.version) for pin in pinned(lock, arm)] == [("alpha", "2.0")]


def test_a_wheel_is_chosen_up_to_the_targets_glibc_and_never_for_another_machine() -> None:
    told = [str(tag) for tag in tags(DEBIAN_12, "2.28")]
    assert told[0] == "cp311-cp311-manylinux_2_28_x86_64"
    assert "cp311-cp311-manylinux_2_29_x86_64" not in told
    for fits in ("cp311-abi3-manylinux2014_x86_64", "cp39-abi3-manylinux_2_17_x86_64", "py3-none-any"):
        assert fits in told
    assert not any("aarch64" in tag or "musl" in tag or tag.startswith("cp312") for tag in told)


def test_the_glibc_that_all_carried_wheels_need_is_the_highest_of_their_lowest() -> None:
    names = [
        "a-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl",
        "b-1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "c-1-py3-none-any.whl",
    ]
    assert glibc_of(names) == "2.27"
    assert glibc_of(names[2:]) is None
    # What was compiled here runs with the glibc that it found here, or a newer one.
    compiled = [*names, "d-1-cp311-cp311-linux_x86_64.whl"]
    assert glibc_of(compiled, "2.41") == "2.41" and glibc_of(compiled, "2.17") == "2.27"
    assert glibc_of(names[2:], "2.41") is None


def offer(folder: Path, *names: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
    return {name: hashlib.sha256(name.encode()).hexdigest() for name in names}


def chosen(folder: Path, lock: str, glibc: str = "2.36") -> list[tuple[str, str, int | None]]:
    registry = Registry(find_links=(folder.as_uri(),), no_index=True)
    with open_client(registry) as client:
        notes = folder.parent / "choices.json"
        found = choose(pinned(lock, DEBIAN_12), tags(DEBIAN_12, glibc), registry, client, notes)
    return [(choice.filename, choice.sha256, choice.size) for choice in found]


def test_the_best_file_with_a_hash_of_the_lock_is_chosen_and_remembered(tmp_path: Path) -> None:
    best = "toy-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    names = (best, "toy-1.0-cp311-cp311-manylinux_2_99_x86_64.whl", "toy-1.0-py3-none-any.whl",
             "toy-1.0-cp311-cp311-manylinux_2_34_x86_64.whl", "toy-1.1-py3-none-any.whl")  # fmt: skip
    hashes = offer(tmp_path / "wheels", *names)
    # The one for 2.34 would be better, and is not in the lock.
    lock = "toy==1.0" + "".join(f" --hash=sha256:{hashes[names[n]]}" for n in (0, 1, 2, 4))
    assert chosen(tmp_path / "wheels", lock) == [(best, hashes[best], len(best))]
    for name in names:
        (tmp_path / "wheels" / name).unlink()
    # Interrupted and begun again: nobody is asked a second time.
    assert chosen(tmp_path / "wheels", lock)[0][0] == best
    assert len(json.loads((tmp_path / "choices.json").read_text())) == 1


def test_a_source_is_taken_where_there_is_no_wheel_and_nothing_where_there_is_neither(tmp_path: Path) -> None:
    hashes = offer(tmp_path / "wheels", "toy-1.0-cp312-cp312-linux_x86_64.whl", "toy-1.0.tar.gz")
    lock = "toy==1.0" + "".join(f" --hash=sha256:{sha256}" for sha256 in hashes.values())
    assert chosen(tmp_path / "wheels", lock)[0][0] == "toy-1.0.tar.gz"
    (tmp_path / "wheels/toy-1.0.tar.gz").unlink()
    (tmp_path / "choices.json").unlink()
    with pytest.raises(BundleError) as caught:
        chosen(tmp_path / "wheels", lock)
    assert caught.value.code == "bundle_no_wheel" and "toy 1.0" in str(caught.value)
    with pytest.raises(ModelError) as nothing:
        chosen(tmp_path / "wheels", f"other==1.0 --hash=sha256:{A}")
    assert nothing.value.code == "wheel_not_found"


def test_the_targets_list_accepts_the_carried_file_alone() -> None:
    assert as_lock([("b", "2", B), ("a", "1", A)]).decode() == (
        f"a==1 --hash=sha256:{A}\nb==2 --hash=sha256:{B}\n"
    )
