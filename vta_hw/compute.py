"""The compute stage: loads uops and accumulators, multiplies, and combines accumulators."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode
from vta_isa.insn import IMMEDIATE_BITS, INSN_BITS, layouts
from vta_isa.machine import Machine
from vta_isa.microarch import REQUANTIZE_APART

from .alu import AMOUNT_BITS, FORWARDED, Function, Source, TensorAlu, step_layout
from .bursts import ROW_BYTES, base_bits, burst_layout
from .clip import HIGH_BITS
from .gemm import GemmCore
from .iterations import Iterations
from .layouts import Views
from .loader import Loader
from .scratchpad import EntryRead, Geometry, Scratchpad, write_entry
from .stage import Consumer, Producer, StageControl, StageState


class Work(wiring.Signature):
    """What compute executes: the kind of the instruction that runs, none if it does nothing.

    The last three are high for each uop iteration of that kind.
    """

    def __init__(self):
        kinds = ("gemm", "alu", "load", "gemm_op", "reset_op", "alu_op")
        super().__init__({kind: Out(1) for kind in kinds})


class Running:
    """The GEMM or ALU instruction that is executed: what is kept of it. Extensions have their own.

    ``two_tensors``: the second operand is an entry of every iteration, and not a constant.
    ``spaced``: iterations take several cycles each. ``biased``: REQUANTIZE reads a bias.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.executing = Signal()
        self.is_alu = Signal()
        self.two_tensors = Signal()
        self.spaced = Signal()
        self.function = Signal(Function)
        self.imm = Signal(signed(IMMEDIATE_BITS))
        if machine.extensions.gemm_overwrite:
            self.overwrites = Signal()
        if machine.extensions.alu_requantize:
            self.biased = Signal()
            self.shift = Signal(AMOUNT_BITS)
            self.high = Signal(HIGH_BITS)
            self.low_kind = Signal(2)

    def take(self, m: Module, insn: Views, start: Value) -> None:
        """Keep ``insn`` in a cycle with ``start``."""
        is_alu = insn.is_(Opcode.ALU)
        gemm_function = Mux(insn.gemm.reset, Function.ZERO, Function.GEMM)
        tensors = is_alu & ~insn.alu.use_imm
        imm = insn.alu.imm
        kept = []
        if insn.requantize is not None:
            fused = is_alu & (insn.alu.alu_op == FusedOp.REQUANTIZE)
            kept += [
                self.biased.eq(fused & tensors),
                self.shift.eq(insn.requantize.shift),
                self.high.eq(insn.requantize.high),
                self.low_kind.eq(insn.requantize.low_kind),
            ]
            tensors &= ~fused
            imm = Mux(fused, 0, imm)  # without a bias
        if self.machine.extensions.gemm_overwrite:
            kept.append(self.overwrites.eq(~is_alu & insn.gemm.overwrite))
        spaced = is_alu & (insn.alu.alu_op == AluOp.MUL)
        if self.machine.alu.tensor_interval > 1:
            spaced |= tensors
        with m.If(start):
            m.d.sync += [
                *kept,
                self.executing.eq(1),
                self.is_alu.eq(is_alu),
                self.two_tensors.eq(tensors),
                self.spaced.eq(spaced),
                self.function.eq(Mux(is_alu, insn.alu.alu_op, gemm_function)),
                self.imm.eq(imm),
            ]


