"""The read port: three clients, one AXI read channel, a memory that answers as it likes."""

from collections import deque
from random import Random

import cocotb
from axi_memory import Memory, Mood
from axi_monitor import Monitor
from cocotb.triggers import RisingEdge
from packed import pack
from small_machines import machine_of
from support import parameters, random_of, start

from vta_hw.bursts import burst_layout
from vta_hw.memory_port import Client
from vta_isa.microarch import burst_bytes, read_window

MACHINE = machine_of(parameters()["machine"])
LAYOUT = burst_layout(MACHINE)
IMAGE_BYTES = 1 << 16


class Requester:
    """One client: presents bursts, keeps them until they are granted."""

    def __init__(self, dut, client: Client, rng: Random, pause: float):
        self.dut, self.client, self.rng, self.pause = dut, client, rng, pause
        self.request = None  # (address, beats) on the wires
        self.left = 60

    def offer(self) -> None:
        if self.request is None and self.left and self.rng.random() >= self.pause:
            bus, cut = MACHINE.bus_bytes, burst_bytes(MACHINE)
            address = self.rng.randrange(IMAGE_BYTES // bus) * bus
            most = (cut - address % cut) // bus
            self.request = address, self.rng.choice([1, most, self.rng.randint(1, most)])
            self.left -= 1
        self._wire("valid").value = int(self.request is not None)
        if self.request is not None:
            address, beats = self.request
            self._wire("payload").value = pack(LAYOUT, address=address, len=beats - 1)

    def granted(self) -> bool:
        return self.request is not None and bool(int(self._wire("ready").value))

    def _wire(self, name: str):
        return getattr(self.dut, f"requests__{int(self.client)}__{name}")


class Port:
    """What the port promises: whom it grants when, and whose beat is whose."""

    def __init__(self, image: bytes):
        self.image = image
        self.expected = deque()  # (client, data) of beats granted, in order
        self.beats = deque()  # beats to come of every burst outstanding
        self.address = None  # granted in the cycle before

    def grant(self, client: Client, address: int, beats: int) -> None:
        bus = MACHINE.bus_bytes
        assert len(self.beats) < MACHINE.axi.outstanding_reads, "too many bursts outstanding"
        assert sum(self.beats) < read_window(MACHINE), "too many beats outstanding"
        self.beats.append(beats)
        for place in range(address, address + beats * bus, bus):
            data = int.from_bytes(self.image[place : place + bus], "little")
            self.expected.append((client, data))

    @property
    def must_grant(self) -> bool:
        few = len(self.beats) < MACHINE.axi.outstanding_reads
        return few and sum(self.beats) < read_window(MACHINE)

    def beat(self) -> None:
        self.beats[0] -= 1
        if not self.beats[0]:
            self.beats.popleft()


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.8])
@cocotb.parametrize(slow=[False, True])
async def every_client_gets_its_own_data(dut, pause, slow):
    rng = random_of(f"read port {pause} {slow}")
    image = rng.randbytes(IMAGE_BYTES)
    mood = Mood(ar=0.5, r=0.4, read_latency=(1, 60)) if slow else Mood(read_latency=(5, 5))
    memory = Memory(dut, "axi__", dut.clk, image, rng, mood)
    limits = {"burst_bytes": burst_bytes(MACHINE), "reads": MACHINE.axi.outstanding_reads}
    monitor = Monitor(dut, "axi__", dut.clk, dut.rst, **limits)
    clients = [Requester(dut, client, rng, pause) for client in Client]
    for client in clients:
        client._wire("valid").value = 0
        client._wire("payload").value = 0
    await start(dut)
    cocotb.start_soon(memory.run())
    cocotb.start_soon(monitor.run())

    port, arrived = Port(image), None
    for cycle in range(30_000):
        for client in clients:
            client.offer()
        await RisingEdge(dut.clk)
        # Data is registered: what was on the bus in the cycle before is here in this one.
        valid = [int(getattr(dut, f"valid__{int(c)}").value) for c in Client]
        wanted = [int(arrived is not None and arrived[0] == c) for c in Client]
        assert valid == wanted, f"{cycle=}: valid {valid}, not {wanted}"
        if arrived is not None:
            assert int(dut.data.value) == arrived[1], f"{cycle=}"
        ar = int(dut.axi__arvalid.value), int(dut.axi__araddr.value), int(dut.axi__arlen.value)
        if port.address is not None:
            assert ar == (1, port.address[0], port.address[1] - 1), f"{cycle=}: AR after a grant"
        waiting = ar[0] and not int(dut.axi__arready.value)
        asking = [client.client for client in clients if client.request is not None]
        granted = [client for client in clients if client.granted()]
        may = bool(asking) and port.must_grant and not waiting
        assert len(granted) == int(may), f"{cycle=}: {len(granted)} grants"
        beat_now = int(dut.axi__rvalid.value)
        port.address = None
        if granted:
            assert granted[0].client == min(asking), f"{cycle=}: priority"
            port.address = granted[0].request
            port.grant(granted[0].client, *granted[0].request)
            granted[0].request = None
        arrived = None
        if beat_now:
            arrived = port.expected.popleft()
            port.beat()
        if not any(c.left or c.request for c in clients) and not port.expected and not beat_now:
            break
    else:
        raise AssertionError("not every burst was answered")
    assert monitor.bursts["ar"] == 180
    assert monitor.stalled["ar"] > 20 or not slow


@cocotb.test()
async def a_bad_response_is_reported_once_per_beat(dut):
    rng = random_of("bad")
    memory = Memory(dut, "axi__", dut.clk, bytes(4096), rng, Mood())
    memory.read_fails = lambda number, address: number == 1
    limits = {"burst_bytes": burst_bytes(MACHINE), "reads": MACHINE.axi.outstanding_reads}
    monitor = Monitor(dut, "axi__", dut.clk, dut.rst, **limits)
    clients = [Requester(dut, client, rng, 1.0) for client in Client]
    for client in clients:
        client.offer()
    await start(dut)
    cocotb.start_soon(memory.run())
    cocotb.start_soon(monitor.run())
    failures = 0
    for _ in range(60):
        if not clients[2].request and clients[2].left > 57:
            clients[2].request, clients[2].left = (0, 2), clients[2].left - 1
        clients[2].offer()
        await RisingEdge(dut.clk)
        if clients[2].granted():
            clients[2].request = None
        failures += int(dut.failed.value)
    assert memory.read_bursts == monitor.bursts["ar"] == 3
    assert failures == 2
