"""The matrix product of one cycle."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer
from vta_isa.machine import Machine
from vta_isa.microarch import MULTIPLY, adder_tree

LEVELS_PER_REGISTER = 2  # of the adder tree


class DotProduct(wiring.Component):
    """``sum`` of the products of two rows of signed scalars, in full precision.

    ``inp`` and ``wgt`` in cycle n; every product is registered, and so is every second level of the
    adder tree: ``sum`` in n + MULTIPLY + adder_tree.
    """

    def __init__(self, machine: Machine):
        self.count = machine.gemm.block_in
        self.inp_bits = machine.bits(Buffer.INP)
        self.wgt_bits = machine.bits(Buffer.WGT)
        self.sum_bits = self.inp_bits + self.wgt_bits + (self.count - 1).bit_length()
        super().__init__(
            {
                "inp": In(self.count * self.inp_bits),
                "wgt": In(self.count * self.wgt_bits),
                "sum": Out(signed(self.sum_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        terms = []
        for i in range(self.count):
            product = Signal(signed(self.inp_bits + self.wgt_bits), name=f"product{i}")
            inp = self.inp.word_select(i, self.inp_bits).as_signed()
            wgt = self.wgt.word_select(i, self.wgt_bits).as_signed()
            m.d.sync += product.eq(inp * wgt)
            terms.append(product)
        level = 0
        while len(terms) > 1:
            fan_in = 1 << LEVELS_PER_REGISTER
            bits = len(terms[0]) + (min(fan_in, len(terms)) - 1).bit_length()
            groups = [terms[i : i + fan_in] for i in range(0, len(terms), fan_in)]
            terms = []
            for i, group in enumerate(groups):
                partial = Signal(signed(bits), name=f"level{level}_sum{i}")
                m.d.sync += partial.eq(_tree(group))
                terms.append(partial)
            level += 1
        m.d.comb += self.sum.eq(terms[0])
        return m


def _tree(terms):
    """The sum as a balanced tree of adders."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


class GemmCore(wiring.Component):
    """Multiplies an INP entry by the transpose of a WGT entry, one pair per cycle.

    ``inp`` (batch x block_in) and ``wgt`` (block_out x block_in) in cycle n; ``sums`` in n +
    ``latency``: batch x block_out accumulator scalars, cut to their bits.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.latency = MULTIPLY + adder_tree(machine)
        super().__init__(
            {
                "inp": In(machine.entry_bits(Buffer.INP)),
                "wgt": In(machine.entry_bits(Buffer.WGT)),
                "sums": Out(machine.entry_bits(Buffer.ACC)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        machine = self.machine
        acc_bits = machine.bits(Buffer.ACC)
        for row in range(machine.gemm.batch):
            for column in range(machine.gemm.block_out):
                dot = DotProduct(machine)
                m.submodules[f"dot_{row}_{column}"] = dot
                place = row * machine.gemm.block_out + column
                m.d.comb += [
                    dot.inp.eq(self.inp.word_select(row, len(dot.inp))),
                    dot.wgt.eq(self.wgt.word_select(column, len(dot.wgt))),
                    self.sums.word_select(place, acc_bits).eq(dot.sum),
                ]
        return m
