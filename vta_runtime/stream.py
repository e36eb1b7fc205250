"""The instruction queue: records waiting for a launch, and the dependence flags on them.

A record is kept as one byte, the lowest seven bits of its instruction (opcode and flags), and a
row of numbers for its kind, so that millions of them stay cheap; they become instructions in one
vectorised step when the stream is launched.
"""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Buffer, Opcode, Stage
from vta_isa.errors import RuntimeCallError
from vta_isa.insn import INSN_DTYPE, MEM, stages

from .uops import Kernel, Kernels

# The flags where they are in the instruction, and so in a record's byte.
POP_PREV, POP_NEXT, PUSH_PREV, PUSH_NEXT = (
    1 << MEM.slots[name].start for name in ("pop_prev", "pop_next", "push_prev", "push_next")
)
_POPS = POP_PREV | POP_NEXT
_OPCODE = MEM.slots["opcode"].mask
_MEM_FIELDS = tuple(
    name for name in MEM.slots if MEM.slots[name].start >= MEM.slots["buffer"].start
)
_NOOP_ROWS = {
    # A no-op is a memory instruction of nothing. The published runtime writes memory 0 in STOREs.
    stage: (int(buffer), *[0] * (len(_MEM_FIELDS) - 1))
    for stage, buffer in (
        (Stage.LOAD, Buffer.INP),
        (Stage.COMPUTE, Buffer.UOP),
        (Stage.STORE, Buffer.UOP),
    )
}
_NO_STAGE = 0
_LOAD_STAGE_BUFFERS = (Buffer.INP, Buffer.WGT)


