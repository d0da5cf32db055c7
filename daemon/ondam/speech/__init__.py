"""Text and speech, pure: what of an answer is spoken, in which pieces, and how it is read."""

from ondam.speech.answer import Clause, ClauseStream, Spoken, spoken, warm_up
from ondam.speech.clauses import ClauseCutter, ClauseLengths
from ondam.speech.filters import SpokenFilter, speakable
from ondam.speech.junk import Verdict, hallucinated, verdict, without_junk_tail
from ondam.speech.reading import reading

__all__ = [
    "Clause",
    "ClauseCutter",
    "ClauseLengths",
    "ClauseStream",
    "Spoken",
    "SpokenFilter",
    "Verdict",
    "hallucinated",
    "reading",
    "speakable",
    "spoken",
    "verdict",
    "warm_up",
    "without_junk_tail",
]
