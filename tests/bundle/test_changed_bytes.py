"""One changed byte anywhere in a bundle is found, named, and found before anything is switched."""

from __future__ import annotations

import random
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bundle.small import Silent, Small, install, says

from ondam.deploy import bundle_archive
from ondam.deploy.bundle_install import verify
from ondam.deploy.bundle_versions import Versions
from ondam.errors import BundleError


def flipped(one: Small, at: int, by: int, path: Path) -> Path:
    content = bytearray(one.path.read_bytes())
    content[at] ^= by
    path.write_bytes(content)
    return path


def refused(path: Path) -> BundleError:
    with pytest.raises(BundleError) as caught:
        verify(path, path.parent, None, Silent(), unsigned=True)
    return caught.value


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_at_any_place_is_found(one: Small, tmp_path: Path, data: st.DataObject) -> None:
    size = one.path.stat().st_size
    at = data.draw(st.integers(0, size - 1), label="at")
    by = data.draw(st.integers(1, 255), label="by")
    assert refused(flipped(one, at, by, tmp_path / "b")).code in {
        "bundle_damaged",
        "bundle_not_one",
        "bundle_manifest_broken",
        "bundle_format_newer",
    }


def test_a_changed_byte_in_a_signed_bundle_is_found_too(one: Small, key: Path, tmp_path: Path) -> None:
    from ondam.deploy.bundle_signature import sign

    signed = Small(tmp_path / "signed", one.manifest, one.sources)
    signature = sign(one.manifest.as_bytes(), key)
    signed.write(signed.path, one.manifest, signature)
    content = signed.path.read_bytes()
    at = content.index(signature)
    for place in random.Random(7).sample(range(at, at + len(signature)), 40):
        assert refused(flipped(signed, place, 1, tmp_path / "b")).code == "bundle_damaged"


@pytest.mark.parametrize("kind", ["script", "wheel", "lock", "model", "debian", "sbom", "licence"])
def test_it_is_named_with_what_was_expected_and_found_and_nothing_is_switched(
    one: Small, two: Small, versions: Versions, tmp_path: Path, kind: str
) -> None:
    install(one, versions)
    entry = next(entry for entry in two.manifest.files if entry.kind == kind)
    with tarfile.open(two.path) as archive:
        at = archive.getmember(entry.member).offset_data
    broken = Small(flipped(two, at, 0x20, tmp_path / "b"), two.manifest, two.sources)
    with pytest.raises(BundleError) as caught:
        install(broken, versions)
    told = str(caught.value)
    assert caught.value.code == "bundle_damaged"
    assert entry.path in told and entry.sha256 in told
    assert versions.current() == one.manifest.identity and says(versions) == "ondam 1.0"
    # What was whole is not fetched twice, and what was broken is.
    install(two, versions)
    assert says(versions) == "ondam 2.0"


def test_a_file_that_was_taken_out_is_named(one: Small, tmp_path: Path) -> None:
    path = tmp_path / "b"
    gone = next(entry for entry in one.manifest.files if entry.kind == "sbom")
    with tarfile.open(one.path) as whole, path.open("wb") as out:
        for member in whole.getmembers():
            if member.name != gone.member:
                content = whole.extractfile(member)
                assert content is not None
                out.write(bundle_archive.header(member.name, member.size) + content.read())
                out.write(bytes(-member.size % 512))
        out.write(bundle_archive.END)
    error = refused(path)
    assert error.facts["count"] == 1
    assert f"{gone.path}: missing" in str(error) and gone.sha256 in str(error)


@pytest.mark.parametrize("left", [0, 1, 511, 512, 3000, 40_000])
def test_a_bundle_that_was_cut_off_is_refused(one: Small, tmp_path: Path, left: int) -> None:
    path = tmp_path / "b"
    path.write_bytes(one.path.read_bytes()[:left])
    assert refused(path).code in {"bundle_not_one", "bundle_damaged"}


def test_what_is_put_behind_it_or_between_is_found(one: Small, tmp_path: Path) -> None:
    path = tmp_path / "b"
    content = one.path.read_bytes()
    path.write_bytes(content + b"\0")
    assert refused(path).code == "bundle_damaged"
    extra = bundle_archive.header("extra", 512) + bytes(512)
    at = content.index(bundle_archive.header(one.manifest.files[3].member, one.manifest.files[3].size))
    path.write_bytes(content[:at] + extra + content[at:])
    error = refused(path)
    assert "extra" in str(error) and error.facts["count"] == 1


@pytest.mark.parametrize("size", [-512, -1024, 1 << 63, 1 << 70])
def test_a_header_that_says_less_than_nothing_or_more_than_all_ends_the_reading(
    one: Small, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "b"
    content = one.path.read_bytes()
    at = content.index(bundle_archive.header(one.manifest.files[3].member, one.manifest.files[3].size))
    path.write_bytes(content[:at] + bundle_archive.header("extra", size) + bytes(512) + content[at:])
    assert refused(path).code == "bundle_damaged"


@pytest.mark.parametrize("size", [-1, -512, 1 << 40])
def test_no_more_than_a_head_is_read_of_what_stands_in_front(tmp_path: Path, size: int) -> None:
    path = tmp_path / "b"
    with path.open("wb") as out:
        out.write(bundle_archive.header(bundle_archive.CHECKSUMS, size))
        out.truncate(256 << 20)
    tracemalloc.start()
    try:
        assert refused(path).code in {"bundle_not_one", "bundle_damaged"}
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_of_files_that_do_not_belong_there_only_so_many_are_gathered(one: Small, tmp_path: Path) -> None:
    path = tmp_path / "b"
    content = one.path.read_bytes()
    at = content.index(bundle_archive.header(one.manifest.files[3].member, one.manifest.files[3].size))
    strangers = b"".join(bundle_archive.header(f"extra-{number}", 0) for number in range(500))
    path.write_bytes(content[:at] + strangers + content[at:])
    assert refused(path).facts["count"] == bundle_archive.MOST_STRANGERS


def test_every_broken_file_is_named_at_once(one: Small, tmp_path: Path) -> None:
    content = bytearray(one.path.read_bytes())
    with tarfile.open(one.path) as archive:
        for kind in ("debian", "licence", "model"):
            entry = next(entry for entry in one.manifest.files if entry.kind == kind)
            content[archive.getmember(entry.member).offset_data] ^= 1
    path = tmp_path / "b"
    path.write_bytes(content)
    assert refused(path).facts["count"] == 3
