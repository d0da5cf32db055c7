"""Who made a bundle: signatures of OpenSSH, so that operators use keys and lists that they already have.

The manifest is signed in the namespace ``ondam-bundle``: a signature made for anything else does not count.
Standard library only.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ondam.errors import BundleError

NAMESPACE = "ondam-bundle"

MOST_NAMES = 200
"""Of a list that are tried."""

PROGRAM = "ssh-keygen"
"""Debian: openssh-client."""


def sign(text: bytes, key: Path) -> bytes:
    """The signature of ``text`` by the private ``key`` (or by the agent that holds it, given the public one).

    Raises BundleError.
    """
    if not key.exists():
        raise BundleError("bundle_key_missing", path=shlex.quote(str(key)))
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        file = Path(folder) / "manifest.json"
        file.write_bytes(text)
        # A passphrase is asked for on the terminal.
        done = subprocess.run(
            [_program(), "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            raise BundleError("bundle_sign_failed", path=key, reason=_told(done.stderr))
        return file.with_name("manifest.json.sig").read_bytes()


def verify(text: bytes, signature: bytes, allowed_signers: Path) -> str:
    """Who signed ``text``, as the file ``allowed_signers`` names them. Raises BundleError."""
    if not allowed_signers.is_file():
        raise BundleError("bundle_signers_missing", path=allowed_signers)
    program = _program()
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        file = Path(folder) / "manifest.json.sig"
        file.write_bytes(signature)
        who = subprocess.run(
            [program, "-Y", "find-principals", "-f", str(allowed_signers), "-s", str(file)],
            capture_output=True,
            check=False,
        )
        names = who.stdout.decode("utf-8", "replace").splitlines()
        if who.returncode != 0 or not names:
            raise BundleError("bundle_signer_unknown", path=allowed_signers, reason=_told(who.stderr))
        # The first of them may be listed for another purpose: the same key under another name may not.
        candidates = list(dict.fromkeys((*names, *_names(allowed_signers))))[:MOST_NAMES]
        refusals = []
        for name in candidates:
            command = [program, "-Y", "verify", "-f", str(allowed_signers), "-I", name, "-n", NAMESPACE]
            done = subprocess.run([*command, "-s", str(file)], input=text, capture_output=True, check=False)
            if done.returncode == 0:
                return name
            refusals.append(_told(done.stderr or done.stdout))
    raise BundleError("bundle_signature_wrong", name=names[0], reason=refusals[0])


def _names(allowed_signers: Path) -> list[str]:
    """Everybody on the list (ssh-keygen(1), ALLOWED SIGNERS)."""
    found = []
    for line in allowed_signers.read_text("utf-8", "replace").splitlines():
        if (said := line.strip()) and not said.startswith("#"):
            names = said.split('"')[1] if said.startswith('"') and said.count('"') > 1 else said.split()[0]
            found += [name for name in names.split(",") if name and not name.startswith("!")]
    return found


def _program() -> str:
    if (found := shutil.which(PROGRAM)) is None:
        raise BundleError("bundle_no_ssh_keygen")
    return found


def _told(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else "ssh-keygen said nothing"
