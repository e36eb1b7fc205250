"""The memories of a simulated core, seen through the simulator."""

import numpy as np

from vta_hw.scratchpad import Geometry
from vta_isa.enums import Buffer
from vta_isa.tensors import unpack_entries

BUFFERS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


def contents(core, buffer: Buffer, machine):
    """``(depth, rows, columns)`` scalars, ``(depth,) uint32`` for UOP; ``core`` is its handle."""
    owner = core.compute if buffer in (Buffer.UOP, Buffer.ACC) else core
    memory = getattr(owner, f"{buffer.name.lower()}_memory")
    geometry = Geometry.of(machine, buffer)
    size = machine.entry_bytes(buffer)
    banks = [getattr(memory, f"bank{bank}") for bank in range(geometry.banks)]
    # Entry i is in bank i mod banks.
    raw = b"".join(
        int(banks[i % len(banks)][i // len(banks)].value).to_bytes(size, "little")
        for i in range(machine.depth(buffer))
    )
    if buffer == Buffer.UOP:
        return np.frombuffer(raw, dtype="<u4")
    return unpack_entries(np.frombuffer(raw, dtype=np.uint8), buffer, machine)
