"""Cycles, counters and timeline of an instruction stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from vta_isa import microarch
from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.enums import AluOp, Buffer, Stage, TokenQueue
from vta_isa.errors import StreamError
from vta_isa.insn import INSN_BYTES, INSN_DTYPE
from vta_isa.launch import Bursts, Launch, Places, Timeline
from vta_isa.machine import Machine

from ..checks import check_finish
from . import layout
from .compiled import compiled_run
from .deadlock import deadlock_error
from .decode import Words
from .engine import run as uncompiled_run
from .layout import CAUSES, INSN_FIELDS, SPENT, Rules

NO_TOKENS = (0, 0, 0, 0)

_WORD = 4
_OFFSETS = {name: field[1] for name, field in (INSN_DTYPE.fields or {}).items()}
_WORDS = Words(
    **{name: _OFFSETS[name] // _WORD for name in Words._fields[:-1]},
    record=INSN_DTYPE.itemsize // _WORD,
)


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
    record_places: bool = False,
) -> Timing:
    """Time one launch of ``(n,) INSN_DTYPE``, whose words lie at ``insn_address`` (bytes) in DRAM.

    ``tokens`` are those earlier launches left in the queues. ``compiled`` picks machine code or the
    same source run by CPython (same numbers, some hundred times slower); None compiles unless
    NUMBA_DISABLE_JIT is set. ``record_bursts`` adds every DRAM burst to the timeline,
    ``record_places`` to which instruction each cycle of each stage belongs. Raises StreamError
    without a FINISH at the end, DeadlockError where stages wait for each other.
    """
    check_finish(table)
    if not 0 <= insn_address < 1 << machine.axi.addr_bits:
        raise StreamError(
            f"the stream begins at byte {insn_address:#x}; an address has "
            f"{machine.axi.addr_bits} bits (axi.addr_bits); place it lower"
        )
    if insn_address % INSN_BYTES:
        raise StreamError(
            f"the stream begins at byte {insn_address:#x}; instructions are aligned to {INSN_BYTES}"
            " bytes; place it at a multiple of that"
        )
    rules = _rules(machine, len(table), insn_address, record_bursts)
    unit = _entry_bytes(machine)
    words = np.ascontiguousarray(table).view(np.int32)
    insns = np.zeros(len(table) * INSN_FIELDS, dtype=np.int64)
    state = _state(rules, tokens)
    bursts = np.zeros(8 * _most_bursts(table, unit, rules) if record_bursts else 0, dtype=np.int64)

    run = compiled_run() if compiled is not False else None
    if run is None:
        arrays = [array.tolist() for array in (insns, state, bursts)]
        finished = uncompiled_run(
            words.tolist(), _WORDS, unit.tolist(), arrays[0], rules, arrays[1], arrays[2]
        )
        insns, state, bursts = (np.array(array, dtype=np.int64) for array in arrays)
    else:
        finished = run(words, _WORDS, unit, insns, rules, state, bursts)
    by_field = insns.reshape(len(table), INSN_FIELDS)
    if not finished:
        raise deadlock_error(table, by_field, rules, state)

    cycles = int(by_field[:, layout.END].max()) + 1
    timeline = Timeline(
        stage=by_field[:, layout.STAGE].astype(np.int8),
        dispatch=by_field[:, layout.DISPATCH].copy(),
        start=by_field[:, layout.START].copy(),
        end=by_field[:, layout.END].copy(),
        bursts=_bursts(bursts, state) if record_bursts else None,
        places=Places(_causes(by_field)) if record_places else None,
    )
    counters = {"cycles": cycles, **_attribution(state, cycles), **_events(len(table), state)}
    pushed, popped = (
        state[section : section + layout.QUEUES] for section in (layout.PUSHED, layout.POPPED)
    )
    a, b, c, d = (pushed - popped).tolist()
    return Timing(cycles, counters, timeline, (a, b, c, d))


@lru_cache(maxsize=64)
def _entry_bytes(machine: Machine) -> NDArray[np.int64]:
    """Of every buffer number; 0 for those that are undefined."""
    sizes = np.zeros(layout.BUFFERS, dtype=np.int64)
    for buffer in Buffer:
        sizes[buffer] = machine.entry_bytes(buffer)
    sizes.flags.writeable = False
    return sizes


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _rules(machine: Machine, insns: int, insn_address: int, record_bursts: bool) -> Rules:
    bus, burst = machine.bus_bytes, microarch.burst_bytes(machine)
    outstanding = machine.axi.outstanding_reads
    window = microarch.read_window(machine)
    seed = machine.memory.jitter
    buffer_insns = microarch.CHUNK_INSNS * microarch.BUFFER_CHUNKS
    token_ring = _power_of_two(machine.queues.token)
    beat_ring = _power_of_two(max(window, burst // bus)) if seed is not None else 0
    sizes = (
        buffer_insns,
        *(layout.QUEUES * token_ring, layout.QUEUES * token_ring),
        *(outstanding, outstanding, outstanding),
        beat_ring,
    )
    push_cycle, pop_cycle, burst_first, burst_last, burst_begin, beat_cycle, size = (
        layout.ARRIVAL + offset for offset in accumulate(sizes)
    )
    return Rules(
        insns=insns,
        insn_address=insn_address,
        insn_bytes=INSN_BYTES,
        chunk_insns=microarch.CHUNK_INSNS,
        buffer_insns=buffer_insns,
        fetch_request=microarch.FETCH_REQUEST,
        command_depth=machine.queues.command,
        token_depth=machine.queues.token,
        token_ring=token_ring,
        bus_bytes=bus,
        burst_bytes=burst,
        outstanding=outstanding,
        window=window,
        read_latency=machine.memory.read_latency,
        write_latency=machine.memory.write_latency,
        noop_cycles=microarch.NOOP_CYCLES,
        gemm_depth=microarch.gemm_depth(machine),
        alu_depth=microarch.alu_depth(),
        alu_interval=microarch.alu_interval(machine, AluOp.ADD, use_imm=False),
        mul_interval=microarch.mul_interval(machine),
        requantize_depth=microarch.requantize_depth(),
        jitter=int(seed is not None),
        read_key=microarch.jitter_key(seed or 0, microarch.READ_CHANNEL),
        write_key=microarch.jitter_key(seed or 0, microarch.WRITE_CHANNEL),
        beat_ring=beat_ring,
        record_bursts=int(record_bursts),
        push_cycle=push_cycle,
        pop_cycle=pop_cycle,
        burst_first=burst_first,
        burst_last=burst_last,
        burst_begin=burst_begin,
        beat_cycle=beat_cycle,
        size=size,
    )


def _state(rules: Rules, tokens: Sequence[int]) -> NDArray[np.int64]:
    """Everything that changes, as it is before cycle 0."""
    state = np.zeros(rules.size, dtype=np.int64)
    state[[layout.LAST_DISPATCH, layout.LAST_GRANT, layout.LAST_BEAT]] = -1
    state[layout.HEAD : layout.HEAD + layout.STAGES] = -1
    state[layout.PRESENT : layout.PRESENT + layout.CLIENTS] = layout.NEVER
    for queue, count in enumerate(tokens):
        if not 0 <= count <= rules.token_depth:
            raise StreamError(
                f"{count} tokens are left in queue {TokenQueue(queue).name.lower()}; it holds 0.."
                f"{rules.token_depth}; let every launch pop what it pushes"
            )
        state[layout.PUSHED + queue] = count
        begin = rules.push_cycle + queue * rules.token_ring
        state[begin : begin + count] = -1
    return state


def _most_bursts(table: NDArray[np.void], unit: NDArray[np.int64], rules: Rules) -> int:
    """No launch has more bursts than this: two more per row than whole ones fit it."""
    per_row = table["x_size"] * unit[table["buffer"] & 7] // rules.burst_bytes + 2
    chunk = rules.chunk_insns * rules.insn_bytes
    chunks = rules.insns // rules.chunk_insns + 2
    return int((per_row * table["y_size"]).sum()) + chunks * (chunk // rules.burst_bytes + 2)


def _bursts(bursts: NDArray[np.int64], state: NDArray[np.int64]) -> Bursts:
    """The burst log as arrays, reads before writes; each kind is in order already."""
    count = int(state[layout.READ_BURSTS] + state[layout.WRITE_BURSTS])
    rows = bursts[: 8 * count].reshape(count, 8)
    rows = rows[np.argsort(rows[:, 0] == Stage.STORE, kind="stable")]
    return Bursts(rows[:, 0].astype(np.int8), *(rows[:, i].copy() for i in range(1, 8)))


# Counter -> the engine's causes that make it up.
_CAUSES: dict[str, tuple[int, ...]] = {
    "fetch_busy": (),
    "fetch_wait_dram": (layout.WAIT_DRAM,),
    "fetch_wait_queue_full": (layout.WAIT_FULL,),
    "fetch_idle": (),
    "load_busy": (layout.BUSY_OTHER, layout.BUSY_LOAD),
    "load_wait_dram": (layout.WAIT_DRAM,),
    "load_wait_compute": (layout.WAIT_NEXT,),
    "load_wait_token_full": (layout.WAIT_FULL,),
    "load_idle": (layout.IDLE,),
    "compute_busy_gemm": (layout.BUSY_GEMM,),
    "compute_busy_alu": (layout.BUSY_ALU,),
    "compute_busy_load": (layout.BUSY_LOAD,),
    "compute_busy_other": (layout.BUSY_OTHER,),
    "compute_wait_dram": (layout.WAIT_DRAM,),
    "compute_wait_load": (layout.WAIT_PREV,),
    "compute_wait_store": (layout.WAIT_NEXT,),
    "compute_wait_token_full": (layout.WAIT_FULL,),
    "compute_idle": (layout.IDLE,),
    "store_busy": (layout.BUSY_OTHER, layout.BUSY_STORE),
    "store_wait_dram": (layout.WAIT_DRAM,),
    "store_wait_compute": (layout.WAIT_PREV,),
    "store_wait_token_full": (layout.WAIT_FULL,),
    "store_idle": (layout.IDLE,),
}
_STAGES = ("fetch", "load", "compute", "store")


def _attribution(state: NDArray[np.int64], cycles: int) -> dict[str, int]:
    """Cycles of every stage by cause; a stage is idle behind its last instruction."""
    spent = state[SPENT : SPENT + layout.STAGES * CAUSES].tolist()
    counters = {}
    for name, causes in _CAUSES.items():
        stage = _STAGES.index(name.split("_")[0])
        counters[name] = sum(spent[stage * CAUSES + cause] for cause in causes)
    counters["fetch_busy"] = int(state[layout.DISPATCHED])
    counters["fetch_idle"] = cycles - 1 - int(state[layout.LAST_DISPATCH])
    for stage, name in enumerate(_STAGES[1:], start=1):
        counters[f"{name}_idle"] += cycles - int(state[layout.FREE + stage])
    return counters


def _causes(insns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The causes of every instruction, as vta_isa.launch.Places has them."""
    work = insns[:, layout.END] - insns[:, layout.START] + 1
    work -= insns[:, layout.HELD] + insns[:, layout.STALLED]
    spent = {
        layout.WAIT_DRAM: insns[:, layout.STALLED],
        layout.WAIT_PREV: insns[:, layout.AFTER_PREV],
        layout.WAIT_NEXT: insns[:, layout.AFTER_NEXT],
        layout.WAIT_FULL: insns[:, layout.HELD],
        layout.IDLE: np.zeros_like(work),  # belongs to nobody
        # What an instruction keeps busy has the number of its kind.
        **{kind: np.where(insns[:, layout.KIND] == kind, work, 0) for kind in range(layout.KINDS)},
    }
    found = {
        name: np.where(
            insns[:, layout.STAGE] == _STAGES.index(name.split("_")[0]),
            sum(spent[cause] for cause in causes),
            0,
        )
        for name, causes in _CAUSES.items()
    }
    found["fetch_busy"] = np.ones_like(work)
    found["fetch_wait_dram"] = insns[:, layout.FETCH_DRAM]
    found["fetch_wait_queue_full"] = insns[:, layout.FETCH_FULL]
    return np.stack([found[name] for name in CAUSE_COUNTERS], axis=1)


