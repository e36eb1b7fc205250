"""The LLVM module of one machine under one tier, as text."""

from vta_isa.machine import Machine

from .emit_alu import emit_alu
from .emit_dot import dot_declaration
from .emit_gemm import emit_gemm
from .emit_load import emit_loads
from .emit_requantize import emit_requantize
from .emit_run import emit_run
from .emit_store import emit_store
from .emit_uops import emit_uops_fit
from .layouts import Layout
from .tiers import Tier

DECLARATIONS = """\
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def emit_module(machine: Machine, tier: Tier) -> str:
    """IR text with the two entry points ``vta_run`` and ``vta_check``; no globals, so that any
    number of simulators may run it at once."""
    layout = Layout(machine, tier)
    functions = [
        *emit_loads(layout),
        *emit_gemm(layout),
        *emit_alu(layout),
        *emit_requantize(layout),
        emit_store(layout),
        *emit_uops_fit(layout),
        *emit_run(machine),
    ]
    # Not inlined: that would cost a third more compile time and gain nothing. The vector widths
    # keep LLVM from splitting 512-bit code on CPUs that are tuned for 256 bits.
    width = tier.vector_bits
    attributes = (
        f'attributes #0 = {{ noinline nounwind "min-legal-vector-width"="{width}" '
        f'"prefer-vector-width"="{width}" }}\n'
    )
    bodies = "\n".join(function.text() for function in functions)
    return DECLARATIONS + dot_declaration(layout) + "\n" + bodies + "\n" + attributes
