"""Rows cut into bursts, whenever they are taken, against a list made beat by beat."""

import cocotb
from cocotb.triggers import RisingEdge
from packed import unpack
from small_machines import machine_of
from support import drive, parameters, random_of, sample, start

from vta_hw.bursts import burst_layout
from vta_isa.microarch import burst_bytes

MACHINE = machine_of(parameters()["machine"])
LAYOUT = burst_layout(MACHINE)


def cut(address: int, row_bytes: int, stride: int, rows: int) -> list[tuple[int, int]]:
    """(address, beats) of every burst."""
    bus, bursts = MACHINE.bus_bytes, []
    for row in range(rows):
        first = address + row * stride
        for beat in range(first // bus, (first + row_bytes - 1) // bus + 1):
            if beat == first // bus or beat * bus % burst_bytes(MACHINE) == 0:
                bursts.append((beat * bus, 0))
            bursts[-1] = (bursts[-1][0], bursts[-1][1] + 1)
    return bursts


@cocotb.test()
async def presents_every_burst_once_and_in_order(dut):
    rng = random_of("bursts")
    await start(dut, start=0, burst__ready=0, address=0, row_bytes=0, stride_bytes=0, rows=0)
    edges = [
        (0, 1, 0, 1),
        (4095, 2, 0, 2),
        (4096 - MACHINE.bus_bytes, 4096, 8192, 2),
        (64, 1, 7, 0),
        (8191, 1, 1, 3),
    ]
    tiles = edges + [
        (rng.randrange(9000), rng.randrange(1, 6000), rng.randrange(900), rng.randrange(4))
        for _ in range(25)
    ]
    for tile in tiles:
        wanted = cut(*tile)
        eager = rng.choice([1.0, 0.6, 0.2])
        names = ("address", "row_bytes", "stride_bytes", "rows")
        drive(dut, start=1, burst__ready=0, **dict(zip(names, tile, strict=True)))
        await RisingEdge(dut.clk)
        drive(dut, start=0, address=0xBAD, rows=3)  # they matter only with start
        for number, burst in enumerate(wanted):
            while True:
                ready = int(rng.random() < eager)
                drive(dut, burst__ready=ready)
                await RisingEdge(dut.clk)
                valid, payload, last = sample(dut, "burst__valid", "burst__payload", "last")
                got = unpack(LAYOUT, payload)
                assert valid, f"burst {number} of {tile} is not there at once"
                assert (got["address"], got["len"] + 1) == burst, f"burst {number} of {tile}"
                assert last == (number == len(wanted) - 1), f"burst {number} of {tile}"
                if ready:
                    break
        drive(dut, burst__ready=1)
        await RisingEdge(dut.clk)
        assert not int(dut.burst__valid.value), f"more bursts than {tile} has"
