"""The stages of lowering, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vta_isa import Machine

from .ir.nodes import Program, Stmt
from .ir.simplify import simplify_stmt
from .ir.visit import map_program
from .passes.allocate import allocate_scratchpads
from .passes.calls import emit_calls
from .passes.dma import inject_dma
from .passes.hoist import hoist_allocations
from .passes.inplace import unify_in_place
from .passes.overwrite import overwrite_first
from .passes.peel import peel_reductions
from .passes.stages import mark_stages
from .passes.synchronize import synchronize_dram
from .passes.tokens import insert_tokens
from .passes.uops import fold_uops
from .passes.virtual_threads import interleave_virtual_threads

Pass = Callable[[Program, Machine], Program]


def _simplified(body: Stmt) -> Stmt:
    """Names of loops no longer matter, so the ones of a single iteration can go."""
    return simplify_stmt(body, drop_unit_loops=True)


def _peeled(program: Program, machine: Machine) -> Program:
    """A product can only overwrite what a reset beside it would clear."""
    return peel_reductions(program, everywhere=machine.extensions.gemm_overwrite)


# fmt: off
PASSES: tuple[tuple[str, Pass], ...] = (
    ("simplify",    lambda p, m: map_program(p, _simplified)),
    ("dma",         inject_dma),                      # while loop nests are still as scheduled
    ("inplace",     lambda p, m: unify_in_place(p)),  # before tokens: unified buffers conflict
    ("hoist",       lambda p, m: hoist_allocations(p)),
    ("stages",      lambda p, m: mark_stages(p)),
    ("peel",        _peeled),                           # before tokens, which it would double
    ("overwrite",   overwrite_first),                   # before tokens: a reset may wait for one
    ("synchronize", lambda p, m: synchronize_dram(p)),  # before tokens: none is left across one
    ("tokens",      lambda p, m: insert_tokens(p)),
    ("vthreads",    lambda p, m: interleave_virtual_threads(p)),  # copies blocks, tokens and all
    ("allocate",    allocate_scratchpads),            # now that every thread has its buffers
    ("uops",        fold_uops),                       # needs absolute entries
    ("calls",       lambda p, m: emit_calls(p)),
)
# fmt: on


def lower(program: Program, machine: Machine) -> Iterator[tuple[str, Program]]:
    """The program after each pass, with the pass's name."""
    for name, run in PASSES:
        program = run(program, machine)
        yield name, program