class InstructionQueue:
    """Instructions in program order, with the published rules for dependence flags.

    Per stage two pops may be pending: its next instruction takes them. A push goes into the last
    record of the whole queue where that is one of the pushing stage, and into a no-op otherwise.
    """

    def __init__(self) -> None:
        self._prefix = bytearray()
        self._mem = array("q")  # len(_MEM_FIELDS) numbers per LOAD and STORE, no-ops included
        self._kernels = array("q")  # number of the kernel and its first micro-op, per GEMM and ALU
        self._pending = [0] * (max(Stage) + 1)
        self._last_stage = _NO_STAGE  # of the last record, as the rule for pushes sees it

    def __len__(self) -> int:
        return len(self._prefix)

    def load(self, buffer: int, shape: Sequence[int]) -> None:
        """Append a LOAD; ``shape`` are the fields from sram_base to x_pad_after, in word order."""
        stage = Stage.LOAD if buffer in _LOAD_STAGE_BUFFERS else Stage.COMPUTE
        self._prefix.append(Opcode.LOAD | self._take_pending(stage))
        self._mem.append(buffer)
        self._mem.extend(shape)
        x_size = shape[3]
        # A LOAD of nothing belongs to no stage for the next push, as published.
        self._last_stage = stage if x_size else _NO_STAGE

    def store(self, shape: Sequence[int]) -> None:
        """Append a STORE; ``shape`` as for ``load``."""
        self._prefix.append(Opcode.STORE | self._take_pending(Stage.STORE))
        self._mem.append(Buffer.OUT)
        self._mem.extend(shape)
        self._last_stage = Stage.STORE

    def compute(self, kernel: Kernel, uop_begin: int) -> None:
        """Append the GEMM or ALU that runs ``kernel`` from SRAM entry ``uop_begin``."""
        self._prefix.append(kernel.opcode | self._take_pending(Stage.COMPUTE))
        self._kernels.extend((kernel.number, uop_begin))
        self._last_stage = Stage.COMPUTE

    def dep_pop(self, from_stage: int, to_stage: int) -> None:
        """The next instruction of ``to_stage`` waits for a token of ``from_stage``."""
        _check_edge("dep_pop", from_stage, to_stage)
        flag = POP_PREV if from_stage < to_stage else POP_NEXT
        if self._pending[to_stage] & flag:
            self.commit_pending_pops(to_stage)
        self._pending[to_stage] |= flag

    def dep_push(self, from_stage: int, to_stage: int) -> None:
        """``from_stage`` gives ``to_stage`` a token when it is done with what is queued so far."""
        _check_edge("dep_push", from_stage, to_stage)
        self.commit_pending_pops(from_stage)
        flag = PUSH_NEXT if from_stage < to_stage else PUSH_PREV
        if self._last_stage == from_stage and not self._prefix[-1] & flag:
            self._prefix[-1] |= flag
        else:
            self._append_noop(from_stage, flag)

    def commit_pending_pops(self, stage: int) -> None:
        """Emit the pops pending on ``stage``, if any, as a no-op of its own."""
        if self._pending[stage]:
            self._append_noop(stage, self._take_pending(stage))

    def finish(self) -> None:
        """Append the published tail: FINISH once the load and the store stage are done."""
        self.dep_push(Stage.STORE, Stage.COMPUTE)
        self.dep_push(Stage.LOAD, Stage.COMPUTE)
        self.dep_pop(Stage.STORE, Stage.COMPUTE)
        self.dep_pop(Stage.LOAD, Stage.COMPUTE)
        self.commit_pending_pops(Stage.COMPUTE)
        self._append_finish()

    def finish_serial(self) -> None:
        """Rewrite every flag so that each instruction waits for the one before it, then FINISH.

        Neighbours in program order on neighbouring stages are chained by one token; all other
        flags, and pops that are still pending, are dropped. The published runtime leaves adjacent
        load and store instructions unchained, since there is no queue between those stages, and
        then they overlap; here a no-op of the compute stage between them passes the token on.
        """
        self._pending = [0] * len(self._pending)
        self._link_load_and_store()
        stage = stages(self._table())
        flags = np.zeros(len(stage), np.uint8)
        rising = stage[1:] > stage[:-1]
        falling = stage[1:] < stage[:-1]
        flags[:-1] |= np.where(rising, PUSH_NEXT, 0).astype(np.uint8)
        flags[1:] |= np.where(rising, POP_PREV, 0).astype(np.uint8)
        flags[:-1] |= np.where(falling, PUSH_PREV, 0).astype(np.uint8)
        flags[1:] |= np.where(falling, POP_NEXT, 0).astype(np.uint8)
        opcodes = np.frombuffer(bytes(self._prefix), np.uint8) & _OPCODE
        self._prefix = bytearray((opcodes | flags).tobytes())
        if self._prefix and self._prefix[-1] & _OPCODE == Opcode.STORE:
            self._prefix[-1] |= PUSH_PREV
            self._append_noop(Stage.COMPUTE, POP_NEXT)
        self.dep_push(Stage.COMPUTE, Stage.LOAD)
        self.dep_pop(Stage.LOAD, Stage.COMPUTE)
        self.dep_pop(Stage.COMPUTE, Stage.LOAD)
        self.dep_push(Stage.LOAD, Stage.COMPUTE)
        self.commit_pending_pops(Stage.COMPUTE)
        self._append_finish()

    def records(self, kernels: Kernels) -> NDArray[np.void]:
        """The queue as (n,) INSN_DTYPE; ``kernels`` are those the numbers in it mean."""
        table = self._table()
        opcode = table["opcode"]
        at = np.flatnonzero((opcode == Opcode.GEMM) | (opcode == Opcode.ALU))
        if at.size:
            numbers, begins = _numbers(self._kernels, 2).T
            for name, column in kernels.fields().items():
                table[name][at] = column[numbers]
            # Until here uop_begin is 0 and uop_end the kernel's size.
            table["uop_begin"][at] = begins
            table["uop_end"][at] += begins.astype(np.int32)
        return table

    def clear(self) -> None:
        """Forget every record, and the pops that are pending where no tail emitted them."""
        self._prefix = bytearray()
        self._mem = array("q")
        self._kernels = array("q")
        self._pending = [0] * len(self._pending)
        self._last_stage = _NO_STAGE

    def _take_pending(self, stage: int) -> int:
        pops = self._pending[stage]
        self._pending[stage] = 0
        return pops

    def _append_noop(self, stage: int, flags: int) -> None:
        row = _NOOP_ROWS[Stage(stage)]
        opcode = Opcode.STORE if stage == Stage.STORE else Opcode.LOAD
        self._prefix.append(opcode | flags)
        self._mem.extend(row)
        # LOAD no-ops belong to no stage for the next push, STORE no-ops do, as published.
        self._last_stage = Stage.STORE if stage == Stage.STORE else _NO_STAGE

    def _append_finish(self) -> None:
        self._prefix.append(Opcode.FINISH | self._take_pending(Stage.COMPUTE))
        self._last_stage = Stage.COMPUTE

    def _link_load_and_store(self) -> None:
        """Put a compute no-op between every load-stage and store-stage neighbours."""
        stage = stages(self._table())
        apart = np.flatnonzero(np.abs(np.diff(stage)) == Stage.STORE - Stage.LOAD) + 1
        if not apart.size:
            return
        prefix = np.frombuffer(bytes(self._prefix), np.uint8)
        opcode = prefix & _OPCODE
        is_mem = (opcode == Opcode.LOAD) | (opcode == Opcode.STORE)
        mem_before = np.cumsum(is_mem) - is_mem  # rows of _mem that lie before each record
        rows = _numbers(self._mem, len(_MEM_FIELDS))
        rows = np.insert(rows, mem_before[apart], _NOOP_ROWS[Stage.COMPUTE], axis=0)
        self._mem = array("q", rows.astype(np.int64).tobytes())
        self._prefix = bytearray(np.insert(prefix, apart, Opcode.LOAD).tobytes())

    def _table(self) -> NDArray[np.void]:
        """Opcode, flags and memory fields of every record; what a kernel gives is still 0."""
        prefix = np.frombuffer(bytes(self._prefix), np.uint8)
        opcode = prefix & _OPCODE
        table = np.zeros(len(prefix), INSN_DTYPE)
        table["opcode"] = opcode
        for name, flag in (
            ("pop_prev", POP_PREV),
            ("pop_next", POP_NEXT),
            ("push_prev", PUSH_PREV),
            ("push_next", PUSH_NEXT),
        ):
            table[name] = prefix & flag != 0
        at = np.flatnonzero((opcode == Opcode.LOAD) | (opcode == Opcode.STORE))
        rows = _numbers(self._mem, len(_MEM_FIELDS))
        for name, column in zip(_MEM_FIELDS, rows.T, strict=True):
            table[name][at] = column
        return table


def _numbers(flat: "array[int]", columns: int) -> NDArray[np.int64]:
    """A copy of ``flat`` as rows; a view would keep the array from growing."""
    return np.frombuffer(flat.tobytes(), np.int64).reshape(-1, columns)


def _check_edge(call: str, from_stage: int, to_stage: int) -> None:
    for stage in (from_stage, to_stage):
        if not Stage.LOAD <= stage <= Stage.STORE:
            raise RuntimeCallError(
                f"{call}: stage {stage} does not exist; load is 1, compute 2, store 3"
            )
    if abs(from_stage - to_stage) != 1:
        names = f"{Stage(from_stage).name.lower()} to {Stage(to_stage).name.lower()}"
        raise RuntimeCallError(
            f"{call}: there is no token queue from {names}; go through compute: load (1) - compute "
            f"(2) - store (3)"
        )
