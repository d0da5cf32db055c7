"""What is kept of turns beside their timings, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ondam.config import Config
from ondam.places import Places


@dataclass(frozen=True, slots=True)
class Keep:
    """By default timings alone. Days count from when a turn began."""

    days: int
    """Timings."""
    text: bool = False
    text_days: int = 30
    texts: Path | None = None
    """The file of texts; older ones in it expire even where no more are kept."""
    audio: bool = False
    audio_days: int = 7
    audio_bytes: int = 500_000_000
    sounds: Path | None = None
    """The folder of utterances; likewise."""
    audit: Path | None = None
    """The auditors' file; None: no line is written."""
    audit_bytes: int = 10_000_000
    audit_files: int = 9

    @classmethod
    def of(cls, config: Config, places: Places) -> Keep:
        """As the configuration has it."""
        journal, audit = config.journal, config.audit
        # A relative one is below the state folder: the daemon and who asks later stand in different folders.
        named = places.state / Path(audit.path).expanduser() if audit.path else places.audit
        return cls(
            days=journal.keep_days,
            text=journal.keep_text,
            text_days=min(journal.text_days, journal.keep_days),
            texts=places.texts,
            audio=journal.keep_audio,
            audio_days=min(journal.audio_days, journal.keep_days),
            audio_bytes=journal.audio_mb * 1_000_000,
            sounds=places.sounds,
            audit=named if audit.enabled else None,
            audit_bytes=round(audit.file_mb * 1_000_000),
            audit_files=audit.files,
        )
