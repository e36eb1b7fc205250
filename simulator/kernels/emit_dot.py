"""The inner step of GEMM: one broadcast group of input columns times one vector of weights."""

from .emit_tiles import TILE_DECLARATIONS
from .ir import Function
from .layouts import Layout
from .tiers import Dot


def dot_intrinsic_type(layout: Layout) -> str:
    """Accumulators, and (but for WIDENING) weights and broadcast inputs."""
    return f"<{layout.lanes} x i32>"


def weight_type(layout: Layout) -> str:
    """A vector of weights as it lies in the image."""
    return f"<{layout.lanes} x i{layout.unit_bits}>"


def broadcast(fn: Function, layout: Layout, pointer: str) -> str:
    """One group of input columns in every lane, as 32-bit lanes."""
    word = fn.load(f"i{layout.unit_bits}", pointer)
    if layout.unit_bits < 32:
        word = fn.op(f"sext i{layout.unit_bits} {word} to i32")
    return fn.splat(layout.lanes, "i32", word)


def dot(fn: Function, layout: Layout, total: str, inputs: str, weights: str) -> str:
    """``total`` + ``inputs`` x ``weights`` modulo 2^32; all operands have 32-bit lanes.

    The products of a group are added without saturation. pmaddwd has one sum that does not fit
    32 bits, 2 * (-32768)^2 = 2^31; it wraps, which is what an accumulator would do.
    """
    lanes = layout.lanes
    vector = dot_intrinsic_type(layout)
    if layout.tier.dot is Dot.WIDENING:
        product = fn.op(f"mul {vector} {inputs}, {weights}")
        return fn.op(f"add {vector} {total}, {product}")
    name = layout.tier.intrinsics[lanes]
    if layout.tier.dot is Dot.UNSIGNED_SIGNED:
        return fn.op(
            f"call {vector} @{name}({vector} {total}, {vector} {inputs}, {vector} {weights})"
        )
    parts = f"<{lanes * layout.group} x i{layout.scalar_bits}>"
    a = fn.op(f"bitcast {vector} {inputs} to {parts}")
    b = fn.op(f"bitcast {vector} {weights} to {parts}")
    if layout.tier.dot is Dot.SIGNED_SIGNED:
        return fn.op(f"call {vector} @{name}({vector} {total}, {parts} {a}, {parts} {b})")
    pairs = fn.op(f"call {vector} @{name}({parts} {a}, {parts} {b})")
    return fn.op(f"add {vector} {total}, {pairs}")


def dot_declaration(layout: Layout) -> str:
    """``declare`` lines of the intrinsics GEMM calls; empty where it calls none."""
    if layout.tier.dot is Dot.WIDENING:
        return ""
    if layout.tier.dot is Dot.TILES:
        return TILE_DECLARATIONS
    vector = dot_intrinsic_type(layout)
    parts = f"<{layout.lanes * layout.group} x i{layout.scalar_bits}>"
    operands = {
        Dot.UNSIGNED_SIGNED: (vector, vector, vector),
        Dot.SIGNED_SIGNED: (vector, parts, parts),
        Dot.PAIRS: (parts, parts),
    }[layout.tier.dot]
    return f"declare {vector} @{layout.tier.intrinsics[layout.lanes]}({', '.join(operands)})\n"
