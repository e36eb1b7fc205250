"""The numbers of docs/microarchitecture.md are those of the engine, the judge and the constants."""

import re
from pathlib import Path

import numpy as np
import pytest
from timing_judge import Judge

from simulator.timing import simulate
from vta_isa import counters, microarch
from vta_isa.enums import AluOp, Buffer, LowKind, Stage
from vta_isa.insn import alu, finish, gemm, load, noop, records, requantize, store
from vta_isa.machine import load_machine

PAGE = (Path(__file__).parents[2] / "docs" / "microarchitecture.md").read_text()
DEFAULT = load_machine("default")
ADDRESS = 0x1000

ONE_TILE = [
    load(Buffer.UOP, sram_base=0, dram_base=0x2000 // 4, x_size=1),
    load(Buffer.INP, sram_base=0, dram_base=0x3000 // 16, x_size=16, push_next=True),
    load(Buffer.WGT, sram_base=0, dram_base=0x4000 // 256, x_size=1, push_next=True),
    noop(Stage.COMPUTE, pop_prev=True),
    gemm(uops=(0, 1), iters=(1, 16), pop_prev=True, push_next=True),
    store(sram_base=0, dram_base=0x5000 // 16, x_size=16, pop_prev=True, push_prev=True),
    finish(pop_next=True),
]
TWO_LOADERS = [
    load(
        Buffer.INP, sram_base=0, dram_base=0x300, x_size=14, y_size=14, x_pad=(1, 1), y_pad=(1, 1)
    ),
    load(Buffer.ACC, sram_base=0, dram_base=0x8000 // 64, x_size=32),
    finish(),
]


def section(number: int) -> str:
    return PAGE.split(f"\n## {number}. ")[1].split("\n## ")[0]


def table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_finish_alone_takes_the_forty_cycles_of_the_page() -> None:
    timing = simulate(records([finish()]), DEFAULT, insn_address=ADDRESS, record_bursts=True)
    assert "**A FINISH alone takes 40 cycles.**" in section(12)
    assert timing.cycles == 40
    bursts, line = timing.timeline.bursts, timing.timeline
    assert bursts is not None
    assert (bursts.request[0], bursts.issue[0], bursts.first[0], bursts.last[0]) == (1, 2, 34, 35)
    assert (line.dispatch[0], line.start[0], line.end[0]) == (37, 38, 39)


def test_one_tile_takes_the_cycles_of_the_page() -> None:
    rows = [row for row in table_rows(section(12)) if row[0].isdigit()]
    timing = simulate(records(ONE_TILE), DEFAULT, insn_address=ADDRESS)
    line = timing.timeline
    for number, row in enumerate(rows):
        expected = [int(cell) for cell in row[3:6]]
        assert [line.dispatch[number], line.start[number], line.end[number]] == expected
    assert len(rows) == len(ONE_TILE)
    assert f"{timing.cycles} cycles in all" in rows[-1][-1]
    compute = section(12).split("Compute:")[1].split("together")
    causes = dict(re.findall(r"`(\w+)`\s(\d+)", compute[0]))
    spent = counters.attribution(timing.counters)["compute"]
    assert {cause: int(n) for cause, n in causes.items()} == {c: n for c, n in spent.items() if n}
    assert sum(spent.values()) == timing.cycles
    assert compute[1].startswith(f" {timing.cycles}")


def test_two_loaders_share_the_read_port_as_the_page_says() -> None:
    timing = simulate(records(TWO_LOADERS), DEFAULT, insn_address=ADDRESS, record_bursts=True)
    bursts = timing.timeline.bursts
    assert bursts is not None
    rows = [row for row in table_rows(section(12)) if row[0].split()[0] in ("fetch", "INP", "ACC")]
    assert len(rows) == 6
    for i, (_, beats, request, grant, issue, on_bus) in enumerate(rows):
        first, last = re.findall(r"\d+", on_bus)
        got = [bursts.beats[i], bursts.request[i], bursts.issue[i] - 1, bursts.issue[i]]
        assert got == [int(beats), int(request), int(grant), int(issue)]
        assert [bursts.first[i], bursts.last[i]] == [int(first), int(last)]
    assert bursts.last.max() == 719
    assert timing.cycles == 722
    # The bus carries data in every cycle from the first loaded beat to the last.
    assert bursts.beats[1:].sum() == 719 - 72 + 1


@pytest.mark.parametrize("stream", [ONE_TILE, TWO_LOADERS], ids=["one tile", "two loaders"])
def test_the_judge_agrees_on_the_examples(stream: list[dict[str, int]]) -> None:
    judge = Judge(records(stream), DEFAULT, insn_address=ADDRESS).run()
    timing = simulate(records(stream), DEFAULT, insn_address=ADDRESS)
    assert timing.cycles == judge.cycles
    np.testing.assert_array_equal(timing.timeline.end, [insn.end for insn in judge.insns])


def test_the_constants_of_the_page_are_those_of_the_module() -> None:
    listed = dict(re.findall(r"\| `(\w+)` \| (\d+) ", section(13)))
    for name, value in listed.items():
        constant = getattr(microarch, name)
        if callable(constant):
            fixed = name in ("alu_depth", "requantize_depth")
            constant = constant() if fixed else constant(DEFAULT)
        assert constant == int(value), name
    of_the_memory_model = {"READ_CHANNEL", "WRITE_CHANNEL"}
    in_section_6 = set(re.findall(r"\| `([A-Z_]+)`", section(6))) | {"DECODE"}
    constants = {name for name in vars(microarch) if name.isupper()}
    assert constants == {n for n in listed if n.isupper()} | in_section_6 | of_the_memory_model


@pytest.mark.parametrize(("block_in", "tree"), [(1, 0), (2, 1), (4, 1), (8, 2), (16, 2), (32, 3)])
def test_the_adder_tree_has_a_register_every_two_levels(block_in: int, tree: int) -> None:
    machine = load_machine({"gemm": {"block_in": block_in}, "types": {"inp": "int16"}, "sram": {
        "uop": "1 KiB", "inp": "1 KiB", "wgt": "4 KiB", "acc": "4 KiB"}})  # fmt: skip
    assert microarch.adder_tree(machine) == tree
    assert microarch.gemm_depth(machine) == 7 + tree


def duration(*insns: dict[str, int]) -> int:
    """Cycles of the first of a stream's instructions."""
    line = simulate(records([*insns, finish()]), DEFAULT).timeline
    return int(line.end[0] - line.start[0] + 1)


@pytest.mark.parametrize("repeats", [1, 2, 100, 16383])
def test_instructions_take_the_cycles_of_sections_4_to_9(repeats: int) -> None:
    iters = {"uops": (0, 1), "iters": (1, repeats)}
    assert duration(gemm(**iters)) == repeats + 9
    assert duration(gemm(**iters, reset=True)) == repeats + 9
    assert duration(alu(AluOp.SHR, **iters, imm=0)) == repeats + 6
    assert duration(alu(AluOp.SHR, **iters)) == 2 * repeats + 6
    assert duration(alu(AluOp.MUL, **iters, imm=0)) == 12 * repeats + 6
    assert duration(alu(AluOp.MUL, **iters)) == 12 * repeats + 6
    assert duration(gemm(**iters, overwrite=True)) == repeats + 9
    clip = {"low": LowKind.ZERO, "high": 1}
    assert duration(requantize(**iters, **clip)) == repeats + 8
    assert duration(requantize(**iters, **clip, bias=1)) == repeats + 1 + 8
    iters = {"uops": (0, 1), "iters": (repeats, 1)}
    assert duration(requantize(**iters, **clip)) == repeats + 8
    assert duration(requantize(**iters, **clip, bias=1)) == 2 * repeats + 8
    iters = {"uops": (0, 1), "iters": (1, repeats)}
    if 2 * repeats <= 256:
        where = {"sram_base": 0, "dram_base": 0}
        assert duration(load(Buffer.INP, **where, x_size=repeats)) == 2 * repeats + 36
        assert duration(store(**where, x_size=repeats)) == 2 * repeats + 13


@pytest.mark.parametrize(
    "nothing",
    [
        *(noop(stage) for stage in Stage),
        load(Buffer.INP, sram_base=0, dram_base=0, x_size=5, y_size=0, x_pad=(3, 3)),
        load(Buffer.ACC, sram_base=0, dram_base=0, x_size=0, y_size=9, y_pad=(3, 3)),
        store(sram_base=0, dram_base=0, x_size=5, y_size=0),
        gemm(uops=(3, 3), iters=(5, 5)),
        gemm(uops=(4, 3), iters=(5, 5)),
        gemm(uops=(0, 3), iters=(0, 5)),
        alu(AluOp.ADD, uops=(0, 3), iters=(5, 0)),
    ],
)
def test_nothing_to_do_takes_two_cycles(nothing: dict[str, int]) -> None:
    assert duration(nothing) == microarch.NOOP_CYCLES


def test_padding_alone_is_written_one_entry_per_cycle() -> None:
    pads = load(
        Buffer.INP, sram_base=0, dram_base=0, x_size=5, y_size=0, y_pad=(2, 1), x_pad=(1, 1)
    )
    assert duration(pads) == 3 * 7 + microarch.PAD_FIRST


def test_stalls_are_rare_short_and_differ_between_channels_and_seeds() -> None:
    for seed in (0, 1, 2**32 - 1):
        read, write = (microarch.jitter_key(seed, channel) for channel in (0, 1))
        stalls = np.array([microarch.jitter_stall(read, beat) for beat in range(8000)])
        assert set(stalls) == set(range(9))
        assert 0.11 < (stalls > 0).mean() < 0.14
        assert any(stalls[n] != microarch.jitter_stall(write, n) for n in range(50))
