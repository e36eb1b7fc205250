"""Between the core and its memory: the core can be stopped at any time, and AXI goes on."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.machine import Machine
from vta_isa.microarch import WRITE_AHEAD

from .axi import OKAY, Axi4Read, Axi4Write

# Bursts without their response. The core may have as many writes unanswered as a STORE has.
READ_BITS, WRITE_BITS = 10, 24


class Gate(wiring.Component):
    """Passes AXI between ``core_*`` and ``read``, ``write`` without delay, until ``stop``.

    From then on ``stopped`` is high. Each channel is closed as soon as the core does not wait on it
    for READY: what was valid stays until it is taken. When all are closed, ``reset`` holds the core
    in reset, read data under way is thrown away, and bursts that were begun are ended with beats
    without strobes. When nothing is left unanswered the gate opens, and ``stopped`` falls.
    The core must send the first beat of a burst after its address was taken, and be ready for R and
    B always.
    ``read_failed`` and ``write_failed`` are high with an answer that is not OKAY.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        addr_bits, data_bits = machine.axi.addr_bits, machine.axi.data_bits
        super().__init__(
            {
                "stop": In(1),
                "stopped": Out(1),
                "reset": Out(1),
                "read_failed": Out(1),
                "write_failed": Out(1),
                "core_read": In(Axi4Read(addr_bits, data_bits)),
                "core_write": In(Axi4Write(addr_bits, data_bits)),
                "read": Out(Axi4Read(addr_bits, data_bits)),
                "write": Out(Axi4Write(addr_bits, data_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        read, write = self.read, self.write
        # Neither free nor ending: the core still runs and finishes what it waits for.
        free, ending = Signal(init=1), self.reset
        quiet = Signal()
        open_ar, open_aw, open_w = (self._channel(m, c, free) for c in ("ar", "aw", "w"))

        with m.If(self.stop):
            m.d.sync += free.eq(0)
        with m.If(~free & ~(open_ar | open_aw | open_w)):
            m.d.sync += ending.eq(1)
        with m.If(ending & quiet):
            m.d.sync += [ending.eq(0), free.eq(1)]
        m.d.comb += self.stopped.eq(~free)

        # ---- reads ------------------------------------------------------------------------------
        reads = Signal(READ_BITS)
        m.d.comb += [
            self.core_read.rvalid.eq(read.rvalid & ~ending),
            self.core_read.rdata.eq(read.rdata),
            self.core_read.rresp.eq(read.rresp),
            self.core_read.rlast.eq(read.rlast),
            read.rready.eq(1),
            self.read_failed.eq(read.rvalid & (read.rresp != OKAY)),
        ]
        m.d.sync += reads.eq(
            reads + (read.arvalid & read.arready) - (read.rvalid & read.rready & read.rlast)
        )

        # ---- writes -----------------------------------------------------------------------------
        aw_taken, w_taken = write.awvalid & write.awready, write.wvalid & write.wready
        unanswered = Signal(WRITE_BITS)
        # Beats to come of the bursts whose address was taken, oldest first.
        owed = [Signal(range(257), name=f"owed{i}") for i in range(WRITE_AHEAD)]
        less = [Signal(range(257), name=f"less{i}") for i in range(WRITE_AHEAD)]
        assert WRITE_AHEAD == 2, "two bursts are followed"
        m.d.comb += [
            less[0].eq(owed[0] - w_taken),
            less[1].eq(owed[1]),
        ]
        with m.If(w_taken & (owed[0] == 1)):
            m.d.comb += [less[0].eq(owed[1]), less[1].eq(0)]
        m.d.sync += [
            owed[0].eq(less[0]),
            owed[1].eq(less[1]),
            unanswered.eq(unanswered + aw_taken - (write.bvalid & write.bready)),
        ]
        with m.If(aw_taken):
            with m.If(less[0] == 0):
                m.d.sync += owed[0].eq(write.awlen + 1)
            with m.Else():
                m.d.sync += owed[1].eq(write.awlen + 1)
        m.d.comb += [
            write.wvalid.eq(Mux(ending, owed[0] != 0, open_w)),
            write.wlast.eq(Mux(ending, owed[0] == 1, self.core_write.wlast)),
            write.wdata.eq(Mux(ending, 0, self.core_write.wdata)),
            write.wstrb.eq(Mux(ending, 0, self.core_write.wstrb)),
            self.core_write.bvalid.eq(write.bvalid & ~ending),
            self.core_write.bresp.eq(write.bresp),
            write.bready.eq(1),
            self.write_failed.eq(write.bvalid & (write.bresp != OKAY)),
            quiet.eq((reads == 0) & (unanswered == 0) & (owed[0] == 0)),
        ]
        return m

    def _channel(self, m: Module, channel: str, free: Signal):
        """Connects a channel on which the core is the sender; returns its VALID.

        Once not ``free`` it is high only as long as the core waits for READY, so it is low in
        reset. Payload and VALID of W to the memory are left to the caller.
        """
        core, outer = (
            (self.core_read, self.read) if channel == "ar" else (self.core_write, self.write)
        )
        valid, waiting = Signal(name=f"{channel}_open"), Signal(name=f"{channel}_waiting")
        ready = getattr(outer, f"{channel}ready")
        m.d.comb += [
            valid.eq(getattr(core, f"{channel}valid") & (free | waiting)),
            getattr(core, f"{channel}ready").eq(ready & (free | waiting)),
        ]
        m.d.sync += waiting.eq(valid & ~ready)
        if channel == "w":
            return valid
        m.d.comb += getattr(outer, f"{channel}valid").eq(valid)
        for field in ("addr", "len", "size", "burst", "cache", "prot"):
            m.d.comb += getattr(outer, channel + field).eq(getattr(core, channel + field))
        return valid
