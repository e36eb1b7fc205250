"""Tiers: the vector instructions kernels are built on, and which a host and a machine allow.

The CPU's *name* is never asked: under a hypervisor it lies. A tier is chosen by the features it
needs, and the code is generated with exactly the features that were found, because LLVM aborts the
process when it meets an intrinsic its target does not have.
"""

import ctypes
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from llvmlite import binding as llvm

from vta_isa.enums import Buffer
from vta_isa.errors import VtaError
from vta_isa.machine import Machine


class Dot(Enum):
    """How the inner step multiplies and adds: what one 32-bit lane of a weight vector holds."""

    UNSIGNED_SIGNED = "four int8, with inputs as uint8 offset by 128"  # x86 VNNI
    SIGNED_SIGNED = "four int8, with signed inputs"  # AArch64 sdot
    TILES = "four int8, with signed inputs, many lanes and groups at a time"  # x86 AMX
    PAIRS = "two int16"  # x86 pmaddwd
    WIDENING = "one int16, widened before multiplying"  # any vector unit

    @property
    def group(self) -> int:
        """Consecutive input columns one lane covers."""
        return {Dot.PAIRS: 2, Dot.WIDENING: 1}.get(self, 4)


@dataclass(frozen=True)
class Tier:
    """One way of generating the kernels.

    ``needs`` lists alternatives: any one set of CPU features will do. ``optional`` features are
    used where present; ``tuning`` ones do not change the instruction set. ``intrinsics`` gives the
    LLVM intrinsic for a number of 32-bit lanes; empty means plain vector IR. ``registers`` vector
    registers may hold weights.
    """

    name: str
    arch: str | None  # None: every architecture
    needs: tuple[frozenset[str], ...]
    dot: Dot
    intrinsics: Mapping[int, str]
    registers: int
    optional: frozenset[str] = frozenset()
    tuning: frozenset[str] = frozenset()

    @property
    def vector_bits(self) -> int:
        return 32 * max(self.intrinsics, default=8)

    def features(self, host: frozenset[str]) -> frozenset[str] | None:
        """The features to generate code with on ``host``, or None where the tier cannot run."""
        for needed in self.needs:
            if needed <= host:
                return needed | (self.optional & host) | self.tuning
        return None

    def lanes(self, machine: Machine) -> int:
        """32-bit lanes of the vectors used for this machine; 0 where no vector fits its blocks."""
        wide = machine.gemm.block_out
        if self.dot is Dot.WIDENING:
            return min(wide, 8)
        return max((lanes for lanes in self.intrinsics if lanes <= wide), default=0)

    def supports(self, machine: Machine) -> bool:
        """Whether the machine's scalars and blocks fit the tier's inner step."""
        bits = max(machine.bits(Buffer.INP), machine.bits(Buffer.WGT))
        most = 8 if self.dot.group == 4 else 16
        fits = bits <= most and machine.gemm.block_in % self.dot.group == 0
        if self.dot is Dot.TILES:  # whose sums go to memory as they are
            fits &= machine.bits(Buffer.ACC) == 32
        return fits and self.lanes(machine) > 0


def _features(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(alternative.split()) for alternative in alternatives)


# LLVM 15 and 22 both accept these names with operands of 32-bit lanes (auto-upgraded).
_VPDPBUSD = {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)}
_PMADDWD = {
    4: "llvm.x86.sse2.pmadd.wd",
    8: "llvm.x86.avx2.pmadd.wd",
    16: "llvm.x86.avx512.pmaddw.d.512",
}
_SDOT = {4: "llvm.aarch64.neon.sdot.v4i32.v16i8"}

