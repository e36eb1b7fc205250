"""What happens in a cycle, counted: the signals behind every counter of vta_isa.counters."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.counters import COUNTERS
from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BYTES
from vta_isa.machine import Machine

from .bursts import ROW_BYTES
from .compute import Work
from .stage import StageState

_WIDE = {  # bits of what can be counted in one cycle; one where nothing is said
    **{f"{buffer.name.lower()}_bytes": ROW_BYTES for buffer in Buffer if buffer != Buffer.ACC_8BIT},
    "insn_bytes": INSN_BYTES.bit_length(),
    "dram_read_bytes": ROW_BYTES + 2,
    "dram_write_bytes": ROW_BYTES,
}


def count_widths() -> dict[str, int]:
    """Bits of the counts of one cycle, by counter, in the order of the registers."""
    return {counter.name: _WIDE.get(counter.name, 1) for counter in COUNTERS}


def counts_layout() -> data.StructLayout:
    return data.StructLayout(count_widths())


class Counts(wiring.Component):
    """Decides in every cycle of a launch to which cause it counts, stage by stage.

    The rules are section 11 of docs/microarchitecture.md. ``launch`` is high in the cycles of a
    launch, from its start on. ``counts`` is what is to be added, in the same cycle.
    """

    def __init__(self, machine: Machine):
        super().__init__(
            {
                "launch": In(1),
                # fetch
                "left": In(1),  # instructions are to be dispatched
                "ready": In(1),  # the next one could be
                "dispatch": In(1),
                # stages
                "load": In(StageState()),
                "compute": In(StageState()),
                "store": In(StageState()),
                "starts": In(data.StructLayout({"load": 1, "compute": 1, "store": 1})),
                "load_writes": In(1),
                "compute_writes": In(1),
                "work": In(Work()),
                "store_fills": In(1),
                # DRAM
                "read_burst": In(1),
                "read_beat": In(1),
                "write_burst": In(1),
                "write_beat": In(1),
                "read_bytes": In(
                    data.StructLayout(dict.fromkeys(("uop", "wgt", "inp", "acc"), ROW_BYTES))
                ),
                "written_bytes": In(ROW_BYTES),
                "counts": Out(counts_layout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        insn_bytes = Signal(INSN_BYTES.bit_length())
        m.d.comb += insn_bytes.eq(Mux(self.dispatch, INSN_BYTES, 0))
        read = self.read_bytes
        found = {
            "cycles": Const(1),
            **self._fetch(),
            **self._load(),
            **self._compute(),
            **self._store(),
            "load_instructions": self.starts.load,
            "compute_instructions": self.starts.compute,
            "store_instructions": self.starts.store,
            "gemm_ops": self.work.gemm_op,
            "reset_ops": self.work.reset_op,
            "alu_ops": self.work.alu_op,
            "dram_read_beats": self.read_beat,
            "dram_read_bursts": self.read_burst,
            # At most one client's beat is on the bus, but fetch counts when it dispatches.
            "dram_read_bytes": (read.uop | read.acc | read.inp | read.wgt) + insn_bytes,
            "dram_write_beats": self.write_beat,
            "dram_write_bursts": self.write_burst,
            "dram_write_bytes": self.written_bytes,
            "insn_bytes": insn_bytes,
            "uop_bytes": read.uop,
            "inp_bytes": read.inp,
            "wgt_bytes": read.wgt,
            "acc_bytes": read.acc,
            "out_bytes": self.written_bytes,
        }
        for name in count_widths():
            m.d.comb += self.counts[name].eq(Mux(self.launch, found.pop(name), 0))
        assert not found, f"no counters of these names: {', '.join(found)}"
        return m

    def _fetch(self):
        return {
            "fetch_busy": self.dispatch,
            "fetch_idle": ~self.left,
            "fetch_wait_queue_full": self.left & self.ready & ~self.dispatch,
            "fetch_wait_dram": self.left & ~self.ready,
        }

    def _load(self):
        stage = self.load
        works = stage.runs & ~stage.late
        moves = stage.setup | self.load_writes
        return {
            "load_busy": works & moves,
            "load_wait_dram": works & ~moves,
            "load_wait_compute": stage.waits_next,
            "load_wait_token_full": stage.late,
            "load_idle": _idle(stage),
        }

    def _compute(self):
        stage, work = self.compute, self.work
        works = stage.runs & ~stage.late
        moves = stage.setup | self.compute_writes
        return {
            "compute_busy_gemm": works & work.gemm,
            "compute_busy_alu": works & work.alu,
            "compute_busy_load": works & work.load & moves,
            "compute_busy_other": works & ~(work.gemm | work.alu | work.load),
            "compute_wait_dram": works & work.load & ~moves,
            "compute_wait_load": stage.waits_prev,
            "compute_wait_store": stage.waits_next,
            "compute_wait_token_full": stage.late,
            "compute_idle": _idle(stage),
        }

    def _store(self):
        stage = self.store
        works = stage.runs & ~stage.late
        moves = stage.setup | self.store_fills | self.write_beat
        return {
            "store_busy": works & moves,
            "store_wait_dram": works & ~moves,
            "store_wait_compute": stage.waits_prev,
            "store_wait_token_full": stage.late,
            "store_idle": _idle(stage),
        }


def _idle(stage):
    return ~Cat(stage.runs, stage.waits_prev, stage.waits_next).any()
