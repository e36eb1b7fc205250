"""Timelines as text: whole launches in files that `diff` compares, and excerpts of two of them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vta_isa.assembly import format_stream
from vta_isa.launch import Bursts, Launch
from vta_isa.machine import Machine

from .differences import BURST_FIELDS, INSN_EVENTS

AROUND = 3  # instructions shown before and after the one that differs


def trace_lines(words: NDArray[np.uint64], machine: Machine, launch: Launch) -> Iterator[str]:
    """Everything recorded of a launch, one instruction, burst or counter per line."""
    yield f"# {machine.name}: {launch.cycles} cycles\n"
    yield _columns("insn", *INSN_EVENTS) + "  assembly\n"
    times = [getattr(launch.timeline, event).tolist() for event in INSN_EVENTS]
    for number, text in enumerate(format_stream(words, machine, comments=False).splitlines()):
        yield _columns(number, *(cycles[number] for cycles in times)) + f"  {text}\n"
    if launch.timeline.bursts is not None:
        yield "\n"
        yield from _burst_lines(launch.timeline.bursts)
    yield "\n"
    for name, value in sorted(launch.counters.items()):
        yield f"{name} {value}\n"


def neighbours(
    words: NDArray[np.uint64],
    machine: Machine,
    simulated: Launch,
    measured: Launch,
    insn: int | None,
) -> str:
    """The cycles on both sides of ``insn`` and those around it, as a table; empty for None."""
    if insn is None or not 0 <= insn < len(words):
        return ""
    begin, end = max(insn - AROUND, 0), insn + AROUND + 1
    titles = ("simulator: dispatch", "start", "end", "RTL: dispatch", "start", "end")
    lines = ["  insn  " + "  ".join(titles) + "  assembly"]
    texts = format_stream(words[begin:end], machine, comments=False).splitlines()
    for number, text in enumerate(texts, start=begin):
        numbers = [
            f"{int(getattr(launch.timeline, event)[number]):>{len(title)}}"
            for (launch, event), title in zip(
                ((launch, event) for launch in (simulated, measured) for event in INSN_EVENTS),
                titles,
                strict=True,
            )
        ]
        mark = ">" if number == insn else " "
        lines.append(f"{mark}{number:>5}  " + "  ".join(numbers) + f"  {text}")
    return "\n".join(lines)


def _burst_lines(bursts: Bursts) -> Iterator[str]:
    yield _columns(*BURST_FIELDS) + "\n"
    for row in zip(*(getattr(bursts, name).tolist() for name in BURST_FIELDS), strict=True):
        yield _columns(*row) + "\n"


def _columns(*values: int | str) -> str:
    return " ".join(f"{value:>10}" for value in values)