class Compute(wiring.Component):
    """Executes GEMM, ALU, FINISH and LOADs of UOP and ACC between load and store.

    Timing of a LOAD: Loader. Iteration i of a GEMM or ALU instruction reads its uop in cycle i:

        GEMM   i uop | i+1 indices | i+2 INP, WGT | i+4 multiply, tree | t accumulate | t+1 write
        ALU    i uop | i+1 indices | i+2 ACC      |                    | t execute    | t+1 write

    where t is i + 5 + adder_tree for GEMM, i + 4 for ALU, and ACC is addressed in t - 2 (for the
    second tensor in t - 3, where it has one read port). MUL has its operands in t, too, and takes
    longer from there. The ALU proper accumulates for GEMM: sums are its second operand. Operands
    that one of the last three iterations computes are forwarded, so data never stalls anything.
    ``write_acc`` is what is written to ACC and, cut to its bits, to OUT by that memory's owner.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.inp_memory = Geometry.of(machine, Buffer.INP)
        self.wgt_memory = Geometry.of(machine, Buffer.WGT)
        self.uop_memory = Geometry.of(machine, Buffer.UOP)
        self.acc_memory = Geometry.of(machine, Buffer.ACC)
        super().__init__(
            {
                "insns": In(stream.Signature(INSN_BITS)),
                "from_load": Out(Consumer()),
                "to_load": Out(Producer()),
                "from_store": Out(Consumer()),
                "to_store": Out(Producer()),
                "request": Out(stream.Signature(burst_layout(machine))),
                "data": In(machine.axi.data_bits),
                "valid": In(1),
                "inp_index": Out(self.inp_memory.index_bits),  # entries are there two cycles later
                "inp": In(self.inp_memory.entry_bits),
                "wgt_index": Out(self.wgt_memory.index_bits),
                "wgt": In(self.wgt_memory.entry_bits),
                "write_acc": Out(self.acc_memory.write_layout),
                "start": Out(1),
                "end": Out(1),
                "base_uop": In(base_bits(machine)),
                "base_acc": In(base_bits(machine)),
                "state": Out(StageState()),
                "work": Out(Work()),
                "writing": Out(1),  # a LOAD writes
                "read_bytes": Out(data.StructLayout({"uop": ROW_BYTES, "acc": ROW_BYTES})),
                "past_end": Out(1),  # an iteration has an index past the end of its memory
                # A REQUANTIZE reads what is not written yet; only with that extension.
                **({"too_close": Out(1)} if machine.extensions.alu_requantize else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        m.submodules.control = control = StageControl()
        m.submodules.loader = loader = Loader(machine, (self.uop_memory, self.acc_memory))
        m.submodules.iterations = iterations = Iterations(machine)
        wiring.connect(m, wiring.flipped(self.insns), control.insns)
        wiring.connect(m, control.from_prev, wiring.flipped(self.from_load))
        wiring.connect(m, control.to_prev, wiring.flipped(self.to_load))
        wiring.connect(m, control.from_next, wiring.flipped(self.from_store))
        wiring.connect(m, control.to_next, wiring.flipped(self.to_store))
        wiring.connect(m, loader.request, wiring.flipped(self.request))
        wiring.connect(m, control.state, wiring.flipped(self.state))

        # ---- cycle s ----------------------------------------------------------------------------
        insn = Views(layouts(machine), self.insns.payload)
        running = Running(machine)
        is_alu, function = running.is_alu, running.function
        m.d.comb += [
            self.start.eq(control.start),
            self.end.eq(control.end),
            loader.start.eq(control.start & insn.is_(Opcode.LOAD)),
            loader.insn.eq(self.insns.payload),
            loader.data.eq(self.data),
            loader.valid.eq(self.valid),
            loader.base_uop.eq(self.base_uop),
            loader.base_acc.eq(self.base_acc),
            self.writing.eq(loader.writing),
            self.read_bytes.eq(loader.read_bytes),
            iterations.start.eq(control.start & iterations.any),
            iterations.insn.eq(self.insns.payload),
            control.running.eq(loader.running | running.executing),
        ]
        running.take(m, insn, iterations.start)

        mem = insn.mem
        any_rows = (mem.y_size != 0) | (mem.y_pad_before != 0) | (mem.y_pad_after != 0)
        kinds = {
            "gemm": iterations.start & insn.is_(Opcode.GEMM),
            "alu": iterations.start & insn.is_(Opcode.ALU),
            "load": loader.start & (mem.x_size != 0) & any_rows,
        }
        for name, is_kind in kinds.items():
            kept = Signal(name=f"was_{name}")
            with m.If(control.start):
                m.d.sync += kept.eq(is_kind)
            m.d.comb += getattr(self.work, name).eq(Mux(control.start, is_kind, kept))
        issued = iterations.item.valid
        is_bias = iterations.item.bias if insn.requantize is not None else Const(0)
        m.d.comb += [
            self.work.gemm_op.eq(issued & ~is_alu & (function != Function.ZERO)),
            self.work.reset_op.eq(issued & ~is_alu & (function == Function.ZERO)),
            self.work.alu_op.eq(issued & is_alu & ~is_bias),
            self.past_end.eq(
                issued
                & (
                    iterations.past.dst
                    | (
                        Mux(is_alu, running.two_tensors | is_bias, function != Function.ZERO)
                        & Mux(is_alu, iterations.past.src_acc, iterations.past.src_inp)
                    )
                    | (iterations.past.wgt & ~is_alu & (function != Function.ZERO))
                )
            ),
        ]

        self._uop_memory(m, loader, iterations)
        self._pipeline(m, loader, iterations, running)
        return m

    def _uop_memory(self, m: Module, loader: Loader, iterations: Iterations) -> None:
        geometry = self.uop_memory
        m.submodules.uop_memory = uops = Scratchpad(geometry)
        read = uops.reads[0]
        m.d.comb += [
            uops.write.eq(loader.write_uop),
            *(row.eq(iterations.uop_index >> geometry.bank_bits) for row in read.rows),
        ]
        if geometry.banks == 1:
            m.d.comb += iterations.uop.eq(read.data[0])
        else:
            bank = Signal(geometry.bank_bits)
            m.d.sync += bank.eq(iterations.uop_index)
            m.d.comb += iterations.uop.eq(read.data[bank])

    def _pipeline(self, m: Module, loader, iterations, running) -> None:
        machine, geometry = self.machine, self.acc_memory
        requantizes = machine.extensions.alu_requantize
        is_alu, two_tensors, spaced = running.is_alu, running.two_tensors, running.spaced
        readers = 2 if machine.alu.tensor_interval == 1 else 1
        m.submodules.acc_memory = memory = Scratchpad(geometry, readers)
        m.submodules.gemm = gemm = GemmCore(machine)
        m.submodules.alu = alu = TensorAlu(machine)
        reads = []
        for i in range(readers):
            reads.append(EntryRead(geometry))
            m.submodules[f"read{i}"] = reads[i]
            m.d.comb += [
                memory.reads[i].rows.eq(reads[i].rows),
                reads[i].data.eq(memory.reads[i].data),
            ]

        item = iterations.item
        m.d.comb += [
            self.inp_index.eq(item.src),
            self.wgt_index.eq(item.wgt),
            gemm.inp.eq(self.inp),
            gemm.wgt.eq(self.wgt),
        ]

        # ---- t - 2: ACC is addressed; GEMM's sums are `latency` cycles behind its operands ------
        front = Signal.like(item)
        delayed = item
        for i in range(gemm.latency):
            later = Signal.like(item, name=f"delayed{i}")
            m.d.sync += later.eq(delayed)
            m.d.sync += later.valid.eq(delayed.valid & ~is_alu)
            delayed = later
        m.d.comb += front.eq(Mux(is_alu, item, delayed))
        if readers == 2:
            read_src = Const(0)
            m.d.comb += reads[1].index.eq(front.src)
        else:
            read_src = two_tensors & front.early  # the first of two reads
            if requantizes:
                read_src |= front.bias
        m.d.comb += reads[0].index.eq(Mux(read_src, front.src, front.dst))

        # Which of the last iterations writes what this one reads.
        step = Signal(step_layout(machine))
        tracked = REQUANTIZE_APART - 1 if requantizes else FORWARDED
        before = [Signal(len(item.dst), name=f"dst_before{i + 1}") for i in range(tracked)]
        known = Signal(tracked)  # which of them there were, in this instruction

        def written_by(i, index):
            return known[i] & (before[i] == index[: len(item.dst)])

        def source(index):
            """Whether the last iteration writes it, the one before, and the one before that."""
            found = [written_by(i, index) for i in range(FORWARDED)]
            return [found[i] & ~Cat(found[:i]).any() for i in range(FORWARDED)]

        def forward(operand, index, otherwise):
            last, second, third = source(index)
            # In t - 1 the last iteration is executed, unless iterations are spaced.
            result, older = Mux(spaced, last, second), Mux(spaced, second, third)
            memory = Mux(older, Source.OLDER, otherwise)
            m.d.sync += [
                step[f"{operand}_from"].eq(Mux(result, Source.RESULT, memory)),
                step[f"{operand}_bypassed"].eq(last & ~spaced),
            ]

        m.d.sync += [
            step.valid.eq(front.valid),
            step.last.eq(front.last),
            step.dst.eq(front.dst),
        ]
        forward("x", front.dst, Source.MEMORY)
        forward("y", front.src, Source.MEMORY)
        with m.If(~two_tensors):
            constant = Source.IMMEDIATE
            if requantizes:
                constant = Mux(running.biased, Source.MEMORY, Source.IMMEDIATE)
            m.d.sync += [step.y_from.eq(constant), step.y_bypassed.eq(0)]
        with m.If(front.valid):
            m.d.sync += Cat(before).eq(Cat(front.dst, *before[:-1]))
            m.d.sync += known.eq(Cat(~front.bias if requantizes else 1, known[:-1]))
        with m.If(iterations.start):
            m.d.sync += known.eq(0)
        x = reads[0].early
        if machine.extensions.gemm_overwrite:
            # Sums are added to 0, whatever there was.
            x = Mux(running.overwrites, 0, x)
            with m.If(running.overwrites):
                m.d.sync += known.eq(0)

        if requantizes:
            # None of them is forwarded to a REQUANTIZE.
            read = Mux(front.bias, front.src, front.dst)
            missed = Cat(written_by(i, read) for i in range(tracked)).any()
            fused = running.function == Function.REQUANTIZE
            m.d.sync += [self.too_close.eq(front.valid & fused & missed), step.bias.eq(front.bias)]

        # ---- t - 1: operands are there; t: execute ----------------------------------------------
        m.d.comb += [
            alu.step.eq(step),
            alu.function.eq(running.function),
            alu.imm.eq(running.imm),
            alu.x.eq(x),
            alu.y.eq(reads[1].early if readers == 2 else reads[0].entry),
            alu.sums.eq(gemm.sums),
        ]
        if requantizes:
            m.d.comb += [
                alu.biased.eq(running.biased),
                alu.shift.eq(running.shift),
                alu.high.eq(running.high),
                alu.low_kind.eq(running.low_kind),
            ]
        with m.If(alu.executed & alu.last):
            m.d.sync += running.executing.eq(0)

        # ---- t + 1: write; a LOAD never runs at the same time ----------------------------------
        result = Signal(geometry.write_layout)
        index = Signal(geometry.index_bits)
        m.d.comb += [
            index.eq(alu.index),
            *write_entry(geometry, result, index, alu.result, alu.written),
            self.write_acc.eq(Mux(alu.written, result, loader.write_acc)),
            memory.write.eq(self.write_acc),
        ]


assert set(AluOp) <= {int(op) for op in Function}, "the ALU lacks an operation"
