"""The matrix product of one cycle."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.enums import Buffer
from vta_isa.machine import Machine
from vta_isa.microarch import MULTIPLY, adder_tree
from vta_isa.packing import pairing

from .packed_multiply import PackedMultiply
from .packed_pair import PackedPair

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
        m.d.comb += self.sum.eq(_registered_tree(m, terms, self.count, self.sum_bits))
        return m


class PackedDotProducts(wiring.Component):
    """Two dot products that share one row: two products in every multiplier.

    ``low`` and ``high`` are the sums of the products of ``x`` with ``y_low`` and ``y_high``. Ports
    and timing are those of ``DotProduct``, the row it calls ``inp`` or ``wgt`` being ``x``.
    """

    def __init__(self, count: int, x_bits: int, y_bits: int):
        self.count = count
        self.x_bits = x_bits
        self.y_bits = y_bits
        self.sum_bits = x_bits + y_bits + (count - 1).bit_length()
        super().__init__(
            {
                "x": In(count * x_bits),
                "y_low": In(count * y_bits),
                "y_high": In(count * y_bits),
                "low": Out(signed(self.sum_bits)),
                "high": Out(signed(self.sum_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.count == 1:
            m.submodules.products = products = PackedMultiply(self.x_bits, self.y_bits)
            m.d.comb += [
                products.x.eq(self.x),
                products.y_low.eq(self.y_low),
                products.y_high.eq(self.y_high),
                self.low.eq(products.low),
                self.high.eq(products.high),
            ]
            return m
        pairs = []
        for i in range(self.count // 2):
            m.submodules[f"pair{i}"] = pair = PackedPair(self.x_bits, self.y_bits)
            for j in range(2):
                place = 2 * i + j
                m.d.comb += [
                    pair.x[j].eq(self.x.word_select(place, self.x_bits)),
                    pair.y_low[j].eq(self.y_low.word_select(place, self.y_bits)),
                    pair.y_high[j].eq(self.y_high.word_select(place, self.y_bits)),
                ]
            pairs.append(pair)
        first, *others = (pair.low for pair in pairs)
        offset = len(pairs) * pairs[0].offset
        lows = [first + offset, *others]
        highs = [pair.high for pair in pairs]
        m.d.comb += [
            self.low.eq(_registered_tree(m, lows, self.count, self.sum_bits, "low_")),
            self.high.eq(_registered_tree(m, highs, self.count, self.sum_bits, "high_")),
        ]
        return m


def _registered_tree(m: Module, terms: list, products: int, bits: int, name: str = ""):
    """The sum of ``terms``, which has ``bits``; a register behind every second level of adders.

    Terms that already are sums of several of the ``products`` count as levels.
    """
    fan_in = (len(terms) << LEVELS_PER_REGISTER) // products
    level = 0
    while products > 1:
        groups = [terms[i : i + fan_in] for i in range(0, len(terms), fan_in)]
        terms = []
        for i, group in enumerate(groups):
            width = max(map(len, group)) + (len(group) - 1).bit_length()
            partial = Signal(signed(min(width, bits)), name=f"{name}level{level}_sum{i}")
            m.d.sync += partial.eq(_tree(group))
            terms.append(partial)
        products = len(terms)
        fan_in = 1 << LEVELS_PER_REGISTER
        level += 1
    return terms[0]


def _tree(terms):
    """The sum as a balanced tree of adders."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


class GemmCore(wiring.Component):
    """Multiplies an INP entry by the transpose of a WGT entry, one pair per cycle.

    ``inp`` (batch x block_in) and ``wgt`` (block_out x block_in) in cycle n; ``sums`` in n +
    ``latency``: batch x block_out accumulator scalars, cut to their bits. With ``gemm.packing`` 2,
    two products share a multiplier: other hardware, the same sums in the same cycles.
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
        if self.machine.gemm.packing == 1:
            self._single(m)
        else:
            self._paired(m)
        return m

    def _single(self, m: Module) -> None:
        machine = self.machine
        for row in range(machine.gemm.batch):
            for column in range(machine.gemm.block_out):
                dot = DotProduct(machine)
                m.submodules[f"dot_{row}_{column}"] = dot
                m.d.comb += [
                    dot.inp.eq(self.inp.word_select(row, len(dot.inp))),
                    dot.wgt.eq(self.wgt.word_select(column, len(dot.wgt))),
                    self._sum(row, column).eq(dot.sum),
                ]

    def _paired(self, m: Module) -> None:
        """Neighbours in a row of the result share its row of INP, those in a column their WGT."""
        machine = self.machine
        gemm, choice = machine.gemm, pairing(machine)
        in_a_row = choice.shared is Buffer.INP
        x, y = (self.inp, self.wgt) if in_a_row else (self.wgt, self.inp)
        shared, packed = (gemm.batch, gemm.block_out) if in_a_row else (gemm.block_out, gemm.batch)
        for i in range(shared):
            for j in range(0, packed, 2):
                dots = PackedDotProducts(
                    gemm.block_in, machine.bits(choice.shared), machine.bits(choice.packed)
                )
                place, above = ((i, j), (i, j + 1)) if in_a_row else ((j, i), (j + 1, i))
                m.submodules[f"dots_{place[0]}_{place[1]}"] = dots
                m.d.comb += [
                    dots.x.eq(x.word_select(i, len(dots.x))),
                    dots.y_low.eq(y.word_select(j, len(dots.y_low))),
                    dots.y_high.eq(y.word_select(j + 1, len(dots.y_high))),
                    self._sum(*place).eq(dots.low),
                    self._sum(*above).eq(dots.high),
                ]

    def _sum(self, row: int, column: int):
        place = row * self.machine.gemm.block_out + column
        return self.sums.word_select(place, self.machine.bits(Buffer.ACC))
