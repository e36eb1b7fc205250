"""What the checker finds: codes, severities, and the words for a reader."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from vta_isa.errors import StreamError


class Severity(StrEnum):
    """Errors make a stream wrong on some machine or memory; warnings ask for a look."""

    ERROR = "error"
    WARNING = "warning"


class Code(StrEnum):
    """Every kind of finding; docs/checker.md has an example of each."""

    UNDEFINED = "undefined-encoding"
    SRAM_RANGE = "sram-range"
    TOO_CLOSE = "too-close"
    DRAM_RANGE = "dram-range"
    NO_FINISH = "no-finish"
    AFTER_FINISH = "after-finish"
    POP_WITHOUT_PUSH = "pop-without-push"
    DEADLOCK = "deadlock"
    TOKEN_LEFT = "token-left"
    RACE = "race"
    UOP_IMAGE = "uop-image-overwritten"
    UOP_NEVER_LOADED = "uop-never-loaded"
    UOPS_UNKNOWN = "uops-unknown"
    NEVER_WRITTEN = "sram-never-written"
    STORE_UNFINISHED = "store-unfinished"
    LOAD_UNFINISHED = "load-unfinished"
    STREAM_OVERWRITTEN = "stream-overwritten"
    WRONG_RESULT = "wrong-result"


WARNINGS = (Code.UOPS_UNKNOWN, Code.LOAD_UNFINISHED)
# What another launch may have left in SRAM: an error only where there was none.
PERSISTENT = (Code.NEVER_WRITTEN, Code.UOP_NEVER_LOADED)


def severity_of(code: Code, *, fresh: bool) -> Severity:
    """``fresh``: nothing ran on the machine before."""
    if code in WARNINGS or (code in PERSISTENT and not fresh):
        return Severity.WARNING
    return Severity.ERROR


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a stream.

    ``insn`` is the instruction it is about and ``other`` the second one, if there are any. ``low``
    and ``high`` are the lowest and highest entry of ``memory``, or byte where that is ``DRAM``.
    ``kind`` of a race is ``RAW`` (``insn`` reads what ``other`` writes) or ``WAR``. ``detail`` are
    further lines: both instructions in assembly, and what to do. ``more`` findings of the code were
    left out behind this one.
    """

    code: Code
    severity: Severity
    message: str
    insn: int | None = None
    other: int | None = None
    memory: str | None = None
    low: int | None = None
    high: int | None = None
    kind: str | None = None
    detail: tuple[str, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        lines = [f"{self.severity} {self.code}: {self.message}", *self.detail]
        if self.more:
            lines.append(f"and {self.more} more of the kind")
        return "\n    ".join(lines)

    def as_json(self) -> dict[str, object]:
        """Plain data for ``json``; what does not apply is null."""
        return {
            "code": str(self.code),
            "severity": str(self.severity),
            "message": self.message,
            "insn": self.insn,
            "other": self.other,
            "memory": self.memory,
            "low": self.low,
            "high": self.high,
            "kind": self.kind,
            "detail": list(self.detail),
            "more": self.more,
        }


class CheckError(StreamError):
    """A stream that did not pass the checker; ``findings`` are its errors."""

    def __init__(self, findings: Iterable[Finding]):
        self.findings = tuple(findings)
        shown = "\n".join(str(finding) for finding in self.findings[:3])
        left = len(self.findings) - 3
        rest = f"\nand {left} more errors; `vta check` lists them" if left > 0 else ""
        super().__init__(f"the stream fails its check: {shown}{rest}", self.findings[0].insn)


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that are not warnings."""
    return [finding for finding in findings if finding.severity == Severity.ERROR]
