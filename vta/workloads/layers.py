"""What one layer of a workload computes, in the words of its YAML description."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import model_validator as check

from vta_isa.enums import Buffer
from vta_isa.machine import Machine

# What one axis, and one whole tensor, may be: DRAM addresses have 32 bits.
Size = Annotated[int, Field(ge=1, le=1 << 16)]
MOST_ELEMENTS = 1 << 28
Length = Annotated[int, Field(ge=1, le=1 << 24)]
LayerName = Annotated[str, StringConstraints(pattern=r"^[^/\s]+$")]


# Bounds of MIN and MAX travel in the 16-bit immediate of an ALU instruction.
LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1
Immediate = Annotated[int, Field(ge=LOWEST, le=HIGHEST)]


def _shift(value: object) -> object:
    if value == "auto" or (type(value) is int and 0 <= value <= 31):
        return value
    raise ValueError(f"{value!r} is not a shift; use auto or a number in 0..31")


def _clip(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and [type(bound) for bound in value] == [int, int]:
        low, high = value
        if low > high:
            raise ValueError(f"{[low, high]} is empty; put the lower bound first")
        if LOWEST <= low and high <= HIGHEST:
            return low, high
    raise ValueError(
        f"{value!r} is not a clip; use true, false or [lowest, highest] in {LOWEST}..{HIGHEST}"
    )


@dataclass(frozen=True)
class ConcreteEpilogue:
    """What follows the sum of products, in this order, with every number decided."""

    bias: bool  # one accumulator scalar per output channel is added
    shift: int  # arithmetic right shift; 0: none
    clip: tuple[int, int] | None  # lowest and highest output


class Description(BaseModel):
    """Base of everything read from a workload file: frozen, no unknown keys, no conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Epilogue(Description):
    """``bias``, then ``shift``, then ``clip``; each may be left out.

    ``shift: auto`` is the shift after which random operands of full range spread over the output
    type, few of them clipped. ``clip: true`` clips to the output type's range.
    """

    bias: bool = True
    shift: Annotated[int | Literal["auto"], BeforeValidator(_shift)] = "auto"
    clip: Annotated[bool | tuple[int, int], BeforeValidator(_clip)] = True

    def concrete(self, machine: Machine, reduction: int) -> ConcreteEpilogue:
        """The numbers for sums of ``reduction`` products on ``machine``."""
        shift = spreading_shift(machine, reduction) if self.shift == "auto" else self.shift
        # Beyond its width a right shift changes no more: only copies of the sign are left.
        shift = min(shift, machine.bits(Buffer.ACC) - 1)
        out_bits = machine.bits(Buffer.OUT)
        clip: tuple[int, int] | None
        if not isinstance(self.clip, bool):
            clip = self.clip
        elif self.clip and out_bits <= 16:
            clip = (-(1 << (out_bits - 1)), (1 << (out_bits - 1)) - 1)
        else:  # an output wider than the immediate is as wide as the accumulator: nothing to clip
            clip = None
        return ConcreteEpilogue(self.bias, shift, clip)


def spreading_shift(machine: Machine, reduction: int) -> int:
    """Shift that brings a sum of ``reduction`` random products to a fifth of the output's range.

    The standard deviation of a uniform b-bit integer is 2**b / sqrt(12); products multiply it,
    sums of independent terms grow with the square root of their number. A fifth leaves about one
    in a hundred to be clipped, so that clipping is exercised and does not hide errors.
    """
    bits = machine.bits(Buffer.INP) + machine.bits(Buffer.WGT) - machine.bits(Buffer.OUT)
    return min(31, max(0, round(bits + math.log2(5 / 12 * math.sqrt(reduction)))))


