"""Correct streams with one thing wrong: what a checker must notice, if it changes anything."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from token_orders import Outcome, execute

from simulator.checker import Checker, Code, errors
from simulator.checker.findings import PERSISTENT
from simulator.checker.result import wrong_result
from simulator.checks import PADS, check_program
from simulator.order import token_flow
from vta_isa.encoding import encode_stream
from vta_isa.enums import Opcode, TokenQueue
from vta_isa.errors import EncodingError, StreamError
from vta_isa.insn import FLAGS, stages
from vta_isa.machine import Machine

# Flags of a push and of the pop it meets, by queue.
PAIRS = {
    TokenQueue.LOAD_TO_COMPUTE: ("push_next", "pop_prev"),
    TokenQueue.COMPUTE_TO_LOAD: ("push_prev", "pop_next"),
    TokenQueue.COMPUTE_TO_STORE: ("push_next", "pop_prev"),
    TokenQueue.STORE_TO_COMPUTE: ("push_prev", "pop_next"),
}


@dataclass(frozen=True)
class Subject:
    """A correct launch: ``table (n,) INSN_DTYPE`` on ``dram``.

    ``known``: what the checker says of it, at most that it reads SRAM that nothing has written.
    """

    name: str
    table: NDArray[np.void]
    dram: NDArray[np.uint8]
    machine: Machine
    known: frozenset[Code]


def subject(
    name: str, table: NDArray[np.void], dram: NDArray[np.uint8], machine: Machine
) -> Subject:
    """A subject, found correct."""
    found = Checker(machine).check(encode_stream(table, machine), dram)
    known = frozenset(finding.code for finding in found)
    assert known <= {*PERSISTENT, Code.LOAD_UNFINISHED}, (name, [str(each) for each in found])
    return Subject(name, table, dram, machine, known)


@dataclass
class Score:
    """What became of the mutants: how many, and how many of them the checker flagged."""

    mutants: int = 0
    illegal: list[int] = field(default_factory=lambda: [0, 0])  # refused before they run
    uncertain: list[int] = field(
        default_factory=lambda: [0, 0]
    )  # the outcome is not always the same
    other: list[int] = field(
        default_factory=lambda: [0, 0]
    )  # always the same result, but not the original's
    by_result: int = 0  # of these: flagged by the bytes they leave in DRAM, by nothing else
    same: list[int] = field(default_factory=lambda: [0, 0])  # no byte of DRAM changed
    missed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{label:44} {flagged:6d} of {count:6d} flagged"
            for label, (count, flagged) in {
                "illegal, refused by every engine": self.illegal,
                "outcome depends on timing, or never ends": self.uncertain,
                "another result, the same on any timing": self.other,
                "same result": self.same,
            }.items()
        ]
        lines.insert(3, f"    {self.by_result} of these by the expected result alone")
        return "\n".join(lines)


def mutants(table: NDArray[np.void], rng: np.random.Generator) -> Iterator[tuple[str, NDArray]]:
    """Mutants at random, without end; each differs from ``table`` in one respect."""
    makers = (delete_token, delete_flag, move_flag, shrink_pad, shift_sram, shift_dram, shift_uops)
    while True:
        maker = makers[rng.integers(len(makers))]
        mutant = table.copy()
        what = maker(mutant, rng)
        if what and mutant.tobytes() != table.tobytes():
            yield what, mutant


def delete_token(table: NDArray[np.void], rng: np.random.Generator) -> str:
    """A push, and the pop that takes its token."""
    queue = TokenQueue(int(rng.integers(4)))
    pops, pushes = token_flow(table)
    count = int(min(pops[:, queue].sum(), pushes[:, queue].sum()))
    if not count:
        return ""
    index = int(rng.integers(count))
    ends = [np.flatnonzero(flow[:, queue])[index] for flow in (pushes, pops)]
    for number, flag in zip(ends, PAIRS[queue], strict=True):
        table[flag][number] = 0
    return f"token {queue.name} from insn {ends[0]} to {ends[1]} deleted"


def delete_flag(table: NDArray[np.void], rng: np.random.Generator) -> str:
    number, flag = _flag(table, rng)
    table[flag][number] = 0
    return f"{flag} of insn {number} deleted"


def move_flag(table: NDArray[np.void], rng: np.random.Generator) -> str:
    """To the instruction before or behind on the same stage."""
    number, flag = _flag(table, rng)
    stage = stages(table)
    peers = np.flatnonzero(stage == stage[number])
    place = int(np.searchsorted(peers, number)) + int(rng.choice([-2, -1, 1, 2]))
    if not 0 <= place < len(peers) or table[flag][peers[place]]:
        return ""
    table[flag][number] = 0
    table[flag][peers[place]] = 1
    return f"{flag} moved from insn {number} to {peers[place]}"


def shrink_pad(table: NDArray[np.void], rng: np.random.Generator) -> str:
    pad = PADS[rng.integers(len(PADS))]
    return _change(table, rng, table[pad] > 0, pad, -1)


def shift_sram(table: NDArray[np.void], rng: np.random.Generator) -> str:
    return _change(table, rng, _moves(table), "sram_base", int(rng.choice([-4, -1, 1, 2, 8])))


def shift_dram(table: NDArray[np.void], rng: np.random.Generator) -> str:
    return _change(table, rng, _moves(table), "dram_base", int(rng.choice([-16, -1, 1, 4, 64])))


def shift_uops(table: NDArray[np.void], rng: np.random.Generator) -> str:
    loops = np.isin(table["opcode"], (Opcode.GEMM, Opcode.ALU)) & (table["uop_end"] > 0)
    field_name = ("uop_begin", "uop_end", "dst_factor_in", "src_factor_out")[rng.integers(4)]
    return _change(table, rng, loops, field_name, int(rng.choice([-1, 1])))


def judge(
    subject: Subject,
    rng: np.random.Generator,
    *,
    count: int,
    orders: int,
    score: Score,
    context: str = "",
) -> None:
    """Add ``count`` mutants of ``subject`` to ``score``; ``orders`` executions decide on each."""
    original = execute(subject.table, subject.machine, subject.dram, None)
    source = mutants(subject.table, rng)
    for _ in range(count):
        what, mutant = next(source)
        try:
            words = encode_stream(mutant, subject.machine)
        except EncodingError:
            continue
        score.mutants += 1
        found = Checker(subject.machine).check(words, subject.dram)
        flagged = bool({finding.code for finding in errors(found)} - subject.known)
        kind = _classify(subject, mutant, original, rng, orders, score)
        kind[0] += 1
        kind[1] += flagged
        if kind is score.other and not flagged:
            expected = np.frombuffer(original.dram, dtype=np.uint8)
            flagged = wrong_result(words, subject.machine, subject.dram, expected) is not None
            score.by_result += flagged
            kind[1] += flagged
        if not flagged and kind is not score.same:
            score.missed.append(f"{context} {subject.name}: {what}")


def _classify(
    subject: Subject,
    mutant: NDArray[np.void],
    original: Outcome,
    rng: np.random.Generator,
    orders: int,
    score: Score,
) -> list[int]:
    machine, dram = subject.machine, subject.dram
    try:
        check_program(mutant, machine, len(dram))
    except StreamError:
        return score.illegal
    first = execute(mutant, machine, dram, None)
    if first.end != "done" or any(first.tokens):
        return score.uncertain
    if any(execute(mutant, machine, dram, rng).differs(first) for _ in range(orders)):
        return score.uncertain
    if not subject.known:  # then what SRAM held before must not matter either
        filled = execute(mutant, machine, dram, None, sram=rng)
        if (filled.end, filled.dram) != (first.end, first.dram):
            return score.uncertain
    changed = (first.end, first.dram) != (original.end, original.dram)
    return score.other if changed else score.same


def _flag(table: NDArray[np.void], rng: np.random.Generator) -> tuple[int, str]:
    """An instruction and a flag it has."""
    given = [(int(n), flag) for flag in FLAGS for n in np.flatnonzero(table[flag])]
    return given[rng.integers(len(given))]


def _moves(table: NDArray[np.void]) -> NDArray[np.bool_]:
    return np.isin(table["opcode"], (Opcode.LOAD, Opcode.STORE)) & (table["x_size"] > 0)


def _change(
    table: NDArray[np.void],
    rng: np.random.Generator,
    among: NDArray[np.bool_],
    name: str,
    by: int,
) -> str:
    numbers = np.flatnonzero(among & (table[name] + by >= 0))
    if not len(numbers):
        return ""
    number = int(rng.choice(numbers))
    table[name][number] += by
    return f"{name} of insn {number} changed by {by}"
