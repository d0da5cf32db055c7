"""What a model takes in memory, addend by addend, and what a card has for it. Pure.

Everything is in GiB (2^30 bytes) and rounded up to a hundredth, each addend by itself, so that the sum a
person reads adds up. "35 GB" of weights are 35 × 10^9 bytes, 32.60 GiB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from ondam.messages import Phrase, Phrases
from ondam.models.card import ModelCard

GIB = 2**30

KV_UNKNOWN = 147_456
"""Bytes a token where nobody wrote it down: 144 KiB, what Qwen3-4B and 8B take, and more than most others."""

CACHE_FLOOR_GIB = 1.0
"""What an engine that is told its cache's size in bytes gets at the least, where the card has it: it keeps
states and tokens in whole blocks of one pool, and does not start where one conversation's do not fit."""

EXTRA_UNKNOWN_GIB = 1.0
"""Context and workspace where nobody wrote it down."""

PER_EXTRA_CARD_GIB = 0.5
"""A model that is laid over several cards needs a CUDA context and buffers on each, and its layers do not
divide evenly."""

CACHE_BYTES = {"fp8": 0.5, "q8_0": 0.5313, "q4_0": 0.2813}
"""Of 16 bits. llama.cpp's q8_0 holds 32 values in 34 bytes, q4_0 in 18 (ggml-common.h); ``auto``, ``f16`` and
``bf16`` are 1."""

REACHED = 0.7
"""Part of its memory's bandwidth that decoding reaches: 0.6 to 0.85 are reported for llama.cpp and vLLM."""

CLAUSE_TOKENS = 10
"""Of an answer's first clause; what the shipped model gave was 8 to 12 (docs/numbers.md)."""

AddendName = Literal[
    "weights",
    "kv",
    "state",
    "floor",
    "extra",
    "cards",
    "program",
    "process",
    "card",
    "memory",
    "neighbours",
    "reserve",
    "taken",
    "system",
]


@dataclass(frozen=True, slots=True)
class Addend:
    """One line of a sum."""

    name: AddendName
    gib: float
    """Negative in a budget, where it is taken away."""


@dataclass(frozen=True, slots=True)
class Need:
    """A sum, in the order in which it is told."""

    addends: tuple[Addend, ...]

    @property
    def gib(self) -> float:
        """The total."""
        return round(sum(addend.gib for addend in self.addends), 2)

    def of(self, name: AddendName) -> float:
        """All addends of that name."""
        return round(sum(addend.gib for addend in self.addends if addend.name == name), 2)

    @property
    def told(self) -> Phrase:
        """The sum for a person: ``weights 19.56 + … = 20.53 GiB``."""
        # The first stays, be it nothing: "kept free 0.30 = -0.30" would be no sum.
        parts = [addend for n, addend in enumerate(self.addends) if addend.gib or not n]
        words = [
            Phrase(
                f"plan_addend_{addend.name}", gib=f"{abs(addend.gib):.2f}", sign=_sign(addend, first=not n)
            )
            for n, addend in enumerate(parts)
        ]
        return Phrase("plan_sum", addends=Phrases(tuple(words), between=" "), total=f"{self.gib:.2f}")

    def as_json(self) -> dict[str, object]:
        """Every addend by name, and the total."""
        return {
            "addends": {addend.name: addend.gib for addend in self.addends if addend.gib},
            "total_gib": self.gib,
        }


def _sign(addend: Addend, *, first: bool) -> str:
    if first:
        return ""
    return "− " if addend.gib < 0 else "+ "


def up(gib: float) -> float:
    """To a hundredth, upwards; what is a hundredth but for the computer's rounding stays."""
    return math.ceil(round(gib * 100, 6)) / 100


def sum_of(*addends: tuple[AddendName, float]) -> Need:
    """From names and GiB."""
    return Need(tuple(Addend(name, gib) for name, gib in addends))


def weights_gib(parameters_b: float, bytes_per_parameter: float) -> float:
    """All parameters: a mixture of experts keeps every expert in memory, whichever are used."""
    return parameters_b * 1e9 * bytes_per_parameter / GIB


def kv_gib(bytes_per_token: int, tokens: int, sessions: int, cache: str = "auto") -> float:
    """Keys and values of ``sessions`` contexts of ``tokens`` each, in the type ``cache``."""
    return bytes_per_token * cache_factor(cache) * tokens * sessions / GIB


def cache_factor(cache: str) -> float:
    """How the type of the key/value cache compares with 16 bits."""
    return next((part for name, part in CACHE_BYTES.items() if cache.startswith(name)), 1.0)


