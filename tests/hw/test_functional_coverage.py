"""Bins of functional coverage: which ones a launch hits, what is missing, what the table says."""

import machines
import numpy as np
import pytest
from coverage_table import not_run, open_holes, table
from functional_coverage import EXTENDED, GROUPS, KINDS, Coverage, kind_of, wanted
from situations import kinds_of, situation_program

from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.enums import AluOp, Buffer
from vta_isa.insn import alu, finish, gemm, load, noop, records, store
from vta_isa.launch import Places

TOKEN_FULL = "instruction x token queue full"
CROSS = "instruction x tokens x padded x queue full x back-pressure"


def observed(insns, stalled=None, **causes) -> Coverage:
    """What a launch hits in which the cycles of the first instruction are ``causes``."""
    table = records(insns)
    counts = np.zeros((len(table), len(CAUSE_COUNTERS)), dtype=np.int64)
    for name, cycles in causes.items():
        counts[0, CAUSE_COUNTERS.index(name)] = cycles
    held = np.zeros((len(table), 3), dtype=np.int64)
    if stalled is not None:
        held[0] = stalled
    coverage = Coverage()
    coverage.observe(table, Places(counts, held))
    assert coverage.unknown() == []
    return coverage


def hits(coverage: Coverage, group: str) -> list[tuple[str, ...]]:
    return sorted(bin_ for name, bin_ in coverage.hits if name == group)


PADDED = load(
    Buffer.INP,
    sram_base=0,
    dram_base=0,
    x_size=3,
    y_size=2,
    x_stride=2,
    y_pad=(1, 0),
    x_pad=(0, 15),
)


def test_a_load_hits_its_shape_and_its_pads():
    coverage = observed([PADDED | {"pop_next": 1}, finish()])
    assert hits(coverage, "load x sides padded") == [("LOAD INP", "y_before x_after")]
    assert hits(coverage, "load x shape") == [("LOAD INP", "rows"), ("LOAD INP", "widest pad")]
    assert hits(coverage, "move x stride") == [("LOAD INP", "overlapping")]
    assert hits(coverage, "instruction x flags") == [("FINISH", "none"), ("LOAD INP", "pop_next")]
    cross = ("LOAD INP", "pops", "yes", "no", "no")
    assert cross in hits(coverage, CROSS)


@pytest.mark.parametrize(
    ("cause", "full"),
    [("load_wait_token_full", True), ("fetch_wait_queue_full", True), ("load_wait_dram", False)],
)
def test_queues_that_are_full(cause, full):
    coverage = observed([PADDED | {"push_next": 1}], **{cause: 2})
    assert hits(coverage, CROSS) == [("LOAD INP", "pushes", "yes", "yes" if full else "no", "no")]
    held = [("LOAD INP", "push_next held up")] if cause == "load_wait_token_full" else []
    assert hits(coverage, TOKEN_FULL) == held
    dispatch = [("LOAD INP", "full")] if cause == "fetch_wait_queue_full" else []
    assert hits(coverage, "instruction x command queue full") == dispatch
    late = [("LOAD INP", "late")] if cause == "load_wait_dram" else []
    assert hits(coverage, "move x data or answer late") == late


def test_of_two_pushes_nobody_knows_which_is_held_up():
    insn = noop(next(iter(KINDS.values())).COMPUTE, push_prev=True, push_next=True)
    assert hits(observed([insn], compute_wait_token_full=1), TOKEN_FULL) == []


def test_channels_and_tokens():
    insn = store(sram_base=0, dram_base=0, x_size=1, pop_prev=True, push_prev=True)
    coverage = observed([insn], stalled=(0, 3, 1), store_wait_compute=1)
    channels = [("STORE OUT", "AW"), ("STORE OUT", "W")]
    assert hits(coverage, "instruction x channel held up") == channels
    waits = "instruction x waits for a token of"
    assert hits(coverage, waits) == [("STORE OUT", "compute")]
    assert hits(coverage, CROSS) == [("STORE OUT", "pops and pushes", "no", "no", "yes")]


@pytest.mark.parametrize(
    ("uops", "iters", "extent"),
    [
        ((0, 1), (1, 1), "one"),
        ((2, 2), (5, 5), "none"),
        ((3, 2), (1, 1), "none"),
        ((0, 1), (0, 2), "none"),
        ((0, 2), (1, 1), "uops"),
        ((0, 1), (1, 2), "inner"),
        ((0, 1), (2, 1), "outer"),
        ((0, 2), (2, 1), "uops and outer"),
        ((0, 2), (2, 2), "all three"),
    ],
)
def test_extents_of_loops(uops, iters, extent):
    coverage = observed([gemm(uops=uops, iters=iters)])
    assert hits(coverage, "loop x iterations") == [("GEMM", extent)]


@pytest.mark.parametrize(
    ("imm", "name"),
    [
        (-(1 << 15), "lowest"),
        (-(1 << 15) + 1, "below -31"),
        (-32, "below -31"),
        (-31, "-31..-1"),
        (0, "0"),
        (31, "1..31"),
        (32, "above 31"),
        ((1 << 15) - 1, "highest"),
    ],
)
def test_immediates(imm, name):
    coverage = observed([alu(AluOp.SHR, uops=(0, 1), imm=imm)])
    assert hits(coverage, "ALU operation x immediate") == [("SHR", name)]
    tensor = observed([alu(AluOp.SHR, uops=(0, 1))])
    assert hits(tensor, "ALU operation x immediate") == []


def test_every_kind_is_told_from_the_others():
    machine = machines.machine("extended-tiny")
    seen = set()
    for number in range(40):
        rng = np.random.default_rng(number)
        seen |= {kind_of(row) for row in situation_program(rng, machine, number).table}
    assert seen == {*kinds_of(machine), "FINISH"} == set(KINDS)


def test_what_was_never_run_is_no_hole_and_is_said():
    coverage = observed([finish()])
    assert not_run(coverage) == set(EXTENDED)
    holes = open_holes(coverage)
    assert not any(bin_[0] in EXTENDED for bins in holes.values() for bin_ in bins)
    lines = list(table(coverage))
    assert f"no machine of the run has {', '.join(sorted(EXTENDED))}" in lines
    assert sum(line.startswith("hole: ") for line in lines) > 100
    assert "hole: instruction x command queue full: FINISH: full" in lines
    for group, bins in GROUPS.items():
        for bin_ in bins:
            coverage.hits[group, bin_] += 1
    lines = list(table(coverage))
    assert not any(line.startswith("hole: ") for line in lines)
    assert lines[-1].split()[-1] == "100.0%"


def test_runs_collect_into_files_that_are_added_up(tmp_path, monkeypatch):
    monkeypatch.delenv("VTA_COVERAGE_DIR", raising=False)
    assert not wanted()
    monkeypatch.setenv("VTA_COVERAGE_DIR", str(tmp_path / "new" / "folder"))
    assert wanted()
    runs = [observed([finish()]), observed([finish(), finish()]), observed([PADDED])]
    for run in (*runs, runs[0]):  # saved twice, it still counts once
        run.save()
    total = Coverage()
    total.add(tmp_path / "new" / "folder")
    assert total.hits["instruction x flags", ("FINISH", "none")] == 3
    assert total.hits["load x shape", ("LOAD INP", "rows")] == 1
    assert total.hits == sum((run.hits for run in runs), start=type(total.hits)())


def test_bins_are_listed_once():
    for group, bins in GROUPS.items():
        assert len(bins) == len(set(bins)), group
