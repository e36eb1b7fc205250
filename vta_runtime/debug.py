"""Debug flags and the text that the dumping ones print."""

from collections.abc import Iterable
from enum import IntFlag

from .uops import Kernel, Placement


class DebugFlag(IntFlag):
    """What ``set_debug_mode`` takes, with the published values.

    The two barrier flags are accepted and change nothing: memory is coherent, so there is no cache
    maintenance to skip.
    """

    DUMP_INSN = 2
    DUMP_UOP = 4
    SKIP_READ_BARRIER = 8
    SKIP_WRITE_BARRIER = 16
    FORCE_SERIAL = 32


ALL_FLAGS = DebugFlag(sum(DebugFlag))


def format_kernels(loads: Iterable[tuple[Kernel, Placement]]) -> str:
    """The kernels a launch loads, in the order of the loads, one line per micro-op."""
    lines: list[str] = []
    for kernel, placement in loads:
        loops = " x ".join(str(level.extent) for level in kernel.loops) or "none"
        reset = f", {kernel.before.name.lower()}" if kernel.before else ""
        lines.append(
            f"kernel {kernel.number}: {kernel.mode.name}{reset}, loops {loops}, "
            f"uops {placement.begin}..{placement.end}"
        )
        lines += [
            f"  {placement.begin + row:5d}  dst {dst}  src {src}  wgt {wgt}"
            for row, (dst, src, wgt) in enumerate(kernel.uops.tolist())
        ]
    return "\n".join(lines) + "\n" if lines else ""