def card_need(
    card: ModelCard,
    *,
    tokens: int = 0,
    sessions: int = 1,
    cache: str = "auto",
    cache_bytes: int = 0,
    measured_extra: float | None = None,
) -> Need | None:
    """What a model takes on one device; None where not even the size of its weights is known.

    ``cache_bytes``: the size of all of its cache, states too, where somebody has set it.
    ``measured_extra``: GiB that were found in use beyond weights and cache, in place of the card's estimate.
    """
    if card.parameters_b and card.bytes_per_parameter:
        weights = weights_gib(card.parameters_b, card.bytes_per_parameter)
    elif card.files:
        weights = card.size / GIB
    else:
        return None
    per_token = 0
    if card.stage == "llm":
        per_token = KV_UNKNOWN if card.kv_bytes_per_token is None else card.kv_bytes_per_token
    elif card.kv_bytes_per_token:
        per_token = card.kv_bytes_per_token
    extra = EXTRA_UNKNOWN_GIB if card.needs_gib_extra is None else card.needs_gib_extra
    kv, state = kv_gib(per_token, tokens, sessions, cache), card.state_mib_per_sequence * sessions / 1024
    if cache_bytes:
        kv, state = cache_bytes / GIB, 0.0
    return sum_of(
        ("weights", up(weights)),
        ("kv", up(kv)),
        ("state", up(state)),
        ("extra", up(extra if measured_extra is None else measured_extra)),
    )


def cache_lacks(need: Need) -> float:
    """GiB that its cache lacks of ``CACHE_FLOOR_GIB``."""
    return max(0.0, round(CACHE_FLOOR_GIB - need.of("kv") - need.of("state"), 2))


def with_floor(need: Need, gib: float) -> Need:
    """The same, with ``gib`` more of cache, told after what the cache takes."""
    if gib <= 0:
        return need
    at = max((n for n, each in enumerate(need.addends) if each.name in ("kv", "state")), default=0) + 1
    return Need((*need.addends[:at], Addend("floor", gib), *need.addends[at:]))


def over_cards(need: Need, cards: int) -> Need:
    """The same, laid over several cards."""
    return Need((*need.addends, Addend("cards", up(PER_EXTRA_CARD_GIB * (cards - 1))))) if cards > 1 else need


@dataclass(frozen=True, slots=True)
class Spill:
    """A mixture of experts whose layers lie in the main memory as far as the card does not hold them."""

    on_card: Need
    in_memory_gib: float
    layers: int
    """On the card; what is in the main memory the processor computes."""
    tokens_per_s: float | None
    """By both memories' bandwidths; None where one is not known."""


BY_LAYERS = ("weights", "kv", "state")
"""What lies where its layer does; the rest is the card's, however few layers it has."""


def spill(
    card: ModelCard, need: Need, room_gib: float, memory_gb_s: float | None, card_gb_s: float | None
) -> Spill | None:
    """How the layers of ``need`` are shared out between ``room_gib`` on the card and the main memory.

    None where it is no mixture of experts, of which a token reads little, or not even one layer fits.
    """
    if not (card.active_b and card.layers and card.bytes_per_parameter):
        return None
    for layers in range(card.layers - 1, 0, -1):
        share = layers / card.layers
        on_card = Need(
            tuple(
                replace(addend, gib=up(addend.gib * share)) if addend.name in BY_LAYERS else addend
                for addend in need.addends
            )
        )
        if on_card.gib <= room_gib:
            break
    else:
        return None
    rate = None
    if memory_gb_s and card_gb_s:
        active_gb = card.active_b * card.bytes_per_parameter
        rate = REACHED / (active_gb * (1 - share) / memory_gb_s + active_gb * share / card_gb_s)
    return Spill(on_card, round(need.gib - on_card.gib, 2), layers, rate)


def tokens_per_s(card: ModelCard, gb_s: float | None) -> float | None:
    """Decoding reads every active weight once a token: bandwidth over bytes, as far as it is reached."""
    active = card.active_b or card.parameters_b
    if not (active and card.bytes_per_parameter and gb_s):
        return None
    return REACHED * gb_s / (active * card.bytes_per_parameter)


def card_budget(vram_gib: float, taken_gib: float, reserve_gib: float) -> Need:
    """What a card has for us: all of it, less what others hold and what stays free."""
    return sum_of(("card", down(vram_gib)), ("neighbours", -up(taken_gib)), ("reserve", -up(reserve_gib)))


def memory_budget(memory_gib: float, reserve_gib: float) -> Need:
    """What the main memory has for us."""
    return sum_of(("memory", down(memory_gib)), ("reserve", -up(reserve_gib)))


def less(budget: Need, taken_gib: float) -> Need:
    """A budget without what others were promised."""
    return Need((*budget.addends, Addend("taken", -up(taken_gib))))


def down(gib: float) -> float:
    """To a hundredth, downwards."""
    return math.floor(round(gib * 100, 6)) / 100
