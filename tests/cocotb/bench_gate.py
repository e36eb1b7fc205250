"""The gate between core and memory: whenever it is told to stop, AXI goes on by the rules.

A stand-in for the core reads and writes at random; when it is reset it drops everything at once, as
the core does. Behind the gate are the memory and the monitor of every other bench.
"""

from collections import deque
from random import Random

import cocotb
from axi_memory import Memory, Mood
from axi_monitor import Monitor
from cocotb.triggers import RisingEdge
from small_machines import machine_of
from support import drive, parameters, random_of, start

from vta_isa.microarch import WRITE_AHEAD, burst_bytes

MACHINE = machine_of(parameters()["machine"])
BUS = MACHINE.bus_bytes
READ, WRITE = "core_read__", "core_write__"
IMAGE_BYTES = 1 << 12
ADDRESS = {"size": BUS.bit_length() - 1, "burst": 1, "cache": 0b1111, "prot": 0}


class Core:
    """Bursts of both kinds, data behind its address, always ready for answers."""

    def __init__(self, dut, rng: Random):
        self.dut, self.rng = dut, rng
        self.reset()

    def reset(self) -> None:
        """Everything is dropped, and the wires say anything."""
        self.busy = {"ar": False, "aw": False, "w": False}
        self.owed = deque()  # W beats of bursts whose address was taken
        self.reads = 0  # bursts
        for channel, prefix in (("ar", READ), ("aw", WRITE)):
            self._set(prefix, **{f"{channel}valid": 0, f"{channel}addr": self._address()})
        self._set(WRITE, wvalid=0, wdata=self.rng.getrandbits(8 * BUS), wstrb=0, wlast=0)

    def step(self) -> None:
        """At the end of a cycle: see what was taken, offer what comes next."""
        for channel, prefix in (("ar", READ), ("aw", WRITE), ("w", WRITE)):
            if self.busy[channel] and self._get(prefix, f"{channel}ready"):
                self.busy[channel] = False
                if channel == "ar":
                    self.reads += 1
                elif channel == "aw":
                    self.owed.append(self._get(prefix, "awlen") + 1)
                else:
                    self.owed[0] -= 1
                    if not self.owed[0]:
                        self.owed.popleft()
        if self._get(READ, "rvalid") and self._get(READ, "rlast"):
            self.reads -= 1
        for channel, prefix in (("ar", READ), ("aw", WRITE)):
            few = self.reads < 2 if channel == "ar" else len(self.owed) < WRITE_AHEAD
            if not self.busy[channel] and few and self.rng.random() < 0.4:
                self.busy[channel] = True
                values = ADDRESS | {"addr": self._address(), "len": self.rng.randrange(3)}
                self._set(prefix, **{channel + name: value for name, value in values.items()})
            self._set(prefix, **{f"{channel}valid": int(self.busy[channel])})
        if not self.busy["w"]:
            self._set(WRITE, wdata=self.rng.getrandbits(8 * BUS), wlast=0)
            if self.owed and self.rng.random() < 0.7:
                self.busy["w"] = True
                self._set(WRITE, wstrb=(1 << BUS) - 1, wlast=int(self.owed[0] == 1))
        self._set(WRITE, wvalid=int(self.busy["w"]))

    def _address(self) -> int:
        cut = burst_bytes(MACHINE)
        return self.rng.randrange(IMAGE_BYTES // cut) * cut

    def _get(self, prefix: str, name: str) -> int:
        return int(getattr(self.dut, prefix + name).value)

    def _set(self, prefix: str, **values: int) -> None:
        for name, value in values.items():
            getattr(self.dut, prefix + name).value = value


class Bus:
    """Both halves of the memory side under one prefix, as memory and monitor want it."""

    def __init__(self, dut):
        self._dut = dut

    def __getattr__(self, name: str):
        half = "write" if name[0] in "awb" and not name.startswith("ar") else "read"
        return getattr(self._dut, f"{half}__{name}")


@cocotb.test()
@cocotb.parametrize(seed=list(range(parameters()["seeds"])))
async def stops_at_any_time_by_the_rules(dut, seed):
    rng = random_of(f"gate {seed}")
    core = Core(dut, rng)
    bus = Bus(dut)
    memory = Memory(bus, "", dut.clk, bytes(IMAGE_BYTES), rng, Mood.random(rng))
    limits = {"burst_bytes": burst_bytes(MACHINE), "reads": 3}
    monitor = Monitor(bus, "", dut.clk, dut.rst, **limits)
    await start(dut, stop=0, core_read__rready=1, core_write__bready=1)
    cocotb.start_soon(memory.run())
    cocotb.start_soon(monitor.run())
    stops = 0
    for _ in range(8):
        for _ in range(rng.choice([1, 5, rng.randrange(200)])):
            await RisingEdge(dut.clk)
            core.step()
            assert not int(dut.stopped.value)
        drive(dut, stop=1)
        for cycle in range(5000):
            await RisingEdge(dut.clk)
            drive(dut, stop=0)
            stopped, reset = int(dut.stopped.value), int(dut.reset.value)
            assert stopped or not reset, "the core is held in reset while the gate is open"
            if cycle and not stopped:
                break
            if reset:
                core.reset()
                assert not int(dut.core_read__rvalid.value), "data for a core in reset"
                assert not int(dut.core_write__bvalid.value), "an answer for a core in reset"
            else:
                core.step()
        else:
            raise AssertionError("the gate does not open again")
        assert monitor.quiet, "the gate opens before everything is answered"
        assert memory.quiet
        stops += 1
    assert stops == 8
