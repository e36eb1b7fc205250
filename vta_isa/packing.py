"""Two products in one multiplier: which machines can have them, and which products they are.

Two products fit where they share a factor and the multiplier is wide enough for the other two side
by side (``vta_hw.packed_multiply`` has the argument).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .enums import Buffer

if TYPE_CHECKING:
    from .machine import Machine

MULTIPLIER_BITS = (18, 25)  # of the factors of a DSP48E1, both signed


@dataclass(frozen=True)
class Pairing:
    """Products of an INP scalar with two WGT scalars (``shared`` is INP), or the reverse.

    ``along`` is the extent of ``gemm`` whose neighbours are paired.
    """

    shared: Buffer
    packed: Buffer
    along: str


PAIRINGS = (
    Pairing(Buffer.INP, Buffer.WGT, "block_out"),
    Pairing(Buffer.WGT, Buffer.INP, "batch"),
)


def packed_bits(x_bits: int, y_bits: int) -> int:
    """Bits of the factor that holds two of ``y_bits``, to be multiplied with one of ``x_bits``."""
    return x_bits + 2 * y_bits + 1


def pairing(machine: "Machine") -> Pairing | None:
    """Which products share a multiplier, whatever ``gemm.packing`` asks; None if none can."""
    for choice in PAIRINGS:
        x, y = machine.bits(choice.shared), machine.bits(choice.packed)
        fits = x <= MULTIPLIER_BITS[0] and packed_bits(x, y) <= MULTIPLIER_BITS[1]
        if fits and getattr(machine.gemm, choice.along) > 1:
            return choice
    return None


def problems(machine: "Machine") -> Iterator[str]:
    """Why ``machine`` cannot have the packing it asks for."""
    if machine.gemm.packing == 1 or pairing(machine):
        return
    low, high = MULTIPLIER_BITS
    gemm = machine.gemm
    reasons = []
    for choice in PAIRINGS:
        shared, twice = choice.shared.name.lower(), choice.packed.name.lower()
        x, y = machine.bits(choice.shared), machine.bits(choice.packed)
        if getattr(gemm, choice.along) == 1:
            reason = f"gemm.{choice.along} = 1 gives no two products"
        else:
            reason = f"they take a multiplier of {x} x {packed_bits(x, y)} bits"
        reasons.append(f"one {shared} scalar (int{x}) with two of {twice} (int{y}): {reason}")
    yield (
        f"gemm.packing = 2 wants two products that share a factor in one multiplier of {low} x "
        f"{high} bits, but {'; '.join(reasons)}; leave gemm.packing at 1, or take narrower types "
        "(int8 and int8 fit) and a block_out above 1"
    )
