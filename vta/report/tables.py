"""Tables of a run for a terminal."""

from collections.abc import Iterable, Iterator, Mapping

from rich import box
from rich.table import Table

from vta_isa.counters import BY_NAME
from vta_isa.machine import Machine

from ..figures import Figures
from ..job import Comparison, RunReport
from ..run_diff import RunDiff
from ..workloads import Workload
from .causes import phrase

_CAUSES_SHOWN = 3  # of a layer's change; the rest is summed

Row = tuple[str, str, Figures]  # label, how often it counts, figures


def layer_table(report: RunReport) -> Table:
    """What each layer took, next to the bound below which no stream can go."""
    threads = "with" if report.vthreads else "without"
    table = _table(
        f"{report.workload.name} on {report.machine.name}, {threads} virtual threads "
        f"({report.device}; every output checked)"
    )
    headings = ("count", "MACs", "insns", "cycles", "GEMM use", "bound", "over bound")
    for heading in (*headings, "DRAM read", "written"):
        table.add_column(heading, justify="right")
    for label, count, figures in _rows(report, table):
        table.add_row(
            label,
            count,
            _quantity(figures.macs),
            f"{figures.instructions:,}",
            f"{figures.cycles:,}",
            f"{figures.utilization:.1%}",
            f"{figures.bound_cycles:,}",
            f"{figures.distance - 1:+.1%}" if figures.bound_cycles else "",
            _bytes(figures.dram_read_bytes),
            _bytes(figures.dram_write_bytes),
        )
    return table


def stall_table(report: RunReport) -> Table:
    """Cycles in which a stage was not busy, by cause; causes that never occurred are left out."""
    occurred = [
        (stage, cause)
        for stage, causes in report.total.stalls.items()
        for cause in causes
        if any(layer.figures.stalls[stage][cause] for layer in report.layers)
    ]
    table = _table("cycles in which a stage was not busy, by cause")
    for stage, cause in occurred:
        words = cause.removeprefix("wait_").replace("token_full", "tokens full")
        table.add_column(f"{stage}\n{words.replace('_', ' ')}", justify="right")
    for label, _, figures in _rows(report, table):
        table.add_row(label, *(f"{figures.stalls[stage][cause]:,}" for stage, cause in occurred))
    return table


def settings_table(diff: RunDiff) -> Table:
    """What the two runs were told differently."""
    table = _table("settings in which they differ", first="setting")
    for name in diff.names:
        table.add_column(name, justify="right")
    for key, pair in diff.settings.items():
        table.add_row(key, *map(str, pair))
    return table


def diff_table(diff: RunDiff) -> Table:
    """Cycles of each layer on both sides, and what compute spent the difference on."""
    first, second = diff.names
    table = _table(f"{first} and {second}: cycles, and what the compute stage spent the change on")
    table.add_column("count", justify="right")
    for name in diff.names:
        table.add_column(name, justify="right")
    for heading in ("change", "", *(f"use {name}" for name in diff.names)):
        table.add_column(heading, justify="right")
    table.add_column("of it in compute")
    for number, each in enumerate((*diff.layers, diff.total)):
        if number == len(diff.layers):
            if len(diff.layers) == 1 and each.cycles == diff.layers[0].cycles:
                break
            table.add_section()
        before, after = each.cycles
        moved = each.changes("compute")
        words = [f"{phrase(cause)} {change:+,}" for cause, change in moved[:_CAUSES_SHOWN]]
        if len(moved) > _CAUSES_SHOWN:
            words.append(f"others {sum(change for _, change in moved[_CAUSES_SHOWN:]):+,}")
        table.add_row(
            each.name,
            str(each.count) if number < len(diff.layers) else "",
            f"{before:,}",
            f"{after:,}",
            f"{each.change:+,}",
            f"{each.change / before:+.1%}" if before else "",
            *(f"{use:.1%}" for use in each.utilization),
            ", ".join(words),
        )
    return table


def cause_table(diff: RunDiff) -> Table:
    """Where the cycles of all common layers went, stage by stage; causes without any left out."""
    table = _table("cycles of each stage by cause", first="stage")
    table.add_column("cause")
    for heading in (*diff.names, "change"):
        table.add_column(heading, justify="right")
    for stage, causes in diff.total.causes.items():
        for cause, (before, after) in causes.items():
            if before or after:
                row = (f"{before:,}", f"{after:,}", f"{after - before:+,}")
                table.add_row(stage, phrase(cause), *row)
        table.add_section()
    return table


def gain_table(comparison: Comparison) -> Table:
    """What virtual threads are worth, layer by layer."""
    without, threaded = comparison.without, comparison.threaded
    table = _table("what virtual threads gain: cycles and GEMM use, without and with")
    for heading in ("count", "without", "with", "speed-up", "use without", "use with"):
        table.add_column(heading, justify="right")
    pairs = zip(_rows(without, table), _rows(threaded, None), strict=True)
    for (label, count, before), (_, _, after) in pairs:
        table.add_row(
            label,
            count,
            f"{before.cycles:,}",
            f"{after.cycles:,}",
            f"{before.cycles / after.cycles:.2f}x" if after.cycles else "",
            f"{before.utilization:.1%}",
            f"{after.utilization:.1%}",
        )
    return table


def counter_table(counters: Mapping[str, int], title: str) -> Table:
    """Every counter of a launch with its unit and meaning; those that are 0 are left out."""
    table = _table(title, first="counter")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("what it counts")
    for name, value in counters.items():
        if value:
            table.add_row(name, f"{value:,}", BY_NAME[name].unit, BY_NAME[name].sentence)
    return table


def machine_table(machines: Iterable[Machine]) -> Table:
    """One machine per line, with what decides how fast it is."""
    table = _table("machines", first="machine")
    for heading in ("shape", "uop", "inp", "wgt", "acc", "bus", "clock", "peak"):
        table.add_column(heading, justify="right")
    for machine in machines:
        sizes = (machine.sram.uop, machine.sram.inp, machine.sram.wgt, machine.sram.acc)
        peak = 2 * machine.macs_per_cycle * machine.clock
        table.add_row(
            machine.name,
            machine.shape,
            *(_bytes(size) for size in sizes),
            f"{machine.axi.data_bits} bit",
            f"{machine.clock / 1e6:g} MHz",
            f"{peak / 1e9:.4g} GOPS",
        )
    return table


def workload_table(workloads: Iterable[Workload]) -> Table:
    """One workload per line."""
    table = _table("workloads", first="workload")
    table.add_column("layers", justify="right")
    table.add_column("MACs", justify="right")
    table.add_column("what it is")
    for workload in workloads:
        macs = sum(layer.count * layer.macs for layer in workload.layers)
        table.add_row(workload.name, str(len(workload.layers)), _quantity(macs), workload.about)
    return table


def _table(title: str, first: str = "layer") -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column(first, no_wrap=True)
    return table


def _rows(report: RunReport, table: Table | None) -> Iterator[Row]:
    """Layers, then a line, then partial sums and the total (a layer counts as often as it runs)."""
    for layer in report.layers:
        yield layer.name, str(layer.count), layer.figures
    if len(report.layers) == 1 and report.layers[0].count == 1:
        return
    if table is not None:
        table.add_section()
    for label, figures in report.totals.items():
        yield label, "", figures
    yield "total", "", report.total


def _quantity(count: int) -> str:
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
