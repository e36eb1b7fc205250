"""Streams executed in any order that their tokens allow, chosen at random: the judge of races.

Three stages run their instructions in order and meet in token queues, as the machine does. Which of
them goes on is drawn at random, again and again within an instruction: a LOAD or STORE moves a few
entries at a time, a GEMM or ALU runs a few iterations. A stream whose outcome depends on the draw
has a race; one that comes to the same end many times probably has none.

Values are those of simulator.reference, in steps of a few entries at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from simulator.checks import check_uops, executes, is_requantize
from simulator.order import token_flow
from simulator.reference import ReferenceState, alu_result, bias_entry, requantized, wrap
from vta_isa.encoding import decode_uops
from vta_isa.enums import AluOp, Buffer, Opcode, Stage, TokenQueue
from vta_isa.errors import StreamError
from vta_isa.insn import stages
from vta_isa.machine import Machine
from vta_isa.tensors import pack_entries, unpack_entries

CHURN = (0.0, 0.02, 0.1, 0.4, 1.0)  # how often the preferred stage changes, per step


@dataclass(frozen=True)
class Outcome:
    """How a launch ended: all that anybody can see of it afterwards."""

    end: str  # "done", "deadlock", or what an instruction could not do
    finished: bytes  # DRAM when FINISH ran: what the host reads
    dram: bytes  # DRAM when everything had run
    sram: bytes
    tokens: tuple[int, ...]

    def differs(self, other: "Outcome") -> bool:
        return self != other


def execute(
    table: NDArray[np.void],
    machine: Machine,
    dram: NDArray[np.uint8],
    rng: np.random.Generator | None,
    sram: np.random.Generator | None = None,
) -> Outcome:
    """Run ``table`` once; without ``rng`` always the lowest instruction number, each in one piece.

    ``dram`` stays as it is. ``sram`` fills the memories with anything first; otherwise they are 0.
    """
    return _Run(table, machine, dram.copy(), rng, sram).outcome()


class _Run:
    def __init__(
        self,
        table: NDArray[np.void],
        machine: Machine,
        dram: NDArray[np.uint8],
        rng: np.random.Generator | None,
        sram: np.random.Generator | None,
    ):
        self.table, self.machine, self.dram, self.rng = table, machine, dram, rng
        self.state = ReferenceState(machine)
        if sram is not None:
            for memory in (self.state.inp, self.state.wgt, self.state.acc):
                memory[...] = sram.integers(-2, 3, memory.shape)  # fits every type
            self.state.uop[...] = sram.integers(0, 2, self.state.uop.shape)
        stage = stages(table)
        self.numbers = {s: np.flatnonzero(stage == s).tolist() for s in Stage}
        self.next = dict.fromkeys(Stage, 0)
        self.pops, self.pushes = (
            [np.flatnonzero(row).tolist() for row in flow] for flow in token_flow(table)
        )
        self.left = len(table)
        self.held = [0] * len(TokenQueue)
        self.running: dict[Stage, Iterator[None] | None] = dict.fromkeys(Stage)
        self.finished = b""

    def outcome(self) -> Outcome:
        try:
            end = self._run()
        except (StreamError, IndexError) as error:
            end = type(error).__name__
        memories = (self.state.inp, self.state.wgt, self.state.acc)
        sram = b"".join(memory.tobytes() for memory in memories)
        return Outcome(end, self.finished, self.dram.tobytes(), sram, tuple(self.held))

    def _run(self) -> str:
        favour = list(Stage)
        churn = 0.0
        if self.rng is not None:
            self.rng.shuffle(favour)
            churn = float(self.rng.choice(CHURN))
        while self.left:
            if self.rng is not None and self.rng.random() < churn:
                self.rng.shuffle(favour)
            able = [s for s in favour if self._can_go_on(s)]
            if not able:
                return "deadlock"
            if self.rng is None:
                able.sort(key=lambda s: self.numbers[s][self.next[s]])
            self._go_on(able[0])
        return "done"

    def _can_go_on(self, stage: Stage) -> bool:
        if self.next[stage] >= len(self.numbers[stage]):
            return False
        number = self.numbers[stage][self.next[stage]]
        if self.running[stage] is None:
            return all(self.held[q] for q in self.pops[number])
        return True

    def _go_on(self, stage: Stage) -> None:
        number = self.numbers[stage][self.next[stage]]
        running = self.running[stage]
        if running is None:
            for queue in self.pops[number]:
                self.held[queue] -= 1
            running = self.running[stage] = self._pieces(number)
        if next(running, "done") is None:
            return
        # Queues are endless here: a full one only takes orders away. test_checker.py looks at them.
        for queue in self.pushes[number]:
            self.held[queue] += 1
        self.running[stage] = None
        self.next[stage] += 1
        self.left -= 1

    def _pieces(self, number: int) -> Iterator[None]:
        """Execute an instruction; yields wherever another stage may go on in between."""
        insn = self.table[number]
        match int(insn["opcode"]):
            case Opcode.LOAD if insn["x_size"]:
                yield from self._load(insn)
            case Opcode.STORE if insn["x_size"]:
                yield from self._store(insn)
            case Opcode.GEMM | Opcode.ALU if executes(insn):
                yield from self._iterate(insn, number)
            case Opcode.FINISH:
                self.finished = self.dram.tobytes()

    def _parts(self, count: int) -> Iterator[slice]:
        """``0 .. count`` in up to five parts, cut anywhere."""
        cuts = [0, count]
        if self.rng is not None and count > 1:
            cuts += self.rng.integers(1, count, int(self.rng.integers(0, 5))).tolist()
        cuts = sorted(set(cuts))
        yield from (slice(a, b) for a, b in pairwise(cuts))

    def _load(self, insn: np.void) -> Iterator[None]:
        buffer = Buffer(int(insn["buffer"]))
        memory = self.state.sram(Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer)
        unit = self.machine.entry_bytes(buffer)
        above, rows, below = (int(insn[f"y_{p}"]) for p in ("pad_before", "size", "pad_after"))
        left, columns, right = (int(insn[f"x_{p}"]) for p in ("pad_before", "size", "pad_after"))
        source = np.full((above + rows + below, left + columns + right), -1, dtype=np.int64)
        core = source[above : above + rows, left : left + columns]
        core[...] = np.arange(rows)[:, None] * int(insn["x_stride"]) + np.arange(columns)
        core += int(insn["dram_base"])
        flat = source.reshape(-1)
        base = int(insn["sram_base"])
        for part in self._parts(len(flat)):
            entries = flat[part]
            raw = self.dram[(np.maximum(entries, 0)[:, None] * unit + np.arange(unit))]
            if buffer == Buffer.UOP:
                values = raw.copy().view("<u4").reshape(-1)
            else:
                values = unpack_entries(raw.reshape(-1), buffer, self.machine)
            values = values.copy()
            values[entries < 0] = 0
            memory[base + part.start : base + part.stop] = values
            yield

    def _store(self, insn: np.void) -> Iterator[None]:
        unit = self.machine.entry_bytes(Buffer.OUT)
        rows, columns = int(insn["y_size"]), int(insn["x_size"])
        target = (np.arange(rows)[:, None] * int(insn["x_stride"]) + np.arange(columns)).reshape(-1)
        target += int(insn["dram_base"])
        base = int(insn["sram_base"])
        for part in self._parts(len(target)):
            narrow = wrap(
                self.state.acc[base + part.start : base + part.stop],
                self.machine.bits(Buffer.OUT),
            )
            packed = pack_entries(narrow, Buffer.OUT, self.machine).reshape(-1, unit)
            for entry, data in zip(target[part].tolist(), packed, strict=True):
                self.dram[entry * unit : (entry + 1) * unit] = data
            yield

    def _iterate(self, insn: np.void, number: int) -> Iterator[None]:
        words = self.state.uop[int(insn["uop_begin"]) : int(insn["uop_end"])]
        uops = decode_uops(words, self.machine)
        check_uops(insn, number, uops, self.machine)
        i, j = np.meshgrid(
            np.arange(int(insn["iter_out"])), np.arange(int(insn["iter_in"])), indexing="ij"
        )
        dst, src, wgt = (
            (
                (i * int(insn[f"{name}_factor_out"]) + j * int(insn[f"{name}_factor_in"]))[
                    ..., None
                ]
                + uops[:, column]
            ).reshape(-1)
            for column, name in enumerate(("dst", "src", "wgt"))
        )
        compute = self._gemm if insn["opcode"] == Opcode.GEMM else self._alu
        if is_requantize(insn):
            yield from self._requantize(insn, uops, dst)
            return
        for part in self._parts(len(dst)):
            compute(insn, dst[part], src[part], wgt[part])
            yield

    def _gemm(self, insn: np.void, dst: NDArray, src: NDArray, wgt: NDArray) -> None:
        acc = self.state.acc
        if insn["reset"]:
            acc[dst] = 0
            return
        if insn["overwrite"] and len(np.unique(dst)) < len(dst):
            for k in range(len(dst)):  # one after the other: the last one stays
                self._gemm(insn, dst[k : k + 1], src[k : k + 1], wgt[k : k + 1])
            return
        if insn["overwrite"]:
            acc[dst] = 0
        # Sums wrap, so it is all the same when they do.
        products = self.state.inp[src].astype(np.int64) @ (
            self.state.wgt[wgt].astype(np.int64).transpose(0, 2, 1)
        )
        touched, place = np.unique(dst, return_inverse=True)
        sums = acc[touched].astype(np.int64)
        np.add.at(sums, place, products)
        acc[touched] = wrap(sums, self.machine.bits(Buffer.ACC))

    def _requantize(self, insn: np.void, uops: NDArray, dst: NDArray) -> Iterator[None]:
        acc = self.state.acc
        inner = len(dst) // int(insn["iter_out"])
        bias = np.zeros(acc.shape[1:], dtype=np.int64)
        for part in self._parts(len(dst)):
            for k in range(len(dst))[part]:
                if k % inner == 0 and not insn["use_imm"]:
                    bias = acc[bias_entry(insn, uops, k // inner)].astype(np.int64)
                acc[dst[k]] = requantized(insn, acc[dst[k]], bias, self.machine)
            yield

    def _alu(self, insn: np.void, dst: NDArray, src: NDArray, wgt: NDArray) -> None:
        acc, bits = self.state.acc, self.machine.bits(Buffer.ACC)
        op = AluOp(int(insn["alu_op"]))
        alone = len(np.unique(dst)) == len(dst) and (insn["use_imm"] or not np.isin(src, dst).any())
        for one in [slice(None)] if alone else [slice(k, k + 1) for k in range(len(dst))]:
            x = acc[dst[one]].astype(np.int64)
            y = np.int64(insn["imm"]) if insn["use_imm"] else acc[src[one]].astype(np.int64)
            acc[dst[one]] = wrap(alu_result(op, x, y), bits)


def random_outcomes(
    table: NDArray[np.void],
    machine: Machine,
    dram: NDArray[np.uint8],
    rng: np.random.Generator,
    count: int,
) -> Iterator[Outcome]:
    """``count`` outcomes; the first is that of program order, where that is legal."""
    yield execute(table, machine, dram, None)
    for _ in range(count - 1):
        yield execute(table, machine, dram, rng)
