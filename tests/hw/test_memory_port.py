"""Arbitration, limits and routing of the read port, against the page's rules."""

import random
from collections import deque

import pytest
from bench import bench
from rtl_machines import machine

from vta_hw.memory_port import Client, ReadPort
from vta_isa.microarch import read_window


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_bursts_are_granted_and_answered_as_the_page_says(name, seed):
    rng = random.Random(seed)
    m = machine(name)
    dut = ReadPort(m)
    busy_memory = seed % 2  # AR is not always taken
    most = m.axi.outstanding_reads
    where = f"{name} {seed=}"

    async def testbench(ctx):
        wanted = dict.fromkeys(Client)  # burst presented by each client: (address, beats)
        on_bus = None  # what AR holds
        outstanding = deque()  # [client, beats left]
        answers = deque()  # (client, data) of beats whose AR was taken
        arrived = None  # beat of the cycle before
        for cycle in range(400):
            for client in Client:
                if wanted[client] is None and rng.random() < 0.3:
                    beats = rng.randint(1, m.axi.burst_beats)
                    wanted[client] = (rng.randrange(1 << 16) * m.bus_bytes, beats)
                request = dut.requests[client]
                ctx.set(request.valid, wanted[client] is not None)
                if wanted[client] is not None:
                    address, beats = wanted[client]
                    ctx.set(request.payload, {"address": address, "len": beats - 1})
            ready = not busy_memory or rng.random() < 0.5
            ctx.set(dut.axi.arready, ready)

            assert ctx.get(dut.axi.arvalid) == (on_bus is not None), where
            if on_bus is not None:
                client, address, beats = on_bus
                assert ctx.get(dut.axi.araddr) == address, where
                assert ctx.get(dut.axi.arlen) == beats - 1, where
                assert ctx.get(dut.axi.arprot) == (4 if client == Client.FETCH else 0), where
            for client in Client:
                assert ctx.get(dut.valid[client]) == (arrived is not None and arrived[0] == client)
            if arrived is not None:
                assert ctx.get(dut.data) == arrived[1], where

            beats = sum(left for _, left in outstanding)
            free = len(outstanding) < most and beats < read_window(m) and (ready or on_bus is None)
            winner = next((c for c in Client if wanted[c] is not None), None) if free else None
            granted = [c for c in Client if ctx.get(dut.requests[c].ready)]
            assert granted == ([] if winner is None else [winner]), f"{where} {cycle=}"

            beat = answers.popleft() if answers and rng.random() < 0.7 else None
            ctx.set(dut.axi.rvalid, beat is not None)
            if beat is not None:
                outstanding[0][1] -= 1
                ctx.set(dut.axi.rdata, beat[1])
                ctx.set(dut.axi.rlast, outstanding[0][1] == 0)
                if outstanding[0][1] == 0:
                    outstanding.popleft()
            if on_bus is not None and ready:
                client, _, beats = on_bus
                answers += [(client, rng.getrandbits(m.axi.data_bits)) for _ in range(beats)]
                on_bus = None
            if winner is not None:
                on_bus = (winner, *wanted[winner])
                outstanding.append([winner, wanted[winner][1]])
                wanted[winner] = None
            arrived = beat
            await ctx.tick()

    bench(dut, testbench)


@pytest.mark.parametrize("response", [1, 2, 3])
def test_an_error_response_is_reported(response):
    dut = ReadPort(machine("tiny"))

    async def testbench(ctx):
        ctx.set(dut.axi.rvalid, 1)
        ctx.set(dut.axi.rresp, response)
        await ctx.tick()
        assert ctx.get(dut.failed)
        ctx.set(dut.axi.rresp, 0)
        await ctx.tick()
        assert not ctx.get(dut.failed)

    bench(dut, testbench)
