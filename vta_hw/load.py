"""The load stage: fills INP and WGT memory from DRAM."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer
from vta_isa.insn import INSN_BITS
from vta_isa.machine import Machine

from .bursts import ROW_BYTES, base_bits, burst_layout
from .loader import Loader
from .scratchpad import Geometry
from .stage import Consumer, Producer, StageControl, StageState


class Load(wiring.Component):
    """Executes LOADs of INP and WGT; its neighbour is compute. Timing: StageControl and Loader."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.inp = Geometry.of(machine, Buffer.INP)
        self.wgt = Geometry.of(machine, Buffer.WGT)
        super().__init__(
            {
                "insns": In(stream.Signature(INSN_BITS)),
                "from_compute": Out(Consumer()),
                "to_compute": Out(Producer()),
                "request": Out(stream.Signature(burst_layout(machine))),
                "data": In(machine.axi.data_bits),
                "valid": In(1),
                "write_inp": Out(self.inp.write_layout),
                "write_wgt": Out(self.wgt.write_layout),
                "start": Out(1),
                "end": Out(1),
                "base_inp": In(base_bits(machine)),
                "base_wgt": In(base_bits(machine)),
                "state": Out(StageState()),
                "writing": Out(1),
                "read_bytes": Out(data.StructLayout({"inp": ROW_BYTES, "wgt": ROW_BYTES})),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.control = control = StageControl()
        m.submodules.loader = loader = Loader(self.machine, (self.inp, self.wgt))
        wiring.connect(m, wiring.flipped(self.insns), control.insns)
        wiring.connect(m, control.from_next, wiring.flipped(self.from_compute))
        wiring.connect(m, control.to_next, wiring.flipped(self.to_compute))
        wiring.connect(m, loader.request, wiring.flipped(self.request))
        wiring.connect(m, control.state, wiring.flipped(self.state))
        m.d.comb += [
            loader.start.eq(control.start),
            loader.insn.eq(self.insns.payload),
            loader.data.eq(self.data),
            loader.valid.eq(self.valid),
            control.running.eq(loader.running),
            self.write_inp.eq(loader.write_inp),
            self.write_wgt.eq(loader.write_wgt),
            self.start.eq(control.start),
            self.end.eq(control.end),
            loader.base_inp.eq(self.base_inp),
            loader.base_wgt.eq(self.base_wgt),
            self.writing.eq(loader.writing),
            self.read_bytes.eq(loader.read_bytes),
        ]
        return m
