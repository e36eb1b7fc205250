"""Runs a program on the compiled RTL and compares everything with the simulator."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from functional_coverage import Coverage, wanted
from programs import Program

from simulator.reference import ReferenceState, run
from simulator.timing import simulate
from vta_hw.verilated import VerilatedCore
from vta_hw.verilated.build import missing_tools
from vta_isa.assembly import format_stream
from vta_isa.enums import Buffer
from vta_isa.launch import Launch

needs_compiler = pytest.mark.skipif(
    bool(missing_tools()), reason=f"the RTL cannot be compiled without {', '.join(missing_tools())}"
)


COVERAGE = Coverage()  # of this process
BUFFERS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


def check_results(
    core: VerilatedCore, program: Program, *, record_places: bool = False, **how: int
) -> Launch:
    """The whole DRAM image and every memory are as the reference computes them.

    ``core`` is fresh. A failing program is saved as assembly; the message says where.
    """
    want, dram, state = program.dram.copy(), program.dram.copy(), ReferenceState(program.machine)
    run(program.table, want, state)
    launch = core.launch(program.stream, dram, record_places=record_places or wanted(), **how)
    if wanted():
        COVERAGE.observe(program.table, launch.timeline.places)
        COVERAGE.save()
    wrong = [f"DRAM byte {i:#x}" for i in np.flatnonzero(dram != want)[:4]]
    for buffer in BUFFERS:
        differs = core.sram(buffer) != state.sram(buffer)
        wrong += [f"{buffer.name} {place.tolist()}" for place in np.argwhere(differs)[:1]]
    assert not wrong, f"{'; '.join(wrong)} differ; the program is {save(program)}"
    return launch


def check(
    core: VerilatedCore, program: Program, insn_address: int = 0, *, record_places: bool = False
) -> Launch:
    """``check_results``, and dispatch, start and end of every instruction are as simulated."""
    launch = check_results(core, program, record_places=record_places, insn_address=insn_address)
    timing = simulate(program.table, program.machine, insn_address=insn_address)
    wrong = []
    for what in ("stage", "dispatch", "start", "end"):
        mine, theirs = getattr(launch.timeline, what), getattr(timing.timeline, what)
        wrong += [
            f"{what} of insn {i}: RTL {mine[i]}, simulator {theirs[i]}"
            for i in np.flatnonzero(mine != theirs)[:1]
        ]
    for name, value in launch.counters.items():
        if value != timing.counters[name]:
            wrong.append(f"{name}: RTL {value}, simulator {timing.counters[name]}")
    assert not wrong, f"{'; '.join(wrong)}; the program is {save(program)}"
    return launch


def save(program: Program) -> Path:
    """The program as assembly in a file of its own."""
    text = format_stream(program.stream, program.machine)
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"vta-{program.machine.name}-{name}.s"
    path.write_text(text)
    return path
