"""From the numbers of the passes to findings in words."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vta_isa.assembly import format_stream
from vta_isa.encoding import decode_stream, decode_uops
from vta_isa.enums import Buffer, Opcode, Stage, TokenQueue
from vta_isa.errors import StreamError
from vta_isa.machine import Machine

from ..checks import LOADABLE, check_operation, check_static, check_uops, name
from . import layout
from .findings import Code, Finding, severity_of

DRAM = "DRAM"
NO_BOUND = 1 << 62  # bytes of DRAM where no image says how many
_KINDS = {
    layout.RAW: "RAW",
    layout.WAR: "WAR",
    layout.DRAM_RAW: "RAW",
    layout.DRAM_WAR: "WAR",
}


@dataclass(frozen=True)
class Event:
    """Something the last pass noted, gathered over everything two instructions share."""

    kind: int
    second: int
    first: int
    memory: str
    low: int
    high: int


def insn_lines(words: NDArray[np.uint64], machine: Machine, *numbers: int) -> tuple[str, ...]:
    """Instructions in assembly, each with its number."""
    texts = (format_stream(words[n : n + 1], machine, comments=False).strip() for n in numbers)
    return tuple(f"insn {n}: {text}" for n, text in zip(numbers, texts, strict=True))


class Reporter:
    """Words for one launch of ``words (n, 2) uint64`` on a machine."""

    def __init__(
        self,
        words: NDArray[np.uint64],
        machine: Machine,
        dram_bytes: int,
        *,
        fresh: bool,
    ):
        self.words = words
        self.machine = machine
        self.dram_bytes = dram_bytes
        self.fresh = fresh

    def record(self, number: int) -> np.void:
        """One instruction, decoded."""
        record: np.void = decode_stream(self.words[number : number + 1], self.machine)[0]
        return record

    # -- what the instructions say by themselves --------------------------------------------------

    def illegal(self, number: int) -> Finding:
        """An instruction that checks.check_static refuses."""
        record = self.record(number)
        try:
            check_static(record, number, self.machine, self.dram_bytes)
        except StreamError as error:
            return self._finding(self._code(record), str(error), number)
        raise AssertionError(f"insn {number} is legal after all")

    def refused_uops(self, code: Code, number: int, uops: NDArray[np.int64]) -> Finding:
        """A GEMM or ALU that checks.check_uops refuses."""
        words = (uops & 0xFFFFFFFF).astype(np.uint32)
        try:
            check_uops(self.record(number), number, decode_uops(words, self.machine), self.machine)
        except StreamError as error:
            return self._finding(code, str(error), number)
        raise AssertionError(f"insn {number} is legal after all")

    def uops_never_loaded(self, number: int, low: int, high: int) -> Finding:
        """A GEMM or ALU whose micro-ops ``low .. high`` nothing loaded."""
        advice = (
            "load them before"
            if self.fresh
            else "its operands are not checked, unless an earlier launch loaded them and was "
            "checked with the same Checker"
        )
        return self._finding(
            Code.UOP_NEVER_LOADED,
            f"insn {number} ({self._name(number)}) uses micro-ops {_span(low, high)}, which no "
            f"LOAD UOP has filled; {advice}",
            number,
            memory=Buffer.UOP.name,
            low=low,
            high=high,
        )

    def uops_unknown(self, numbers: NDArray[np.intp]) -> Finding:
        """GEMMs and ALU operations whose micro-ops are in an image that is not there."""
        return self._finding(
            Code.UOPS_UNKNOWN,
            f"micro-ops are read from DRAM, and no image of it was given: what "
            f"{_insns(len(numbers))} of GEMM and ALU touch is not checked; give the image (--dram)",
            int(numbers[0]),
        )

    def finish(self, finishes: NDArray[np.intp]) -> Iterator[Finding]:
        """FINISH is there, once, and last."""
        count = len(self.words)
        if not len(finishes):
            what = (
                f"the stream of {_insns(count)} has no FINISH" if count else "the stream is empty"
            )
            yield self._finding(
                Code.NO_FINISH,
                f"{what}, so the host never learns that it is done; end it with one",
            )
        elif finishes[0] + 1 < count:
            first = int(finishes[0])
            yield self._finding(
                Code.AFTER_FINISH,
                f"insn {first} is a FINISH, with {_insns(count - 1 - first)} behind it: the host "
                "goes on while they run; move the FINISH to the end",
                first + 1,
                other=first,
            )

    # -- tokens -----------------------------------------------------------------------------------

    def pop_without_push(self, number: int, queue: int, pops: int, tokens: int) -> Finding:
        """The first pop of a queue for which there can be no token."""
        return self._finding(
            Code.POP_WITHOUT_PUSH,
            f"insn {number} ({self._name(number)}) pops token number {tokens + 1} of queue "
            f"{_arrow(queue)}, but only {tokens} are ever pushed ({pops} are popped): its stage "
            "stops there for ever; add the push, or remove the pop",
            number,
            detail=self._lines(number),
        )

    def token_left(self, number: int | None, queue: int, left: int) -> Finding:
        """Tokens nobody pops; ``number`` pushes the first of them (None: an earlier launch)."""
        whose = "an earlier launch" if number is None else f"insn {number}"
        return self._finding(
            Code.TOKEN_LEFT,
            f"{left} token{'s' * (left > 1)} of queue {_arrow(queue)} {'are' if left > 1 else 'is'}"
            f" left at the end, the first pushed by {whose}; the next launch would pop "
            f"{'them' if left > 1 else 'it'} too early; pop every token that is pushed",
            number,
            detail=() if number is None else self._lines(number),
        )

    def deadlock(
        self, state: NDArray[np.int64], held: NDArray[np.int64], info: NDArray[np.int64]
    ) -> Finding:
        """Where every stage stands when nothing can go on."""
        count, capacity = len(self.words), self.machine.queues.token
        stuck = []
        lines = []
        dispatched = int(state[2 * layout.STAGES])
        for stage in Stage:
            head, pushing = int(state[stage - 1]), bool(state[layout.STAGES + stage - 1])
            label = f"{stage.name.lower()}:"
            if head >= count:
                lines.append(f"{label} nothing left to do")
                continue
            tokens = int(info[head, layout.TOKENS])
            insn = f"insn {head} ({self._name(head)})"
            if pushing:
                full = [q for q in TokenQueue if tokens >> q & layout.PUSH and held[q] >= capacity]
                lines.append(f"{label} {insn} cannot push {_arrows(full)}: {capacity} unclaimed")
            elif head >= dispatched:
                lines.append(f"{label} {insn} is not fetched yet")
                continue
            else:
                empty = [q for q in TokenQueue if tokens >> q & 1 and not held[q]]
                lines.append(f"{label} {insn} waits for a token {_arrows(empty)}")
            stuck.append(head)
        if dispatched < count:
            depth = self.machine.queues.command
            lines.append(f"fetch: insn {dispatched} has no room in its command queue ({depth})")
        return self._finding(
            Code.DEADLOCK,
            "the stages wait for each other, whatever the memory does; a push must be able to come "
            "before its pop",
            min(stuck, default=None),
            detail=tuple(lines),
        )

    # -- events -----------------------------------------------------------------------------------

    def event(self, event: Event) -> Finding:
        """The finding an event of the last pass stands for."""
        match event.kind:
            case layout.STORE_UNFINISHED | layout.LOAD_UNFINISHED:
                return self._unfinished(event)
            case layout.NEVER_WRITTEN:
                return self._never_written(event)
            case layout.UOPS_STORED:
                return self._uops_stored(event)
        return self._race(event)

    def stream_overwritten(self, number: int, low: int, high: int) -> Finding:
        """A STORE to the bytes the stream itself is fetched from."""
        return self._finding(
            Code.STREAM_OVERWRITTEN,
            f"insn {number} ({self._name(number)}) stores to bytes {low:#x}..{high:#x} of DRAM, "
            "where the stream itself lies; fetch runs ahead by an uncertain distance; store "
            "elsewhere",
            number,
            memory=DRAM,
            low=low,
            high=high,
            detail=self._lines(number),
        )

    def _race(self, event: Event) -> Finding:
        kind = _KINDS[event.kind]
        first, second = event.first, event.second
        does, did = ("reads", "writes") if kind == "RAW" else ("overwrites", "reads")
        uops = event.memory == DRAM and any(self._loads_uops(n) for n in (first, second))
        return self._finding(
            Code.UOP_IMAGE if uops else Code.RACE,
            f"insn {second} {does} {'micro-ops, ' if uops else ''}{_place(event)} that insn "
            f"{first} {did}, and no token orders them ({kind})",
            second,
            other=first,
            memory=event.memory,
            low=event.low,
            high=event.high,
            kind=kind,
            detail=(*self._lines(first, second), self._order(first, second)),
        )

    def _uops_stored(self, event: Event) -> Finding:
        return self._finding(
            Code.UOP_IMAGE,
            f"insn {event.second} loads micro-ops from {_place(event)} that insn {event.first} has "
            "stored: what they say is known only at run time, so what they touch is not checked; "
            "keep results apart from micro-ops, or store them in an earlier launch",
            event.second,
            other=event.first,
            memory=event.memory,
            low=event.low,
            high=event.high,
            detail=self._lines(event.first, event.second),
        )

    def _never_written(self, event: Event) -> Finding:
        advice = "write it before" if self.fresh else "right only if an earlier launch wrote it"
        return self._finding(
            Code.NEVER_WRITTEN,
            f"insn {event.second} ({self._name(event.second)}) reads {_place(event)}, which "
            f"nothing has written; {advice}",
            event.second,
            memory=event.memory,
            low=event.low,
            high=event.high,
            detail=self._lines(event.second),
        )

    def _unfinished(self, event: Event) -> Finding:
        store = event.kind == layout.STORE_UNFINISHED
        stage, consequence = (
            ("store", "the host may read DRAM before the results are there")
            if store
            else ("load", "the host may overwrite DRAM that is still to be read")
        )
        return self._finding(
            Code.STORE_UNFINISHED if store else Code.LOAD_UNFINISHED,
            f"insn {event.second} (FINISH) does not wait for insn {event.first} "
            f"({self._name(event.first)}): {consequence}",
            event.second,
            other=event.first,
            detail=(
                *self._lines(event.first, event.second),
                f"push a token {stage} -> compute from that insn or a later one of its stage, and "
                "pop it in front of FINISH",
            ),
        )

    # -- words ------------------------------------------------------------------------------------

    def _finding(
        self,
        code: Code,
        message: str,
        insn: int | None = None,
        *,
        other: int | None = None,
        memory: str | None = None,
        low: int | None = None,
        high: int | None = None,
        kind: str | None = None,
        detail: tuple[str, ...] = (),
    ) -> Finding:
        severity = severity_of(code, fresh=self.fresh)
        return Finding(code, severity, message, insn, other, memory, low, high, kind, detail)

    def _code(self, record: np.void) -> Code:
        """Which kind of check an illegal instruction fails, the most basic one first."""
        opcode, buffer = int(record["opcode"]), int(record["buffer"])
        if opcode in (Opcode.GEMM, Opcode.ALU):
            try:
                check_operation(record, 0, self.machine)
            except StreamError:
                return Code.UNDEFINED
            return Code.SRAM_RANGE
        known: tuple[Buffer, ...] = LOADABLE if opcode == Opcode.LOAD else (Buffer.OUT,)
        moves = opcode in (Opcode.LOAD, Opcode.STORE) and record["x_size"]
        if not moves or buffer not in known:
            return Code.UNDEFINED
        try:
            check_static(record, 0, self.machine, NO_BOUND)
        except StreamError:
            parts = ("pad_before", "size", "pad_after")
            rows, columns = (sum(int(record[f"{axis}_{p}"]) for p in parts) for axis in "yx")
            reached = int(record["sram_base"]) + rows * columns
            past = rows * columns and reached > self.machine.depth(Buffer(buffer))
            return Code.SRAM_RANGE if past else Code.UNDEFINED
        return Code.DRAM_RANGE

    def _name(self, number: int) -> str:
        return name(self.record(number))

    def _loads_uops(self, number: int) -> bool:
        record = self.record(number)
        return bool(record["opcode"] == Opcode.LOAD and record["buffer"] == Buffer.UOP)

    def _lines(self, *numbers: int) -> tuple[str, ...]:
        return insn_lines(self.words, self.machine, *numbers)

    def _order(self, first: int, second: int) -> str:
        """Which token would order two instructions of different stages."""
        one, two = (_stage(self.record(n)) for n in (first, second))
        giver, taker = one.name.lower(), two.name.lower()
        if Stage.COMPUTE in (one, two):
            push, pop = ("push_next", "pop_prev") if one < two else ("push_prev", "pop_next")
            return (
                f"a token {giver} -> {taker} would order them: {push} on insn {first} or a later "
                f"one of {giver}, {pop} on insn {second} or an earlier one of {taker}"
            )
        return (
            f"two tokens would order them: {giver} -> compute behind insn {first}, and compute -> "
            f"{taker} in front of insn {second}, from an insn of compute that pops the first"
        )


def _stage(record: np.void) -> Stage:
    if record["opcode"] == Opcode.STORE:
        return Stage.STORE
    on_load = record["opcode"] == Opcode.LOAD and record["buffer"] in (Buffer.INP, Buffer.WGT)
    return Stage.LOAD if on_load else Stage.COMPUTE


def _place(event: Event) -> str:
    if event.memory == DRAM:
        return f"bytes {event.low:#x}..{event.high:#x} of DRAM"
    span = _span(event.low, event.high)
    return f"{event.memory} {'entry' if event.low == event.high else 'entries'} {span}"


def _insns(count: int) -> str:
    return "1 insn" if count == 1 else f"{count} insns"


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}..{high}"


def _arrow(queue: int) -> str:
    return TokenQueue(queue).name.lower().replace("_to_", " -> ")


def _arrows(queues: list[TokenQueue]) -> str:
    return " and ".join(_arrow(queue) for queue in queues)
