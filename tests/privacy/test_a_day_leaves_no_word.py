"""After a day of turns nothing that Ondam wrote holds a word that was said, or a sound.

The engines are doubles that repeat every word and sound on stdout, in error texts, in broken frames and in
what they say when they die. The same search finds everything where it is to be kept: it can fail.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import soundfile

from ondam.audio import resampled
from ondam.control.client import Client
from ondam.control.sound import decode, encode
from ondam.control.wire import Turn
from ondam.errors import OndamError
from ondam.measure.clips import clips
from ondam.types import HEARING_RATE_HZ, Audio, Samples
from tests.privacy.gossip import voice
from tests.privacy.house import gossiping
from tests.privacy.search import search
from tests.scenarios.house import House

pytestmark = pytest.mark.engines  # models, and real processes

ASKED = "차돌박이꼬치 주문번호"
HEARD = "Quokkazimba 예약 부탁해요"
SAID = "플라밍고우산 세 개를 Wombatflurry 창고에 두었습니다."
FORM = "Xylophonquark"

WORDS = ["차돌박이꼬치", "Quokkazimba", "플라밍고우산", "Wombatflurry", FORM]


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="o-"))  # short: it holds the sockets too
    yield folder
    shutil.rmtree(folder)


def question() -> Audio:
    sound = decode(clips("ko")[0].wav, 10**7)
    heard = resampled(sound, HEARING_RATE_HZ)
    return Audio(heard.samples[: 2 * HEARING_RATE_HZ], HEARING_RATE_HZ)


async def day(house: House, typed: int, spoken: int) -> Counter[str]:
    """Ask and speak; what became of the turns."""
    outcomes: Counter[str] = Counter()

    async def one(turn: asyncio.Future[Turn]) -> None:
        try:
            outcome = (await turn)["outcome"] or "none"
        except OndamError as error:
            outcome = f"error {error.code}"
        outcomes[outcome] += 1
        if outcome != "answered":
            await house.ready()  # an engine that died is back

    async def wav(client: Client) -> Turn:
        return (await client.wav_turn(encode(question()), "ko"))[0]

    async with house.client() as client:
        for number in range(typed):
            await one(asyncio.ensure_future(client.ask(f"{ASKED} {number}", speak=False)))
        for _ in range(spoken):
            await one(asyncio.ensure_future(wav(client)))
        for _ in range(2):
            await one(asyncio.ensure_future(client.ask(ASKED, speak=True)))
        await client.turns(50)
        await client.engine_log("gossip_llm", 1000)
    await asyncio.to_thread(ask_wrongly, house)
    return outcomes


def ask_wrongly(house: House) -> None:
    """Requests that are refused, with words in every part of them."""
    for path, body in (
        ("/api/ask", {"text": [FORM]}),
        ("/api/ask", {"text": FORM, "speak": FORM}),
        (f"/api/{FORM}?word={FORM}", {}),
        (f"/api/turns?limit={FORM}", {}),
        ("/api/wav-turn?language=" + FORM, {FORM: 1}),
        (f"/v1/{FORM}", {"model": FORM}),
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(house.places.control_socket))
            raw = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: {FORM}\r\nUser-Agent: {FORM}\r\n"
            connection.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
            assert int(connection.recv(100).split()[1]) >= 400
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(house.places.control_socket))
        connection.sendall(f"{FORM} no http\r\n\r\n".encode())
        connection.recv(1000)


def sounds() -> list[Samples]:
    return [question().samples, np.array(voice(), np.int16)]


def searched(house: House) -> set[tuple[str, str]]:
    """All of its home: also what it printed, which is a service's journal, and the data folder, but for the
    models, which others share, and what the engines were given to say."""
    found = search(WORDS, sounds(), house.home)
    given = {one for one in found if one[0] == "words.json"}
    assert given, "the data folder is searched"
    return found - given


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [(48, 3), pytest.param(1000, 60, marks=[pytest.mark.thorough, pytest.mark.timeout(1200)])],
)
async def test_by_default_no_word_and_no_sound_is_in_any_file(home: Path, typed: int, spoken: int) -> None:
    house = gossiping(home, HEARD, SAID, {}, quiet_turns=3)
    house.open()
    try:
        await house.ready()
        outcomes = await day(house, typed, spoken)
    finally:
        status = house.close()
    assert status == 0
    assert outcomes["answered"] > typed / 4, outcomes
    assert outcomes["failed"] > 10  # the faults were met
    assert searched(house) == set()
    logs = house.places.logs
    # What the engines printed was left out, not lost without a word, and their faults are told without words.
    assert "bytes of its output were left out" in (logs / "engine-gossip_llm.log").read_text("utf-8")
    assert "turn " in (logs / "daemon.log").read_text("utf-8")
    lines = [json.loads(line) for line in house.places.audit.read_text("ascii").splitlines()]
    assert len(lines) >= sum(count for name, count in outcomes.items() if not name.startswith("error "))
    assert sum(line["asked_characters"] for line in lines) > 10 * typed


async def test_the_same_search_finds_everything_where_it_is_kept(home: Path) -> None:
    kept = {"journal.keep_text": "true", "journal.keep_audio": "true", "supervisor.keep_output": "all"}
    house = gossiping(home, HEARD, SAID, kept, quiet_turns=1000)
    house.open()
    try:
        await house.ready()
        outcomes = await day(house, 2, 1)
    finally:
        house.close()
    assert outcomes["answered"] >= 4
    found = searched(house)
    assert ("texts.sqlite", "utf-8") in found
    assert ("engine-gossip_llm.log", "utf-8") in found
    assert ("engine-gossip_stt.log", "json") in found
    assert any(name.startswith("engine-gossip_stt.log") and how.startswith("base64") for name, how in found)
    assert any(name.endswith(".flac") and how == "pcm" for name, how in found)
    # And still in no file that is not for it.
    allowed = ("texts.sqlite", "engine-gossip_")
    assert {name for name, _ in found if not name.startswith(allowed) and not name.endswith(".flac")} == set()
    modes = {path.stat().st_mode & 0o077 for path in (home / "state" / "kept").rglob("*")}
    assert modes == {0}


@pytest.mark.parametrize("word", WORDS)
def test_the_search_finds_a_word_in_every_form(tmp_path: Path, word: str) -> None:
    written = {
        "utf-8": word.encode(),
        "utf-16": word.encode("utf-16"),
        "json": json.dumps(word).encode(),
        "python": repr(word.encode()).encode(),
        "url": quote(f"x {word}").encode(),
        "hex": word.encode().hex().encode(),
        **{f"base64-{n}": base64.b64encode(b"x" * n + word.encode() + b"yy") for n in range(3)},
    }
    for name, data in written.items():
        (tmp_path / name).write_bytes(b"before " + data + b" after")
    assert {name for name, _ in search([word], [], tmp_path)} == set(written)


def test_the_search_finds_a_sound_in_every_form(tmp_path: Path) -> None:
    sound = sounds()[1]
    raw = sound.astype("<i2").tobytes()
    (tmp_path / "pcm").write_bytes(b"x" + raw)
    (tmp_path / "big").write_bytes(sound.astype(">i2").tobytes())
    (tmp_path / "float").write_bytes((sound / 32768).astype("<f4").tobytes())
    for shift in range(3):
        (tmp_path / f"base64-{shift}").write_bytes(base64.b64encode(b"x" * shift + raw))
    for name in ("a.wav", "a.flac"):
        soundfile.write(tmp_path / name, sound, 16_000)
    assert {name for name, _ in search([], [sound], tmp_path)} == {path.name for path in tmp_path.iterdir()}
