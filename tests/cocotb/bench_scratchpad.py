"""A scratchpad against an array: parts of entries written, every read port on its own."""

import cocotb
from cocotb.triggers import RisingEdge
from packed import pack
from small_machines import machine_of
from support import drive, parameters, random_of, start

from vta_hw.scratchpad import Geometry
from vta_isa.enums import Buffer

GEOMETRY = Geometry.of(machine_of(parameters()["machine"]), Buffer[parameters()["buffer"]])
READERS = parameters()["readers"]
BANK = GEOMETRY.write_layout.elem_shape.size
ELEMENT = GEOMETRY.write_layout.elem_shape


@cocotb.test()
async def reads_what_was_written(dut):
    rng = random_of("scratchpad")
    banks, rows, parts = GEOMETRY.banks, GEOMETRY.rows, GEOMETRY.parts
    part_bits = GEOMETRY.entry_bits // parts
    model = [[0] * rows for _ in range(banks)]
    shown = [[None] * banks for _ in range(READERS)]  # data of every port; None: undefined
    await start(
        dut, write=0, **{f"reads__{p}__{n}": 0 for p in range(READERS) for n in ("en", "rows")}
    )
    for cycle in range(400):
        writes = [
            {
                "row": rng.randrange(rows),
                "en": rng.getrandbits(parts) if rng.random() < 0.7 else 0,
                "data": rng.getrandbits(GEOMETRY.entry_bits),
            }
            for _ in range(banks)
        ]
        # Rows that were written lately are read as often as others.
        reads = [[rng.randrange(min(rows, 8)) for _ in range(banks)] for _ in range(READERS)]
        enabled = [rng.random() < 0.8 for _ in range(READERS)]
        word = sum(pack(ELEMENT, **one) << bank * BANK for bank, one in enumerate(writes))
        drive(dut, write=word)
        for port in range(READERS):
            places = sum(row << i * GEOMETRY.row_bits for i, row in enumerate(reads[port]))
            drive(dut, **{f"reads__{port}__rows": places, f"reads__{port}__en": int(enabled[port])})
        await RisingEdge(dut.clk)
        for port in range(READERS):
            data = int(getattr(dut, f"reads__{port}__data").value)
            for bank, value in enumerate(shown[port]):
                got = data >> bank * GEOMETRY.entry_bits & ((1 << GEOMETRY.entry_bits) - 1)
                assert value is None or got == value, f"{cycle=} {port=} {bank=}"
        for port in range(READERS):
            for bank, row in enumerate(reads[port]):
                if enabled[port]:
                    hit = writes[bank]["en"] and writes[bank]["row"] == row
                    shown[port][bank] = None if hit else model[bank][row]
        for bank, one in enumerate(writes):
            for part in range(parts):
                if one["en"] >> part & 1:
                    mask = ((1 << part_bits) - 1) << part * part_bits
                    old = model[bank][one["row"]]
                    model[bank][one["row"]] = old & ~mask | one["data"] & mask
