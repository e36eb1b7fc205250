"""What a component takes: a 4 x 4 array on every family, with every cell in its module."""

import importlib
import importlib.metadata
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from vta_hw import synth
from vta_hw.gemm import GemmCore
from vta_hw.insn_check import InsnCheck
from vta_hw.load import Load
from vta_hw.synth import FAMILIES, Area, SynthesisError
from vta_hw.synth.families import XC7
from vta_hw.synth.tools import run_yosys
from vta_isa import load_machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))


class Counter(wiring.Component):
    """The smallest thing with a register and an adder."""

    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.count.eq(self.count + 1)
        return m


class Remember(wiring.Component):
    """A memory of 32-bit words, read in the next cycle or at once."""

    def __init__(self, depth: int, domain: str):
        self.depth = depth
        self.domain = domain
        super().__init__({"addr": In(range(depth)), "new": In(32), "en": In(1), "old": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=32, depth=self.depth, init=[])
        write, read = words.write_port(), words.read_port(domain=self.domain)
        m.d.comb += [
            *(port.addr.eq(self.addr) for port in (write, read)),
            write.data.eq(self.new),
            write.en.eq(self.en),
            self.old.eq(read.data),
        ]
        return m


class Nested(wiring.Component):
    """A 4-bit counter in a module in a module, and a register of 3 bits beside it."""

    count: Out(4)
    low: Out(3)

    def elaborate(self, platform):
        m, inner = Module(), Module()
        inner.submodules.counter = counter = Counter()
        m.submodules.inner = inner
        kept = Signal(3)
        m.d.sync += kept.eq(counter.count)
        m.d.comb += [self.count.eq(counter.count), self.low.eq(kept)]
        return m


@pytest.mark.parametrize("family", ["ecp5", "xc7", "ice40"])
def test_array_takes_one_dsp_per_product(family: str) -> None:
    array = GemmCore(load_machine("tiny"))
    figures = synth.synthesize(array, FAMILIES[family], top="gemm")
    assert figures.total.dsp == 16
    assert [product.dsp for product in figures.multiplications] == [1] * 16
    assert {product.bits for product in figures.multiplications} == {(8, 8, 16)}
    columns = [module for module in figures.modules if module.path]
    assert [module.path for module in columns] == [f"dot_0_{column}" for column in range(4)]
    assert all(module.all == columns[0].all for module in columns)  # four equal columns
    assert sum((module.own for module in figures.modules), Area()) == figures.total


def test_two_products_share_a_dsp48_and_cost_no_logic() -> None:
    tiny = load_machine("tiny").replace(gemm={"block_in": 16, "block_out": 2})
    machines = [tiny.replace(gemm={"packing": packing}) for packing in (1, 2)]
    single, packed = (synth.synthesize(GemmCore(m), XC7, top="gemm").total for m in machines)
    assert (single.dsp, packed.dsp) == (32, 16)
    assert packed.lut <= single.lut + 16


def test_modules_are_found_again_in_the_flat_netlist() -> None:
    figures = synth.synthesize(Nested(), FAMILIES["ecp5"], top="nested")
    areas = {module.path: module for module in figures.modules}
    assert list(areas) == ["", "inner", "inner.counter"]
    assert areas["inner.counter"].own.ff == areas["inner"].all.ff == 4
    assert areas["inner"].own == Area()
    assert areas["inner.counter"].own.lut >= 4
    assert areas[""].own.ff == 3
    assert figures.total.ff == 7
    assert [m.path for m in figures.to_depth(0)] == [""]
    assert [m.path for m in figures.to_depth(1)] == ["", "inner"]


class Twice(wiring.Component):
    """The same product in two places, and one with a constant."""

    a: In(6)
    b: In(6)
    p: Out(12)
    q: Out(12)
    r: Out(12)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [
            self.p.eq(self.a * self.b),
            self.q.eq(self.a * self.b + 1),
            self.r.eq(self.a * 4),
        ]
        return m


def test_products_that_are_merged_or_folded_are_not_reported() -> None:
    figures = synth.synthesize(Twice(), FAMILIES["ecp5"], top="twice")
    assert [product.bits for product in figures.multiplications] == [(6, 6, 12)]
    assert [product.dsp for product in figures.multiplications] == [figures.total.dsp] == [1]


@pytest.mark.parametrize(
    ("depth", "domain", "kind"),
    [(1024, "sync", "block RAM"), (16, "sync", "LUT RAM"), (64, "comb", "LUT RAM")],
)
def test_memories_are_reported_where_they_went(depth: int, domain: str, kind: str) -> None:
    figures = synth.synthesize(Remember(depth, domain), FAMILIES["ecp5"], top="remember")
    (memory,) = figures.memories
    assert (memory.path, memory.kind) == ("words", kind)
    assert (figures.total.block_ram > 0) == (kind == "block RAM")
    assert (figures.total.lut_ram > 0) == (kind == "LUT RAM")


def test_memory_without_fitting_ram_is_in_registers() -> None:
    figures = synth.synthesize(Remember(4, "comb"), FAMILIES["ice40"], top="remember")
    assert [memory.kind for memory in figures.memories] == ["registers"]
    assert figures.total.ff >= 4 * 32


def test_second_time_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = synth.synthesize(Counter(), FAMILIES["ecp5"], top="counter")

    def must_not_run(*arguments: object) -> str:
        raise AssertionError("Yosys ran")

    monkeypatch.setattr(
        importlib.import_module("vta_hw.synth.synthesize"), "run_yosys", must_not_run
    )
    said: list[str] = []
    again = synth.synthesize(Counter(), FAMILIES["ecp5"], top="other", progress=said.append)
    assert (again.top, again.modules) == ("other", first.modules)
    assert said == ["elaborating other"]
    with pytest.raises(AssertionError, match="ran"):  # another design, another key
        synth.synthesize(Nested(), FAMILIES["ecp5"], top="counter")


def test_a_damaged_cache_costs_time_only(tmp_path: Path) -> None:
    first = synth.synthesize(Counter(), FAMILIES["ecp5"], top="counter")
    (stored,) = (tmp_path / "cache" / "synth").iterdir()
    stored.write_text("{")
    assert synth.synthesize(Counter(), FAMILIES["ecp5"], top="counter") == first


def test_json_holds_everything() -> None:
    figures = synth.synthesize(Counter(), FAMILIES["gowin"], top="counter")
    assert synth.Synthesis.from_json(figures.as_json()) == figures


def test_missing_yosys_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_there(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_there)
    with pytest.raises(SynthesisError, match=r"pyosys is not installed.*vta-sdk\[synth\]"):
        synth.check_synthesis()


def test_an_error_of_yosys_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SynthesisError, match=r"Yosys stopped with status 1: ERROR: .*nothing\.il"):
        run_yosys("read_rtlil nothing.il\n", tmp_path)


def test_a_cell_without_a_price_is_an_error() -> None:
    with pytest.raises(SynthesisError, match="URAM288 whose cost is not known"):
        XC7.cost("URAM288")


def test_vivado_counts_lut_memory_as_lut() -> None:
    assert XC7.cost("RAM64M") == Area(lut=4, lut_ram=4)
    assert XC7.cost("RAMB18E1") + XC7.cost("RAMB36E1") == Area(block_ram=1.5)


@pytest.mark.parametrize("part", [InsnCheck, Load], ids=lambda part: part.__name__)
def test_multipliers_are_for_gemm_and_the_alu(part) -> None:
    figures = synth.synthesize(part(load_machine("tiny")), XC7, top="part")
    assert figures.total.lut > 100
    assert figures.total.dsp == 0
