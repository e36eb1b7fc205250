"""The sections of a machine description and what each key may be.

Every key has a default: together they are the published default machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from .suggest import did_you_mean
from .units import BYTES, HERTZ, format_bytes, parse_quantity


@dataclass(frozen=True)
class Whole:
    """Validates a whole number; messages lack the key, which the machine adds."""

    low: int
    high: int
    power_of_two: bool = False
    units: dict[str, int] | None = None
    show: Callable[[int], str] = str

    def __call__(self, value: object) -> int:
        if isinstance(value, str) and self.units is not None:
            value = parse_quantity(value, self.units)
        if isinstance(value, bool) or not isinstance(value, int):
            unit = f", with a unit if you like ({', '.join(self.units)})" if self.units else ""
            raise ValueError(f"is not a whole number; write one{unit}")
        if not self.low <= value <= self.high:
            raise ValueError(
                f"is out of range; allowed are {self.show(self.low)} to {self.show(self.high)}"
            )
        if self.power_of_two and value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise ValueError(f"is not a power of two; the nearest are {below} and {2 * below}")
        return value


@dataclass(frozen=True)
class OneOf:
    """Validates a word out of a few."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> object:
        if value not in self.words:
            raise ValueError(f"is not allowed{did_you_mean(str(value), self.words)}")
        return value


# fmt: off
Extent      = Annotated[int, BeforeValidator(Whole(1, 1024, power_of_two=True))]
SramBytes   = Annotated[int, BeforeValidator(Whole(1, 2**30, power_of_two=True, units=BYTES,
                                                   show=format_bytes))]
BusBits     = Annotated[int, BeforeValidator(Whole(32, 512, power_of_two=True))]
AddressBits = Annotated[int, BeforeValidator(Whole(16, 64))]
BurstBeats  = Annotated[int, BeforeValidator(Whole(1, 256, power_of_two=True))]
Outstanding = Annotated[int, BeforeValidator(Whole(1, 256))]
QueueDepth  = Annotated[int, BeforeValidator(Whole(1, 2**16))]
Interval    = Annotated[int, BeforeValidator(Whole(1, 16))]
Latency     = Annotated[int, BeforeValidator(Whole(1, 2**16))]
Packing     = Annotated[int, BeforeValidator(Whole(1, 2))]
Seed        = Annotated[int, BeforeValidator(Whole(0, 2**32 - 1))]
Hertz       = Annotated[int, BeforeValidator(Whole(1, 10**11, units=HERTZ))]

OperandType = Annotated[Literal["int2", "int4", "int8", "int16"],
                        BeforeValidator(OneOf(("int2", "int4", "int8", "int16")))]
# The ALU's 16-bit immediate is an accumulator scalar, so accumulators have at least 16 bits.
AccType     = Annotated[Literal["int16", "int32"], BeforeValidator(OneOf(("int16", "int32")))]
OutType     = Annotated[Literal["int2", "int4", "int8", "int16", "int32"],
                        BeforeValidator(OneOf(("int2", "int4", "int8", "int16", "int32")))]
# fmt: on


class Section(BaseModel):
    """Frozen, and without keys nobody reads.

    ``added`` are the keys that descriptions written before did not have. While such a key has its
    default it is left out of what is printed and hashed, so a machine keeps its hash.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    added: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_unused_additions(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        for key in self.added:
            if getattr(self, key) == type(self).model_fields[key].default:
                dumped.pop(key, None)
        return dumped


class Gemm(Section):
    """The matrix product one cycle does: (batch, block_in) x (block_in, block_out)."""

    added: ClassVar[frozenset[str]] = frozenset({"packing"})

    batch: Extent = Field(default=1, description="rows of an INP, ACC and OUT entry")
    block_in: Extent = Field(default=16, description="columns of an INP and of a WGT entry")
    block_out: Extent = Field(
        default=16, description="columns of an ACC and OUT entry, rows of a WGT entry"
    )
    packing: Packing = Field(default=1, description="products per multiplier of the hardware")


class Types(Section):
    """Scalars of each buffer, all two's complement."""

    inp: OperandType = Field(default="int8", description="activations")
    wgt: OperandType = Field(default="int8", description="weights")
    acc: AccType = Field(default="int32", description="accumulators")
    out: OutType = Field(default="int8", description="results: the low bits of accumulators")


class Sram(Section):
    """Bytes of each on-chip memory; OUT has as many entries as ACC."""

    uop: SramBytes = Field(default=32 * 2**10, description="micro-ops, 4 bytes each")
    inp: SramBytes = Field(default=32 * 2**10, description="activations")
    wgt: SramBytes = Field(default=256 * 2**10, description="weights")
    acc: SramBytes = Field(default=128 * 2**10, description="accumulators")


class Axi(Section):
    """The AXI4 master that reaches DRAM."""

    data_bits: BusBits = Field(default=64, description="bits of one beat")
    addr_bits: AddressBits = Field(default=32, description="bits of a byte address")
    burst_beats: BurstBeats = Field(default=256, description="most beats of one burst")
    outstanding_reads: Outstanding = Field(default=16, description="most read bursts under way")


class Queues(Section):
    """Depths of the queues between stages."""

    command: QueueDepth = Field(default=512, description="instructions waiting per stage")
    token: QueueDepth = Field(default=1024, description="tokens waiting per dependence queue")


class Alu(Section):
    """The tensor ALU."""

    tensor_interval: Interval = Field(default=2, description="cycles per tensor-tensor operation")


class Extensions(Section):
    """What goes beyond the published instruction set (docs/extensions.md)."""

    gemm_overwrite: bool = Field(
        default=False, description="GEMM can write its sums instead of adding them to ACC"
    )
    alu_requantize: bool = Field(
        default=False, description="the ALU can add a bias, shift and clip in one pass"
    )


class Memory(Section):
    """The DRAM model that simulator and test bench share."""

    read_latency: Latency = Field(default=32, description="cycles from read address to first beat")
    write_latency: Latency = Field(default=8, description="cycles from last write beat to response")
    jitter: Seed | None = Field(
        default=None, description="seed of pseudo-random stalls; none if empty"
    )
