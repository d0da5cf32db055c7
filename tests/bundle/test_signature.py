"""Who made a bundle: signatures by keys of OpenSSH, and what happens without one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.bundle.small import Silent, Small, says, small

from ondam.deploy import bundle_signature
from ondam.deploy.bundle_install import Installation, verify
from ondam.deploy.bundle_versions import Versions
from ondam.errors import BundleError


@pytest.fixture(scope="module")
def signed(key: Path, tmp_path_factory: pytest.TempPathFactory) -> Small:
    return small(tmp_path_factory.mktemp("signed"), "3.0", key=key)


def code(path: Path, signers: Path | None, *, unsigned: bool = False) -> str:
    with pytest.raises(BundleError) as caught:
        verify(path, path.parent, signers, Silent(), unsigned=unsigned)
    return caught.value.code


def test_a_bundle_is_taken_from_whoever_is_on_the_list(signed: Small, key: Path, versions: Versions) -> None:
    told = Silent()
    Installation(signed.path, versions, told).run(key.with_name("signers"))
    assert "Signed by ops@example.org." in told.lines
    assert says(versions) == "ondam 3.0"


def test_a_key_that_is_not_on_the_list_does_not_count(signed: Small, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"somebody@example.org {other.with_suffix('.pub').read_text('utf-8')}", "utf-8")
    assert code(signed.path, signers) == "bundle_signer_unknown"


def test_a_signature_of_another_manifest_does_not_count(
    signed: Small, one: Small, key: Path, tmp_path: Path
) -> None:
    path = tmp_path / "b"
    one.write(path, one.manifest, bundle_signature.sign(signed.manifest.as_bytes(), key))
    assert code(path, key.with_name("signers")) == "bundle_signature_wrong"


def test_a_signature_for_another_purpose_does_not_count(one: Small, key: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(one.manifest.as_bytes())
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "git", text], check=True)
    path = tmp_path / "b"
    one.write(path, one.manifest, text.with_suffix(".sig").read_bytes())
    assert code(path, key.with_name("signers")) == "bundle_signature_wrong"


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ('alice namespaces="git" {}\nreleases namespaces="ondam-bundle" {}', "releases"),
        ('# ours\n\n"alice, the first" namespaces="git" {}\n"ops" {}', "ops"),
        ('old valid-before="20200101" {}\nnew {}', "new"),
        ("!bad,*@example.org {}", "*@example.org"),
        ('alice namespaces="git" {}\nbob namespaces="file" {}', None),
        ('alice valid-before="20200101" {}', None),
    ],
)
def test_a_key_may_be_listed_for_several_purposes(
    key: Path, tmp_path: Path, lines: str, who: str | None
) -> None:
    public = key.with_suffix(".pub").read_text("utf-8").strip()
    (tmp_path / "signers").write_text(lines.replace("{}", public) + "\n", "utf-8")
    signature = bundle_signature.sign(b"told", key)
    if who is not None:
        assert bundle_signature.verify(b"told", signature, tmp_path / "signers") == who
    else:
        with pytest.raises(BundleError):
            bundle_signature.verify(b"told", signature, tmp_path / "signers")
    with pytest.raises(BundleError):
        bundle_signature.verify(b"told otherwise", signature, tmp_path / "signers")


def test_without_a_signature_it_is_taken_only_when_that_is_said_and_it_is_told(one: Small) -> None:
    assert code(one.path, None) == "bundle_unsigned"
    told = Silent()
    assert verify(one.path, one.path.parent, None, told, unsigned=True).signer is None
    assert "not signed" in told.lines[0]


def test_a_signed_one_needs_a_list_or_the_word_that_nobody_checks_it(signed: Small) -> None:
    assert code(signed.path, None) == "bundle_signers_unknown"
    assert code(signed.path, Path("/nowhere")) == "bundle_signers_missing"
    told = Silent()
    verify(signed.path, signed.path.parent, None, told, unsigned=True)
    assert "the signature is not checked" in told.lines[0]


def test_signing_needs_a_key_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as caught:
        bundle_signature.sign(b"text", tmp_path / "내 키")
    assert caught.value.code == "bundle_key_missing"
    assert caught.value.message("en").next == f"ssh-keygen -t ed25519 -f '{tmp_path / '내 키'}'"
    (tmp_path / "broken").write_text("no key")
    with pytest.raises(BundleError) as caught:
        bundle_signature.sign(b"text", tmp_path / "broken")
    assert caught.value.code == "bundle_sign_failed"