def _events(insns: int, state: NDArray[np.int64]) -> dict[str, int]:
    """What does not depend on time: instructions, operations, bytes."""
    value = state[: layout.ARRIVAL].tolist()
    count, read = layout.COUNT, value[layout.BYTES : layout.BYTES + layout.BUFFERS]
    insn_bytes = insns * INSN_BYTES
    out_bytes = read[Buffer.OUT]
    return {
        "load_instructions": value[count + Stage.LOAD],
        "compute_instructions": value[count + Stage.COMPUTE],
        "store_instructions": value[count + Stage.STORE],
        "gemm_ops": value[layout.GEMM_OPS],
        "reset_ops": value[layout.RESET_OPS],
        "alu_ops": value[layout.ALU_OPS],
        "dram_read_beats": value[layout.READ_BEATS],
        "dram_read_bursts": value[layout.READ_BURSTS],
        "dram_read_bytes": sum(read) - out_bytes + insn_bytes,
        "dram_write_beats": value[layout.WRITE_BEATS],
        "dram_write_bursts": value[layout.WRITE_BURSTS],
        "dram_write_bytes": out_bytes,
        "insn_bytes": insn_bytes,
        "uop_bytes": read[Buffer.UOP],
        "inp_bytes": read[Buffer.INP],
        "wgt_bytes": read[Buffer.WGT],
        "acc_bytes": read[Buffer.ACC] + read[Buffer.ACC_8BIT],
        "out_bytes": out_bytes,
    }
