"""The settings of a REQUANTIZE, and how one number carries them through the published calls."""

from dataclasses import dataclass

from vta_isa.enums import LowKind
from vta_isa.errors import RuntimeCallError

SHIFT_AT, LOW_KIND_AT, PACKED_BITS = 16, 24, 26
HIGH_MAX, SHIFT_MAX = (1 << 15) - 1, 31


@dataclass(frozen=True)
class Requantize:
    """``min(max(x >> shift, low), high)``, where ``low`` says what the lower bound is."""

    shift: int
    low: LowKind
    high: int

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest result."""
        match self.low:
            case LowKind.ZERO:
                return 0, self.high
            case LowKind.NEGATIVE:
                return -self.high, self.high
            case LowKind.COMPLEMENT:
                return -self.high - 1, self.high

    @property
    def packed(self) -> int:
        """As the ``imm_val`` of a micro-op: high in bits 0 to 14, shift from 16, low from 24."""
        return self.high | self.shift << SHIFT_AT | self.low << LOW_KIND_AT

    @staticmethod
    def unpacked(number: int) -> "Requantize":
        """Raises ``RuntimeCallError`` for a number that `packed` never gives."""
        shift = number >> SHIFT_AT & SHIFT_MAX
        kind = number >> LOW_KIND_AT
        high = number & HIGH_MAX
        if kind in tuple(LowKind):
            found = Requantize(shift, LowKind(kind), high)
            if found.packed == number:
                return found
        raise RuntimeCallError(
            f"imm_val = {number} of a REQUANTIZE: it is high (0..{HIGH_MAX}) + (shift "
            f"(0..{SHIFT_MAX}) << {SHIFT_AT}) + (low kind (0..{int(max(LowKind))}) << "
            f"{LOW_KIND_AT}); see vta_runtime.requantize"
        )
