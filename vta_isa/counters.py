"""Names and units of everything a machine counts during a launch.

The RTL, the simulator, the reports and the tuner share this spelling. Every counter is zero when a
launch starts. The causes of one stage never overlap and add up to ``cycles``
(docs/microarchitecture.md, "Where the cycles go").
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counter:
    """One number: its name in every table and file, its unit, and what it says."""

    name: str
    unit: str
    sentence: str


# Per stage, what each of its cycles is spent on: exactly one of these.
CAUSES: dict[str, dict[str, str]] = {
    "fetch": {
        "busy": "dispatches an instruction",
        "wait_dram": "instructions are left but the next one has not arrived",
        "wait_queue_full": "the next instruction is there but its command queue is full",
        "idle": "every instruction has been dispatched",
    },
    "load": {
        "busy": "decodes, or writes INP or WGT memory",
        "wait_dram": "a LOAD runs and no data or padding is written",
        "wait_compute": "the next instruction waits for a token from compute",
        "wait_token_full": "an instruction is done but the queue for its token is full",
        "idle": "no instruction in the command queue",
    },
    "compute": {
        "busy_gemm": "executes a GEMM",
        "busy_alu": "executes an ALU instruction",
        "busy_load": "a LOAD decodes, or writes UOP or ACC memory",
        "busy_other": "executes a no-op or FINISH",
        "wait_dram": "a LOAD runs and no data or padding is written",
        "wait_load": "the next instruction waits for a token from load",
        "wait_store": "the next instruction waits for a token from store, for none from load",
        "wait_token_full": "an instruction is done but a queue for its tokens is full",
        "idle": "no instruction in the command queue",
    },
    "store": {
        "busy": "decodes, fills its pipeline, or transfers a data beat",
        "wait_dram": "a STORE runs, no beat moves: memory is not ready or not done",
        "wait_compute": "the next instruction waits for a token from compute",
        "wait_token_full": "an instruction is done but the queue for its token is full",
        "idle": "no instruction in the command queue",
    },
}

_EVENTS = (
    Counter("load_instructions", "instruction", "executed by the load stage"),
    Counter("compute_instructions", "instruction", "executed by the compute stage"),
    Counter("store_instructions", "instruction", "executed by the store stage"),
    Counter("gemm_ops", "uop iteration", "matrix products, one per cycle; resets not counted"),
    Counter("reset_ops", "uop iteration", "accumulator entries cleared by GEMM with reset"),
    Counter("alu_ops", "uop iteration", "accumulator entries computed by the ALU"),
    Counter("dram_read_beats", "beat", "data beats on the read channel, every client"),
    Counter("dram_read_bursts", "burst", "bursts on the read channel, every client"),
    Counter("dram_read_bytes", "byte", "requested by instructions and fetch, alignment excluded"),
    Counter("dram_write_beats", "beat", "data beats on the write channel"),
    Counter("dram_write_bursts", "burst", "bursts on the write channel"),
    Counter("dram_write_bytes", "byte", "written by STOREs"),
    Counter("insn_bytes", "byte", "instructions fetched"),
    Counter("uop_bytes", "byte", "read by LOAD UOP"),
    Counter("inp_bytes", "byte", "read by LOAD INP, padding excluded"),
    Counter("wgt_bytes", "byte", "read by LOAD WGT, padding excluded"),
    Counter("acc_bytes", "byte", "read by LOAD ACC and ACC_8BIT as they lie in DRAM"),
    Counter("out_bytes", "byte", "written by STORE"),
)

COUNTERS: tuple[Counter, ...] = (
    Counter("cycles", "cycle", "from the one in which fetch sees the start to the last, included"),
    *(
        Counter(f"{stage}_{cause}", "cycle", f"{stage}: {sentence}")
        for stage, causes in CAUSES.items()
        for cause, sentence in causes.items()
    ),
    *_EVENTS,
)

# The counters that are causes, stage by stage; the columns of `vta_isa.launch.Places`.
CAUSE_COUNTERS: tuple[str, ...] = tuple(
    f"{stage}_{cause}" for stage, causes in CAUSES.items() for cause in causes
)

BY_NAME: dict[str, Counter] = {counter.name: counter for counter in COUNTERS}


def attribution(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counters as ``{stage: {cause: cycles}}``; each stage's causes add up to ``cycles``."""
    return {
        stage: {cause: counters[f"{stage}_{cause}"] for cause in causes}
        for stage, causes in CAUSES.items()
    }