# Fastest first.
TIERS = (
    Tier(
        "amx",
        "x86",
        _features("amx-tile amx-int8 avx512f avx512bw avx512vl"),
        Dot.TILES,
        {16: "llvm.x86.tdpbssd"},
        16,  # groups of weights in a tile register
    ),
    Tier(
        "vnni512",
        "x86",
        _features("avx512f avx512bw avx512vl avx512vnni"),
        Dot.UNSIGNED_SIGNED,
        _VPDPBUSD,
        24,
    ),
    Tier(
        "vnni256",
        "x86",
        _features("avx2 avx512f avx512vl avx512vnni", "avx2 avxvnni"),
        Dot.UNSIGNED_SIGNED,
        {lanes: _VPDPBUSD[lanes] for lanes in (4, 8)},
        12,
    ),
    Tier(
        "avx512",
        "x86",
        _features("avx512f avx512bw avx512vl"),
        Dot.PAIRS,
        _PMADDWD,
        24,
        # Multiply and add in one instruction, which LLVM must be told is quick: a third faster.
        optional=frozenset({"avx512vnni"}),
        tuning=frozenset({"fast-dpwssd"}),
    ),
    Tier("avx2", "x86", _features("avx2"), Dot.PAIRS, {n: _PMADDWD[n] for n in (4, 8)}, 12),
    Tier("sse2", "x86", _features("sse2"), Dot.PAIRS, {4: _PMADDWD[4]}, 12),
    Tier("sdot", "aarch64", _features("dotprod neon"), Dot.SIGNED_SIGNED, _SDOT, 24),
    Tier(
        "generic",
        None,
        _features(""),
        Dot.WIDENING,
        {},
        8,
        # The letters are RISC-V's, whose base cannot even multiply.
        optional=frozenset({"avx2", *"mafdcv"}),
    ),
)


def architecture() -> str:
    """``x86``, ``aarch64``, or what the platform calls itself."""
    name = platform.machine().lower()
    return {"x86_64": "x86", "amd64": "x86", "arm64": "aarch64"}.get(name, name)


@cache
def host_features() -> frozenset[str]:
    """CPU features of this host, in LLVM's spelling; empty where LLVM cannot tell."""
    try:
        found = llvm.get_host_cpu_features()
    except RuntimeError:
        return frozenset()
    features = frozenset(name for name, present in found.items() if present)
    return features if "amx-tile" not in features or _may_use_tiles() else features - AMX


AMX = frozenset({"amx-tile", "amx-int8", "amx-bf16", "amx-fp16"})


def _may_use_tiles() -> bool:
    """Ask Linux to let this process use the tile registers; False where it does not."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    libc = ctypes.CDLL(None)
    arguments = (ctypes.c_long(n) for n in (arch_prctl, request_permission, tile_data))
    return int(libc.syscall(*arguments)) == 0


def choose_tier(machine: Machine, name: str | None = None) -> Tier:
    """The fastest tier for this host and machine, or the one called ``name``.

    Raises ``VtaError`` where the named tier does not exist, or cannot serve this host or machine.
    """
    arch, features = architecture(), host_features()
    if name is not None:
        tier = _named(name)
        if tier.arch not in (None, arch) or tier.features(features) is None:
            raise VtaError(
                f"simulator tier {name!r} needs {_needs(tier)}, which this host ({arch}) lacks; it "
                f"runs {_names(tier for tier in TIERS if _runs(tier, arch, features))}; engine="
                '"auto" picks the fastest'
            )
        if not tier.supports(machine):
            raise VtaError(
                f"simulator tier {name!r} cannot serve machine {machine.name!r} "
                f"(inp {machine.types.inp}, wgt {machine.types.wgt}, block_in "
                f"{machine.gemm.block_in}, block_out {machine.gemm.block_out}); these can: "
                f"{_names(tier for tier in TIERS if tier.supports(machine))}"
            )
        return tier
    return next(tier for tier in TIERS if _runs(tier, arch, features) and tier.supports(machine))


def runnable_tiers(machine: Machine) -> list[Tier]:
    """Every tier this host can run for this machine, fastest first."""
    arch, features = architecture(), host_features()
    return [tier for tier in TIERS if _runs(tier, arch, features) and tier.supports(machine)]


def _runs(tier: Tier, arch: str, features: frozenset[str]) -> bool:
    return tier.arch in (None, arch) and tier.features(features) is not None


def _named(name: str) -> Tier:
    for tier in TIERS:
        if tier.name == name:
            return tier
    raise VtaError(
        f"simulator engine {name!r} does not exist; engines are auto, numpy, native, "
        f"{_names(TIERS)}"
    )


def _needs(tier: Tier) -> str:
    sets = " or ".join(" ".join(sorted(needed)) for needed in tier.needs)
    return f"{tier.arch} with {sets}"


def _names(tiers: Iterable[Tier]) -> str:
    return ", ".join(tier.name for tier in tiers)
