"""One machine: a frozen, validated description and every number that follows from it."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator

from . import encodable, packing
from .description import merge, read_description
from .enums import Buffer
from .errors import MachineError
from .insn import UOP_BITS, IndexBits
from .sections import Alu, Axi, Extensions, Gemm, Hertz, Memory, Queues, Section, Sram, Types
from .suggest import did_you_mean

_ACC_8BIT_BITS = 8  # of the accumulators that LOAD ACC_8BIT widens
NOT_ARCHITECTURE = frozenset({"name", "clock", "memory"})


class Machine(Section):
    """One VTA machine. Every size is a power of two, so addresses are bit slices.

    An entry is what one SRAM address holds and what one DRAM address of an instruction counts.
    """

    name: str = Field(default="custom", description="for reports; no part of the architecture")
    gemm: Gemm = Gemm()
    types: Types = Types()
    sram: Sram = Sram()
    axi: Axi = Axi()
    queues: Queues = Queues()
    alu: Alu = Alu()
    extensions: Extensions = Extensions()
    memory: Memory = Memory()
    clock: Hertz = Field(default=100_000_000, description="hertz, for reports in seconds")

    added: ClassVar[frozenset[str]] = frozenset({"extensions"})

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems_in_one_error(
        cls, data: Any, handler: ModelWrapValidatorHandler[Self]
    ) -> Self:
        try:
            machine = handler(data)
        except ValidationError as error:
            raise _machine_error([_describe(e["loc"], e) for e in error.errors()]) from None
        if found := [*encodable.problems(machine), *packing.problems(machine)]:
            raise _machine_error(found)
        return machine

    def replace(self, **changes: Any) -> "Machine":
        """This machine with some keys changed: ``replace(sram={"uop": "4 KiB"})``, validated."""
        return Machine.model_validate(merge(self.model_dump(), changes))

    def bits(self, buffer: Buffer) -> int:
        """Bits of one scalar."""
        match buffer:
            case Buffer.UOP:
                return UOP_BITS
            case Buffer.ACC_8BIT:
                return _ACC_8BIT_BITS
        kind: str = getattr(self.types, buffer.name.lower())
        return int(kind.removeprefix("int"))

    def scalar_range(self, buffer: Buffer) -> tuple[int, int]:
        """Smallest and largest scalar; micro-ops are unsigned, everything else is signed."""
        bits = self.bits(buffer)
        if buffer is Buffer.UOP:
            return 0, (1 << bits) - 1
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def dtype(self, buffer: Buffer) -> np.dtype[Any]:
        """Of an unpacked scalar; scalars narrower than a byte take one."""
        if buffer is Buffer.UOP:
            return np.dtype(np.uint32)
        return np.dtype(f"int{max(self.bits(buffer), 8)}")

    def entry_axes(self, buffer: Buffer) -> tuple[str, str]:
        """Which extents of ``gemm`` are the rows and columns of an entry."""
        match buffer:
            case Buffer.UOP:
                raise ValueError("a micro-op has no axes")
            case Buffer.INP:
                return "batch", "block_in"
            case Buffer.WGT:
                return "block_out", "block_in"
        return "batch", "block_out"

    def entry_shape(self, buffer: Buffer) -> tuple[int, int]:
        """Scalars of an entry, (rows, columns)."""
        if buffer is Buffer.UOP:
            return 1, 1
        rows, cols = self.entry_axes(buffer)
        return getattr(self.gemm, rows), getattr(self.gemm, cols)

    def entry_bits(self, buffer: Buffer) -> int:
        """Bits of an entry, wherever it lies."""
        rows, cols = self.entry_shape(buffer)
        return rows * cols * self.bits(buffer)

    def entry_bytes(self, buffer: Buffer) -> int:
        """Bytes of an entry in DRAM."""
        return self.entry_bits(buffer) // 8

    def depth(self, buffer: Buffer) -> int:
        """Entries of the buffer; OUT and ACC_8BIT have those of ACC."""
        match buffer:
            case Buffer.OUT | Buffer.ACC_8BIT:
                return self.depth(Buffer.ACC)
        size: int = getattr(self.sram, buffer.name.lower())
        return size // self.entry_bytes(buffer)

    def index_bits(self, buffer: Buffer) -> int:
        """log2 of the depth."""
        return self.depth(buffer).bit_length() - 1

    @property
    def all_index_bits(self) -> IndexBits:
        """What the instruction encodings depend on."""
        return IndexBits(
            uop=self.index_bits(Buffer.UOP),
            inp=self.index_bits(Buffer.INP),
            wgt=self.index_bits(Buffer.WGT),
            acc=self.index_bits(Buffer.ACC),
        )

    @property
    def bus_bytes(self) -> int:
        """Bytes of one AXI beat."""
        return self.axi.data_bits // 8

    @property
    def macs_per_cycle(self) -> int:
        """Products that a GEMM adds up in one cycle."""
        return self.gemm.batch * self.gemm.block_in * self.gemm.block_out

    @property
    def shape(self) -> str:
        """``1x16x16_i8w8a32o8``: extents and types, for tables and file names."""
        g, b = self.gemm, self.bits
        kinds = f"i{b(Buffer.INP)}w{b(Buffer.WGT)}a{b(Buffer.ACC)}o{b(Buffer.OUT)}"
        return f"{g.batch}x{g.block_in}x{g.block_out}_{kinds}"

    @cached_property
    def hash(self) -> str:
        """16 hex digits over everything the RTL is built from: not name, clock or memory model."""
        architecture = self.model_dump(exclude=set(NOT_ARCHITECTURE))
        canonical = json.dumps(architecture, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def load_machine(spec: str | Path | Mapping[str, Any] | Machine) -> Machine:
    """The machine that `spec` names or describes.

    A preset name, the path of a YAML file or of a published ``vta_config.json``, or a mapping with
    the keys of either. Messages about a file begin with its name.
    """
    if isinstance(spec, Machine):
        return spec
    where, keys = read_description(spec)
    try:
        return Machine.model_validate(keys)
    except MachineError as error:
        raise MachineError(f"{where}: {error}" if where else str(error)) from None


def _machine_error(found: list[str]) -> MachineError:
    if len(found) == 1:
        return MachineError(found[0])
    return MachineError(f"{len(found)} problems\n" + "\n".join(f"  {text}" for text in found))


def _describe(location: tuple[int | str, ...], error: Mapping[str, Any]) -> str:
    """One problem that pydantic found, in our words."""
    key = ".".join(str(part) for part in location)
    value = error["input"]
    match error["type"]:
        case "extra_forbidden":
            known = _section(location[:-1]).model_fields
            return f"unknown key {key!r}{did_you_mean(str(location[-1]), known)}"
        case "value_error":
            return f"{key} = {value!r} {error['ctx']['error']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            what = f"{key} = {value!r}" if key else f"{value!r}"
            keys = ", ".join(_section(location).model_fields)
            return f"{what} is not a mapping; its keys are {keys}"
    return f"{key} = {value!r} is not allowed: {error['msg']}"


def _section(location: tuple[int | str, ...]) -> type[Section]:
    """The part of the description that `location` leads to."""
    if not location:
        return Machine
    section = Machine.model_fields[str(location[0])].annotation
    assert isinstance(section, type)
    assert issubclass(section, Section)
    return section
