"""Installs Ondam from the bundle that this file was taken from. Needs nothing but Python 3.11 or newer.

    tar -xf ondam-….bundle install.py
    python3 install.py ondam-….bundle --allowed-signers FILE

It takes Ondam's own wheel out of the bundle, checks its hash against the manifest, and lets it do the rest:
signature, every other hash, whether the bundle fits this machine, then the installation. From Python 3.6 on
an older one will do where the bundle carries one of its own, which then goes on.
"""

import glob
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

TEXTS = {
    "usage": (
        """\
Usage: python3 install.py BUNDLE [OPTIONS]

  --allowed-signers FILE  whose signatures count (/etc/ondam/allowed_signers)
  --unsigned              install without checking a signature
  --verify-only           check everything, install nothing
  --root DIR              where versions are kept (/opt/ondam, ~/.local/share/ondam-versions)
  --bin DIR               where the command is put (/usr/local/bin, ~/.local/bin)""",
        """\
사용법: python3 install.py 묶음 [옵션]

  --allowed-signers 파일  누구의 서명을 믿을지 적은 목록 (/etc/ondam/allowed_signers)
  --unsigned              서명을 확인하지 않고 설치합니다
  --verify-only           모두 확인하고 설치는 하지 않습니다
  --root 폴더             버전을 두는 곳 (/opt/ondam, ~/.local/share/ondam-versions)
  --bin 폴더              명령을 두는 곳 (/usr/local/bin, ~/.local/bin)""",
    ),
    "old_python": (
        "Ondam needs Python 3.11 or newer; this is %s, and the bundle carries none."
        " Try python3.11, python3.12, …",
        "온담에는 Python 3.11 이상이 필요한데 지금은 %s이고, 묶음에도 Python이 없습니다."
        " python3.11, python3.12 등으로 실행해 보세요.",
    ),
    "not_one": (
        "%s is no bundle of Ondam, or its beginning is damaged. Copy it once more.",
        "%s은(는) 온담 묶음 파일이 아니거나 앞부분이 손상되었습니다. 다시 복사해 주세요.",
    ),
    "not_there": ("%s is not there.", "%s 파일이 없습니다."),
    "no_folder": (
        "No temporary folder can be made: %s. TMPDIR=DIR names another place.",
        "임시 폴더를 만들 수 없습니다: %s. TMPDIR=폴더로 다른 곳을 지정해 주세요.",
    ),
    "unreadable": ("%s cannot be read: %s", "%s을(를) 읽을 수 없습니다: %s"),
    "damaged": (
        "%s is damaged, or no bundle of Ondam: %s. Copy it once more.",
        "%s이(가) 손상되었거나 온담 묶음이 아닙니다: %s. 다시 복사해 주세요.",
    ),
    "differs": (
        "%s is damaged: %s\n  expected %s\n  found    %s\nCopy it once more.",
        "%s이(가) 손상되었습니다: %s\n  예상 %s\n  실제 %s\n다시 복사해 주세요.",
    ),
    "unwritable": (
        "%s cannot be written: %s. TMPDIR=DIR names another place.",
        "%s에 쓸 수 없습니다: %s. TMPDIR=폴더로 다른 곳을 지정해 주세요.",
    ),
}
"""English, Korean."""


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(told("usage"))
        return 0
    bundles = [path for path in sys.argv[1:] if is_bundle(path)]
    if not bundles:
        for path in sys.argv[1:]:
            if path.endswith(".bundle"):
                sys.exit(told("not_one" if os.path.exists(path) else "not_there", path))
        print(told("usage"))
        return 2
    try:
        folder = tempfile.mkdtemp(prefix="ondam-")
    except OSError as error:
        sys.exit(told("no_folder", error))
    try:
        if sys.version_info < (3, 11):
            return with_carried(bundles[0], folder)
        sys.path.insert(0, first_wheel(bundles[0], folder))
        from ondam.deploy.bundle_first import main as install

        return install(sys.argv[1:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def told(code, *facts):
    """The text in the language of whoever reads it, as the rest of Ondam finds out which that is."""
    names = ("ONDAM_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    language = next(filter(None, (os.environ.get(name) for name in names)), "en")
    english, korean = (text % facts for text in TEXTS[code])
    try:
        korean.encode(sys.stdout.encoding or "ascii")
    except UnicodeError:
        return english  # its letters would not be seen: Python 3.6 where the locale is not installed
    return korean if language.lower().startswith("ko") else english


def is_bundle(path):
    """Whether it may be one; the end where it cannot be read."""
    try:
        return os.path.isfile(path) and tarfile.is_tarfile(path)
    except OSError as error:
        sys.exit(told("unreadable", path, error.strerror or error))


def contents(bundle, begins):
    """Path and bytes of the only file whose path begins so, proven by the manifest; None: there is none."""
    try:
        with tarfile.open(bundle) as opened:
            manifest = json.load(opened.extractfile("manifest.json"))
            entries = [file for file in manifest["files"] if file["path"].startswith(begins)]
            if not entries:
                return None
            (entry,) = entries
            content = opened.extractfile("blobs/" + entry["sha256"]).read()
    except (tarfile.TarError, KeyError, ValueError, TypeError, AttributeError, OSError) as error:
        sys.exit(told("damaged", bundle, error))
    found = hashlib.sha256(content).hexdigest()
    if found != entry["sha256"]:
        sys.exit(told("differs", bundle, entry["path"], entry["sha256"], found))
    return entry["path"], content


def first_wheel(bundle, folder):
    """Ondam's wheel, as the manifest names it."""
    found = contents(bundle, "wheels/ondam-")
    if found is None:
        sys.exit(told("damaged", bundle, "wheels/ondam-"))
    path = os.path.join(folder, os.path.basename(found[0]))
    try:
        with open(path, "wb") as out:
            out.write(found[1])
    except OSError as error:
        sys.exit(told("unwritable", path, error.strerror or error))
    return path


def with_carried(bundle, folder):
    """The same once more, with the Python that the bundle carries. The exit code."""
    found = contents(bundle, "python/")
    if found is None:
        sys.exit(told("old_python", "%d.%d" % sys.version_info[:2]))
    try:
        with tarfile.open(fileobj=io.BytesIO(found[1])) as opened:
            opened.extractall(folder)
    except tarfile.TarError as error:
        sys.exit(told("damaged", bundle, error))
    except OSError as error:
        sys.exit(told("unwritable", folder, error.strerror or error))
    for depth in ("", "*"):
        for python in sorted(glob.glob(os.path.join(folder, depth, "bin", "python3.[0-9][0-9]"))):
            # Ctrl-C is the installation's; this one waits for its end to clear away what it runs from.
            signal.signal(signal.SIGINT, lambda *_: None)
            return subprocess.call([python, os.path.abspath(__file__), *sys.argv[1:]])
    sys.exit(told("damaged", bundle, found[0]))


if __name__ == "__main__":
    sys.exit(main())
