"""Cycles, counters and timeline of an instruction stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vta_isa import microarch
from vta_isa.enums import Buffer, Opcode, Stage, TokenQueue
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Bursts, Launch, Timeline
from vta_isa.machine import Machine

from ..checks import check_finish
from . import columns as kinds
from . import engine
from .columns import Columns, columns, iterations
from .compiled import compiled_run
from .deadlock import deadlock_error
from .engine import Log, Rules, State

NO_TOKENS = (0, 0, 0, 0)


@dataclass(frozen=True)
class Timing(Launch):
    """A launch, and the tokens it leaves in the four queues (by ``TokenQueue``)."""

    tokens: tuple[int, int, int, int]


def simulate(
    table: NDArray[np.void],
    machine: Machine,
    *,
    insn_address: int = 0,
    tokens: Sequence[int] = NO_TOKENS,
    compiled: bool | None = None,
    record_bursts: bool = False,
) -> Timing:
    """Time one launch of ``(n,) INSN_DTYPE``, whose words lie at ``insn_address`` (bytes) in DRAM.

    ``tokens`` are those earlier launches left in the queues. ``compiled`` picks machine code or the
    same source run by CPython (same numbers, some hundred times slower); None compiles unless
    NUMBA_DISABLE_JIT is set. ``record_bursts`` adds every DRAM burst to the timeline. Raises
    StreamError without a FINISH at the end, DeadlockError where stages wait for each other.
    """
    check_finish(table)
    if insn_address % INSN_BYTES:
        raise StreamError(
            f"the stream begins at byte {insn_address:#x}; instructions are aligned to {INSN_BYTES}"
            " bytes; place it at a multiple of that"
        )
    insns = columns(table, machine)
    rules = _rules(machine, len(table), insn_address, record_bursts)
    log, state = _memories(insns, rules, tokens)

    run: Any = engine.run if compiled is False else compiled_run()
    if run is None or run is engine.run:
        log, state = (type(part)(*(list(map(int, a)) for a in part)) for part in (log, state))
        finished = engine.run(insns.to_lists(), rules, log, state)
    else:
        finished = run(insns, rules, log, state)
    if not finished:
        raise deadlock_error(table, insns, rules, state)

    dispatch, start, end = (np.asarray(a, dtype=np.int64) for a in (log.dispatch, log.start, log.end))
    cycles = int(end.max()) + 1
    bursts = _bursts(log, state) if record_bursts else None
    timeline = Timeline(insns.stage.astype(np.int8), dispatch, start, end, bursts)
    counters = {
        "cycles": cycles,
        **_attribution(log, state, cycles),
        **_events(table, insns, state),
    }
    left = [int(pushed) - int(popped) for pushed, popped in zip(state.pushed, state.popped, strict=True)]
    return Timing(cycles, counters, timeline, (left[0], left[1], left[2], left[3]))


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _rules(machine: Machine, insns: int, insn_address: int, record_bursts: bool) -> Rules:
    bus, burst = machine.bus_bytes, microarch.burst_bytes(machine)
    window = microarch.read_window(machine)
    seed = machine.memory.jitter
    return Rules(
        insns=insns,
        insn_address=insn_address,
        insn_bytes=INSN_BYTES,
        chunk_insns=microarch.CHUNK_INSNS,
        buffer_insns=microarch.CHUNK_INSNS * microarch.BUFFER_CHUNKS,
        fetch_request=microarch.FETCH_REQUEST,
        command_depth=machine.queues.command,
        token_depth=machine.queues.token,
        token_ring=_power_of_two(machine.queues.token),
        bus_bytes=bus,
        burst_bytes=burst,
        outstanding=machine.axi.outstanding_reads,
        window=window,
        read_latency=machine.memory.read_latency,
        write_latency=machine.memory.write_latency,
        jitter=int(seed is not None),
        read_key=microarch.jitter_key(seed or 0, microarch.READ_CHANNEL),
        write_key=microarch.jitter_key(seed or 0, microarch.WRITE_CHANNEL),
        beat_ring=_power_of_two(max(window, burst // bus)),
        record_bursts=int(record_bursts),
    )


def _memories(insns: Columns, rules: Rules, tokens: Sequence[int]) -> tuple[Log, State]:
    """Everything the engine writes, as it is before cycle 0."""

    def zeros(size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    n = rules.insns
    log = Log(zeros(n), zeros(n), zeros(n), zeros(4 * engine.CAUSES), zeros(0))
    if rules.record_bursts:
        log = log._replace(bursts=zeros(8 * _most_bursts(insns, rules)))
    scalars = zeros(engine.SCALARS)
    scalars[[engine.LAST_DISPATCH, engine.LAST_GRANT, engine.LAST_BEAT]] = -1
    pushed, push_cycle = zeros(4), zeros(4 * rules.token_ring)
    for queue, count in enumerate(tokens):
        if not 0 <= count <= rules.token_depth:
            raise StreamError(
                f"{count} tokens are left in queue {TokenQueue(queue).name.lower()}; it holds 0.."
                f"{rules.token_depth}; let earlier launches pop what they push"
            )
        pushed[queue] = count
        push_cycle[queue * rules.token_ring :][:count] = -1
    first = zeros(5)
    first[1:] = np.cumsum(np.bincount(insns.stage, minlength=4))
    none_asked = np.full(engine.CLIENTS, engine.NEVER, dtype=np.int64)
    return log, State(
        scalars=scalars,
        order=np.argsort(insns.stage.astype(np.int8), kind="stable"),
        first=first,
        sent=zeros(4),
        started=zeros(4),
        phase=zeros(4),
        free=zeros(4),
        ready=zeros(4),
        pushed=pushed,
        popped=zeros(4),
        push_cycle=push_cycle,
        pop_cycle=zeros(4 * rules.token_ring),
        arrival=zeros(rules.buffer_insns),
        present=none_asked,
        position=zeros(engine.CLIENTS),
        row_end=zeros(engine.CLIENTS),
        rows_left=zeros(engine.CLIENTS),
        row_start=zeros(engine.CLIENTS),
        client_beats=zeros(engine.CLIENTS),
        burst_first=zeros(rules.outstanding),
        burst_last=zeros(rules.outstanding),
        burst_begin=zeros(rules.outstanding),
        beat_cycle=zeros(rules.beat_ring if rules.jitter else 1),
    )


def _most_bursts(insns: Columns, rules: Rules) -> int:
    """No launch has more bursts than this: two more per row than whole ones fit it."""
    per_row = insns.row_bytes // rules.burst_bytes + 2
    chunk = rules.chunk_insns * rules.insn_bytes
    chunks = rules.insns // rules.chunk_insns + 2
    return int((per_row * insns.rows).sum()) + chunks * (chunk // rules.burst_bytes + 2)


def _bursts(log: Log, state: State) -> Bursts:
    """The burst log as arrays, reads before writes; each kind is in order already."""
    count = int(state.scalars[engine.READ_BURSTS] + state.scalars[engine.WRITE_BURSTS])
    rows = np.asarray(log.bursts, dtype=np.int64)[: 8 * count].reshape(count, 8)
    rows = rows[np.argsort(rows[:, 0] == Stage.STORE, kind="stable")]
    return Bursts(rows[:, 0].astype(np.int8), *(rows[:, i].copy() for i in range(1, 8)))


# Counter -> the engine's causes that make it up.
_CAUSES: dict[str, tuple[int, ...]] = {
    "fetch_busy": (),
    "fetch_wait_dram": (engine.WAIT_DRAM,),
    "fetch_wait_queue_full": (engine.WAIT_FULL,),
    "fetch_idle": (),
    "load_busy": (engine.BUSY_OTHER, engine.BUSY_LOAD),
    "load_wait_dram": (engine.WAIT_DRAM,),
    "load_wait_compute": (engine.WAIT_NEXT,),
    "load_wait_token_full": (engine.WAIT_FULL,),
    "load_idle": (engine.IDLE,),
    "compute_busy_gemm": (engine.BUSY_GEMM,),
    "compute_busy_alu": (engine.BUSY_ALU,),
    "compute_busy_load": (engine.BUSY_LOAD,),
    "compute_busy_other": (engine.BUSY_OTHER,),
    "compute_wait_dram": (engine.WAIT_DRAM,),
    "compute_wait_load": (engine.WAIT_PREV,),
    "compute_wait_store": (engine.WAIT_NEXT,),
    "compute_wait_token_full": (engine.WAIT_FULL,),
    "compute_idle": (engine.IDLE,),
    "store_busy": (engine.BUSY_OTHER, engine.BUSY_STORE),
    "store_wait_dram": (engine.WAIT_DRAM,),
    "store_wait_compute": (engine.WAIT_PREV,),
    "store_wait_token_full": (engine.WAIT_FULL,),
    "store_idle": (engine.IDLE,),
}
_STAGES = ("fetch", "load", "compute", "store")


def _attribution(log: Log, state: State, cycles: int) -> dict[str, int]:
    """Cycles of every stage by cause; a stage is idle behind its last instruction."""
    spent = [int(value) for value in log.spent]
    counters = {}
    for name, causes in _CAUSES.items():
        stage = _STAGES.index(name.split("_")[0])
        counters[name] = sum(spent[stage * engine.CAUSES + cause] for cause in causes)
    counters["fetch_busy"] = int(state.scalars[engine.DISPATCHED])
    counters["fetch_idle"] = cycles - 1 - int(state.scalars[engine.LAST_DISPATCH])
    for stage, name in enumerate(_STAGES[1:], start=1):
        counters[f"{name}_idle"] += cycles - int(state.free[stage])
    return counters


def _events(table: NDArray[np.void], insns: Columns, state: State) -> dict[str, int]:
    """What does not depend on time: instructions, operations, bytes."""
    per_stage = np.bincount(insns.stage, minlength=4)
    repeats = iterations(table)
    gemm, reset = insns.kind == kinds.GEMM, table["reset"] != 0
    requested = insns.row_bytes * insns.rows
    memory = np.flatnonzero(requested)
    loads = memory[insns.kind[memory] == kinds.LOAD]
    by_buffer = np.zeros(8, dtype=np.int64)
    np.add.at(by_buffer, table["buffer"][loads], requested[loads])
    insn_bytes = len(table) * INSN_BYTES
    out_bytes = int(requested[memory].sum() - by_buffer.sum())
    scalars = [int(value) for value in state.scalars]
    return {
        "load_instructions": int(per_stage[Stage.LOAD]),
        "compute_instructions": int(per_stage[Stage.COMPUTE]),
        "store_instructions": int(per_stage[Stage.STORE]),
        "gemm_ops": int(repeats[gemm & ~reset].sum()),
        "reset_ops": int(repeats[gemm & reset].sum()),
        "alu_ops": int(repeats[insns.kind == kinds.ALU].sum()),
        "dram_read_beats": scalars[engine.READ_BEATS],
        "dram_read_bursts": scalars[engine.READ_BURSTS],
        "dram_read_bytes": int(by_buffer.sum()) + insn_bytes,
        "dram_write_beats": scalars[engine.WRITE_BEATS],
        "dram_write_bursts": scalars[engine.WRITE_BURSTS],
        "dram_write_bytes": out_bytes,
        "insn_bytes": insn_bytes,
        "uop_bytes": int(by_buffer[Buffer.UOP]),
        "inp_bytes": int(by_buffer[Buffer.INP]),
        "wgt_bytes": int(by_buffer[Buffer.WGT]),
        "acc_bytes": int(by_buffer[Buffer.ACC] + by_buffer[Buffer.ACC_8BIT]),
        "out_bytes": out_bytes,
    }
