"""Installs Ondam from the bundle that this file was taken from. Needs nothing but Python 3.11 or newer.

    tar -xf ondam-….bundle install.py
    python3 install.py ondam-….bundle --allowed-signers FILE

It takes Ondam's own wheel out of the bundle, checks its hash against the manifest, and lets it do the rest:
signature, every other hash, whether the bundle fits this machine, then the installation.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile

USAGE = """\
Usage: python3 install.py BUNDLE [OPTIONS]

  --allowed-signers FILE  whose signatures count (/etc/ondam/allowed_signers)
  --unsigned              install without checking a signature
  --verify-only           check everything, install nothing
  --root DIR              where versions are kept (/opt/ondam, ~/.local/share/ondam-versions)
  --bin DIR               where the command is put (/usr/local/bin, ~/.local/bin)"""


def main():
    if sys.version_info < (3, 11):
        found = "%d.%d" % sys.version_info[:2]
        sys.exit("Ondam needs Python 3.11 or newer; this is %s. Try python3.11, python3.12, …" % found)
    bundles = [path for path in sys.argv[1:] if is_bundle(path)]
    if not bundles:
        for path in sys.argv[1:]:
            if path.endswith(".bundle"):
                told = (
                    "is no bundle of Ondam, or its beginning is damaged"
                    if os.path.exists(path)
                    else "is not there"
                )
                sys.exit("%s %s." % (path, told))
        print(USAGE)
        return 0 if {"-h", "--help"} & set(sys.argv[1:]) else 2
    try:
        folder = tempfile.mkdtemp(prefix="ondam-")
    except OSError as error:
        sys.exit("No temporary folder can be made: %s. TMPDIR=DIR names another place." % error)
    try:
        wheel = first_wheel(bundles[0], folder)
        sys.path.insert(0, wheel)
        from ondam.deploy.bundle_first import main as install

        return install(sys.argv[1:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_bundle(path):
    """Whether it may be one; the end where it cannot be read."""
    try:
        return os.path.isfile(path) and tarfile.is_tarfile(path)
    except OSError as error:
        sys.exit("%s cannot be read: %s" % (path, error.strerror or error))


def first_wheel(bundle, folder):
    """Ondam's wheel, as the manifest names it."""
    try:
        with tarfile.open(bundle) as opened:
            manifest = json.load(opened.extractfile("manifest.json"))
            (entry,) = (file for file in manifest["files"] if file["path"].startswith("wheels/ondam-"))
            content = opened.extractfile("blobs/" + entry["sha256"]).read()
    except (tarfile.TarError, KeyError, ValueError, TypeError, AttributeError, OSError) as error:
        sys.exit("%s is damaged, or no bundle of Ondam: %s" % (bundle, error))
    found = hashlib.sha256(content).hexdigest()
    if found != entry["sha256"]:
        told = (bundle, entry["path"], entry["sha256"], found)
        sys.exit("%s is damaged: %s\n  expected %s\n  found    %s" % told)
    path = os.path.join(folder, os.path.basename(entry["path"]))
    try:
        with open(path, "wb") as out:
            out.write(content)
    except OSError as error:
        sys.exit(
            "%s cannot be written: %s. TMPDIR=DIR names another place." % (path, error.strerror or error)
        )
    return path


if __name__ == "__main__":
    sys.exit(main())
