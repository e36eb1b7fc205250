"""Everything that can be known of a stream before it runs, from the stream and its micro-ops."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import as_words
from vta_isa.enums import Buffer, TokenQueue
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_BYTES, INSN_UNIT_BITS, UOP_BYTES, layouts
from vta_isa.machine import Machine, load_machine

from . import footprints, layout, ordering
from .compiled import compiled
from .dram import SharedDram, shared_dram
from .findings import Code, Finding, errors
from .layout import FAULT, FOOTPRINT_FIELDS, INFO_FIELDS, KIND, TOKENS, Limits
from .report import DRAM, NO_BOUND, Event, Reporter
from .result import wrong_result

LIMIT = 20  # findings of each code, by default
MAX_EVENTS = 4096
_UNSURE = layout.UNKNOWN_UOPS | layout.NEVER_LOADED  # what a GEMM or ALU touches


def check(
    stream: bytes | NDArray[Any],
    machine: Machine | str | Path | Mapping[str, Any],
    dram: NDArray[np.uint8] | bytes | None = None,
    *,
    fresh: bool = False,
    expected: NDArray[np.uint8] | bytes | None = None,
) -> list[Finding]:
    """Everything wrong with one stream; an empty list means that any memory gives its results.

    ``stream`` is bytes or an array of 128-bit words, ``dram`` the image it starts from (byte n is
    address n); without it micro-ops are unknown, and what they touch is not checked. ``fresh``:
    nothing ran before, so reading SRAM that the stream has not written is an error, not a warning.
    ``expected`` is the image there should be afterwards: a stream without errors is then executed,
    and other bytes are a finding. Raises StreamError where images do not fit together.
    """
    machine = load_machine(machine)
    before, after = _image(dram), _image(expected)
    if after is not None and before is None:
        raise StreamError(
            "a DRAM image is expected after the launch, but there is none before it; give both"
        )
    found = Checker(machine, fresh=fresh).check(stream, before)
    if before is not None and after is not None and not errors(found):
        wrong = wrong_result(as_words(stream), machine, before, after)
        found += [] if wrong is None else [wrong]
    return found


class Checker:
    """Checks launches in sequence: what one leaves in SRAM and token queues, the next one finds.

    ``fresh``: the first launch finds the machine as after reset. Of every code ``limit`` findings
    are listed per launch, and the rest counted.
    """

    def __init__(self, machine: Machine, *, fresh: bool = True, limit: int = LIMIT):
        self.machine = machine
        self.fresh = fresh
        self.limit = limit
        self._limits = _limits(machine, fresh=fresh)
        self._slots = _slots(machine)
        behind = self._limits.acc_slot + self._limits.acc_depth + 1
        self._written = np.zeros(behind, dtype=np.bool_)  # slots
        self._uops = np.zeros(machine.depth(Buffer.UOP), dtype=np.int64)
        self._tokens = np.zeros(len(TokenQueue), dtype=np.int64)

    def check(
        self,
        stream: bytes | NDArray[Any],
        dram: NDArray[np.uint8] | bytes | None = None,
        insn_address: int | None = None,
    ) -> list[Finding]:
        """Everything wrong with the next launch, by instruction number.

        ``dram`` is the image before it; ``insn_address`` the byte the stream is fetched from.
        """
        words = as_words(stream)
        launch = _Launch(self, words, dram, insn_address)
        found = sorted(launch.findings(), key=lambda each: -1 if each.insn is None else each.insn)
        self._uops, self._written = launch.uops, launch.written()
        if launch.complete:
            self._tokens = launch.tokens
        return _limited(found, launch.lost, self.limit)


class _Launch:
    """One launch on its way through the passes."""

    def __init__(
        self,
        checker: Checker,
        words: NDArray[np.uint64],
        dram: NDArray[np.uint8] | bytes | None,
        insn_address: int | None,
    ):
        self.machine = checker.machine
        self.before = checker
        self.insn_address = insn_address
        self.words = words
        image = _image(dram)
        dram_bytes = NO_BOUND if image is None else len(image)
        self.limits = checker._limits._replace(dram_bytes=dram_bytes, image=int(image is not None))
        self.report = Reporter(words, self.machine, dram_bytes, fresh=checker.fresh)
        self.uops = checker._uops.copy()
        self.lost: Counter[Code] = Counter()

        self.info = np.zeros((len(words), INFO_FIELDS), dtype=np.int64)
        self.marks = self._first_marks()
        tokens = np.zeros((2, len(TokenQueue)), dtype=np.int64)
        self.footprints, self.intervals, self.kept = compiled(footprints.run)(
            _writable(words).view(np.int64).reshape(-1),
            checker._slots,
            self.limits,
            _uop_words(image),
            self.uops,
            self.info,
            self.marks,
            tokens,
        )
        self.pushes, self.pops = tokens
        self.cell_of = np.cumsum(self.marks, dtype=np.int64) - 1  # of every slot
        self.writer = np.zeros(int(self.cell_of[-1]) + 1, dtype=np.int64)
        self.tokens = checker._tokens + self.pushes - self.pops
        self.order = np.zeros(0, dtype=np.int64)  # empty: program order
        self.complete = True

    def findings(self) -> Iterator[Finding]:
        yield from self._faults()
        yield from self.report.finish(np.flatnonzero(self.info[:, KIND] == layout.FINISHES))
        yield from self._token_findings()
        shared = shared_dram(self.words, self.info, self.machine)
        events, lost = self._follow(shared)
        yield from (self.report.event(event) for event in events)
        if lost:
            self.lost[Code.RACE] += lost
        if self.insn_address is not None:
            yield from self._stores_to_stream(self.insn_address)

    def written(self) -> NDArray[np.bool_]:
        """Slots that this launch or one before wrote."""
        now: NDArray[np.bool_] = (self.writer > 0)[self.cell_of]
        return now | self.before._written

    def _first_marks(self) -> NDArray[np.uint8]:
        limits, written = self.limits, self.before._written
        marks = np.zeros(len(written), dtype=np.uint8)
        for slot, depth in (
            (0, limits.inp_depth),
            (limits.wgt_slot, limits.wgt_depth),
            (limits.acc_slot, limits.acc_depth),
        ):
            marks[[slot, slot + depth]] = 1
        marks[1:] |= written[1:] != written[:-1]
        return marks

    def _faults(self) -> Iterator[Finding]:
        """What single instructions do that they must not."""
        fault = self.info[:, FAULT]
        if not fault.any():
            return
        illegal = np.flatnonzero(fault & layout.ILLEGAL)
        yield from self._first(illegal, Code.UNDEFINED, self.report.illegal)
        refused = {Code.SRAM_RANGE: layout.OUT_OF_RANGE, Code.TOO_CLOSE: layout.TOO_CLOSE}
        for code, bit in refused.items():
            yield from self._first(np.flatnonzero(fault & bit), code, partial(self._refused, code))
        seen: set[int] = set()
        for number in np.flatnonzero(fault & layout.NEVER_LOADED).tolist():
            footprint = int(self.info[number, layout.FIRST])
            if footprint not in seen and len(seen) <= self.before.limit:
                seen.add(footprint)
                missing = np.flatnonzero(self._kept_uops(number) & layout.LOADED == 0)
                begin = int(self.report.record(number)["uop_begin"])
                low, high = begin + int(missing[0]), begin + int(missing[-1])
                yield self.report.uops_never_loaded(number, low, high)
        unknown = np.flatnonzero(fault & layout.UNKNOWN_UOPS)
        if len(unknown):
            yield self.report.uops_unknown(unknown)

    def _refused(self, code: Code, number: int) -> Finding:
        return self.report.refused_uops(code, number, self._kept_uops(number))

    def _first(
        self, numbers: NDArray[np.intp], code: Code, finding: Callable[[int], Finding]
    ) -> Iterator[Finding]:
        """Findings for as many instructions as are listed; the rest is counted."""
        for number in numbers[: self.before.limit].tolist():
            yield finding(number)
        self.lost[code] += max(len(numbers) - self.before.limit, 0)

    def _kept_uops(self, number: int) -> NDArray[np.int64]:
        """What was in the micro-op memory, when a GEMM or ALU ran, between its begin and end."""
        row = int(self.info[number, layout.FIRST]) * FOOTPRINT_FIELDS
        first = int(self.footprints[row + layout.F_UOPS])
        record = self.report.record(number)
        uops: NDArray[np.int64] = self.kept[first : first + record["uop_end"] - record["uop_begin"]]
        return uops

    def _token_findings(self) -> Iterator[Finding]:
        """Pops, pushes and deadlocks; sets ``order`` where program order is not possible."""
        held = self.before._tokens.copy()
        short = False
        for queue in TokenQueue:
            there = int(held[queue] + self.pushes[queue])
            if self.pops[queue] > there:
                short = True
                popping = np.flatnonzero(self.info[:, TOKENS] >> queue & 1)
                number = int(popping[there])
                yield self.report.pop_without_push(number, queue, int(self.pops[queue]), there)
        if not compiled(ordering.in_program_order)(self.info, held.copy(), self.limits):
            order = np.zeros(len(self.words), dtype=np.int64)
            state = np.zeros(2 * layout.STAGES + 1, dtype=np.int64)
            done = compiled(ordering.schedule)(self.info, held, self.limits, order, state)
            self.order = order[:done]
            self.complete = bool((state[: layout.STAGES] == len(self.words)).all())
            if not self.complete and not short:
                yield self.report.deadlock(state, held, self.info)
        if self.complete:
            yield from self._tokens_left()

    def _tokens_left(self) -> Iterator[Finding]:
        for queue in TokenQueue:
            left = int(self.tokens[queue])
            if left > 0:
                pushing = np.flatnonzero(self.info[:, TOKENS] >> queue & layout.PUSH)
                number = int(pushing[-left]) if left <= len(pushing) else None
                yield self.report.token_left(number, queue, left)

    def _follow(self, shared: SharedDram) -> tuple[list[Event], int]:
        """What the last pass notes, one event per pair of instructions, kind and memory."""
        if not self.complete and not len(self.order):
            return [], 0
        there = self.before._written[np.flatnonzero(self.marks)].astype(np.uint8)
        unsure = layout.UNKNOWN_UOPS if self.limits.zero else _UNSURE
        if (self.info[:, FAULT] & unsure).any():
            there[self.cell_of[self.limits.acc_slot] :] = 1  # they may have written any of ACC
        events = np.zeros(MAX_EVENTS * layout.EVENT_FIELDS, dtype=np.int64)
        counts = np.zeros(2, dtype=np.int64)
        compiled(ordering.follow)(
            self.info,
            self.order,
            self.limits,
            self.before._tokens,
            self.footprints,
            self.intervals,
            self.cell_of,
            there,
            self.writer,
            shared.rows,
            shared.cells,
            max(len(shared.edges) - 1, 0),
            events,
            counts,
        )
        rows = events[: counts[0] * layout.EVENT_FIELDS].reshape(-1, layout.EVENT_FIELDS)
        return list(self._gathered(rows, shared)), int(counts[1])

    def _gathered(self, rows: NDArray[np.int64], shared: SharedDram) -> Iterator[Event]:
        starts = np.flatnonzero(self.marks)  # slot of every cell
        spans: dict[tuple[int, int, int, str], tuple[int, int]] = {}
        for kind, second, first, low_cell, high_cell in rows.tolist():
            if kind in (layout.DRAM_RAW, layout.DRAM_WAR, layout.UOPS_STORED):
                memory, base, edges = DRAM, 0, shared.edges
            elif kind in (layout.STORE_UNFINISHED, layout.LOAD_UNFINISHED):
                spans[kind, second, first, ""] = (0, 0)
                continue
            else:
                memory, base = self._memory(int(starts[low_cell]))
                edges = starts
            low, high = int(edges[low_cell]) - base, int(edges[high_cell]) - base - 1
            key = (kind, second, first, memory)
            before = spans.get(key, (low, high))
            spans[key] = (min(low, before[0]), max(high, before[1]))
        for (kind, second, first, memory), (low, high) in spans.items():
            yield Event(kind, second, first, memory, low, high)

    def _memory(self, slot: int) -> tuple[str, int]:
        """The memory a slot is in, and the slot of its first entry."""
        if slot >= self.limits.acc_slot:
            return Buffer.ACC.name, self.limits.acc_slot
        if slot >= self.limits.wgt_slot:
            return Buffer.WGT.name, self.limits.wgt_slot
        return Buffer.INP.name, 0

    def _stores_to_stream(self, address: int) -> Iterator[Finding]:
        end = address + len(self.words) * INSN_BYTES
        low, high = self.info[:, layout.LOW], self.info[:, layout.HIGH]
        stores = (self.info[:, KIND] == layout.DRAIN) & (low < end) & (high > address)
        for number in np.flatnonzero(stores)[: self.before.limit].tolist():
            first, last = max(int(low[number]), address), min(int(high[number]), end) - 1
            yield self.report.stream_overwritten(number, first, last)


@lru_cache(maxsize=64)
def _slots(machine: Machine) -> NDArray[np.int64]:
    """Where the fields of instructions are: the table that layout.py describes, flat."""
    kinds = layouts(machine)
    rows = []
    for kind in (kinds.mem, kinds.gemm, kinds.alu, kinds.requantize):
        for name in layout.FIELD_NAMES:
            slot = kind.slots.get(name) if kind else None
            if slot is None:
                rows.append((0, 0, 0))
            else:
                word, shift = divmod(slot.start, INSN_UNIT_BITS)
                rows.append((word, shift, (1 << slot.field.width) - 1))
    return np.array(rows, dtype=np.int64).reshape(-1)


@lru_cache(maxsize=64)
def _limits(machine: Machine, *, fresh: bool) -> Limits:
    slots = layouts(machine).uop.slots
    inp, wgt, acc, uop = (
        machine.depth(buffer) for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.UOP)
    )
    masks = {name: (1 << slot.field.width) - 1 for name, slot in slots.items()}
    return Limits(
        inp_depth=inp,
        wgt_depth=wgt,
        acc_depth=acc,
        uop_depth=uop,
        wgt_slot=inp + 1,
        acc_slot=inp + 1 + wgt + 1,
        src_shift=slots["src"].start,
        wgt_shift=slots["wgt"].start,
        dst_mask=masks["dst"],
        src_mask=masks["src"],
        wgt_mask=masks["wgt"],
        unit_uop=machine.entry_bytes(Buffer.UOP),
        unit_wgt=machine.entry_bytes(Buffer.WGT),
        unit_inp=machine.entry_bytes(Buffer.INP),
        unit_acc=machine.entry_bytes(Buffer.ACC),
        unit_out=machine.entry_bytes(Buffer.OUT),
        unit_acc_8bit=machine.entry_bytes(Buffer.ACC_8BIT),
        dram_bytes=NO_BOUND,
        image=0,
        zero=int(fresh),
        token_depth=machine.queues.token,
        command_depth=machine.queues.command,
        requantize=int(machine.extensions.alu_requantize),
    )


def _image(dram: NDArray[np.uint8] | bytes | None) -> NDArray[np.uint8] | None:
    if dram is None:
        return None
    image = np.frombuffer(dram, dtype=np.uint8) if isinstance(dram, bytes) else dram
    if image.dtype != np.uint8 or image.ndim != 1:
        raise StreamError(
            f"the DRAM image is an array {image.dtype} {image.shape}; it must be uint8 bytes in "
            "one dimension"
        )
    return image


def _uop_words(image: NDArray[np.uint8] | None) -> NDArray[np.uint32]:
    """The image as micro-ops."""
    if image is None:
        return np.zeros(0, dtype=np.uint32)
    words: NDArray[np.uint32] = _writable(image[: len(image) // UOP_BYTES * UOP_BYTES]).view("<u4")
    return words


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """The array or, if need be, a copy. For others numba would compile everything once more."""
    return np.require(array, requirements=("C", "W"))


def _limited(found: Iterable[Finding], lost: Counter[Code], limit: int) -> list[Finding]:
    """At most ``limit`` findings of each code; the last of a code says how many more there are."""
    listed: list[Finding] = []
    last: dict[Code, int] = {}
    left = Counter(lost)
    shown: Counter[Code] = Counter()
    for finding in found:
        if shown[finding.code] < limit:
            shown[finding.code] += 1
            last[finding.code] = len(listed)
            listed.append(finding)
        else:
            left[finding.code] += 1
    for code, place in last.items():
        if left[code]:
            listed[place] = replace(listed[place], more=left[code])
    return listed