class LayerBase(Description):
    """What every layer has. ``count`` is how often the network runs it; 0 shows it uncounted."""

    name: LayerName
    count: Annotated[int, Field(ge=0, le=1 << 20)] = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations of one run, padding to blocks not counted."""
        return 0


def _check_elements(**tensors: int) -> None:
    for tensor, elements in tensors.items():
        if elements > MOST_ELEMENTS:
            raise ValueError(
                f"{tensor} would have {elements:,} elements; at most {MOST_ELEMENTS:,} can be "
                "addressed, split the layer"
            )


class Conv2d(LayerBase):
    """2-D convolution, dilation 1.

    ``data`` (batch, in_channels, height, width) and ``weights`` (out_channels, in_channels,
    kernel, kernel), with ``bias`` (out_channels,), give (batch, out_channels, out_height,
    out_width). ``padding`` zeros surround the picture on all four sides.
    """

    kind: Literal["conv2d"] = "conv2d"
    batch: Size = 1
    height: Size
    width: Size
    in_channels: Size
    out_channels: Size
    kernel: Annotated[int, Field(ge=1, le=255)]
    stride: Annotated[int, Field(ge=1, le=255)] = 1
    padding: Annotated[int, Field(ge=0, le=127)] = 0
    epilogue: Epilogue = Epilogue()

    @check(mode="after")
    def _can_be(self) -> Self:
        for axis, size in (("height", self.height), ("width", self.width)):
            if self.kernel > size + 2 * self.padding:
                raise ValueError(
                    f"kernel = {self.kernel} is larger than the padded {axis} "
                    f"{size} + 2 x {self.padding}; pad more or shrink the kernel"
                )
        _check_elements(
            data=self.batch * self.in_channels * self.height * self.width,
            weights=self.out_channels * self.reduction,
            output=self.batch * self.out_channels * self.out_height * self.out_width,
        )
        return self

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def reduction(self) -> int:
        """Products in one output."""
        return self.in_channels * self.kernel**2

    @property
    def macs(self) -> int:
        outputs = self.batch * self.out_channels * self.out_height * self.out_width
        return outputs * self.reduction

    def concrete_epilogue(self, machine: Machine) -> ConcreteEpilogue:
        return self.epilogue.concrete(machine, self.reduction)


class Dense(LayerBase):
    """Matrix product: ``data`` (m, k) times the transpose of ``weights`` (n, k) gives (m, n).

    ``bias`` is (n,).
    """

    kind: Literal["dense"] = "dense"
    m: Size
    k: Size
    n: Size
    epilogue: Epilogue = Epilogue()

    @check(mode="after")
    def _can_be(self) -> Self:
        _check_elements(data=self.m * self.k, weights=self.n * self.k, output=self.m * self.n)
        return self

    @property
    def reduction(self) -> int:
        """Products in one output."""
        return self.k

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    def concrete_epilogue(self, machine: Machine) -> ConcreteEpilogue:
        return self.epilogue.concrete(machine, self.reduction)


class ElementWise(LayerBase):
    """Base of the layers that work on vectors of ``length`` accumulator scalars.

    The result is narrowed to the output type by dropping its upper bits.
    """

    operands: ClassVar[tuple[str, ...]] = ("a",)
    length: Length


class Add(ElementWise):
    """``a + b``."""

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    kind: Literal["add"] = "add"


class Relu(ElementWise):
    """``max(a, 0)``."""

    kind: Literal["relu"] = "relu"


class Shift(ElementWise):
    """``a >> amount``, arithmetic; a negative amount shifts left."""

    kind: Literal["shift"] = "shift"
    amount: Annotated[int, Field(ge=-31, le=31)]


class Clip(ElementWise):
    """``min(max(a, low), high)``."""

    kind: Literal["clip"] = "clip"
    low: Immediate
    high: Immediate

    @check(mode="after")
    def _is_a_range(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} is above high = {self.high}; swap them")
        return self


Layer = Conv2d | Dense | Add | Relu | Shift | Clip
KINDS: dict[str, type[Any]] = {
    cls.model_fields["kind"].default: cls for cls in (Conv2d, Dense, Add, Relu, Shift, Clip)
}
