"""The monitors of the benches see what they are there to see. Needs no simulator."""

import pytest

pytest.importorskip("cocotb")

import sys
from pathlib import Path

# Behind tests/lib, which has modules of the same names as benches have.
sys.path.append(str(Path(__file__).parent))

from axi_lite_monitor import LiteMonitor
from axi_monitor import Monitor

BUS_BYTES = 4
BURST_BYTES = 64
READS = 2


class Wire:
    """A signal of a simulated design: ``value``, and a width."""

    def __init__(self, width: int = 32):
        self.width, self.value = width, 0

    def __len__(self) -> int:
        return self.width


class Wires:
    """Any signal, by its name; zero until it is driven, and in every cycle that does not say."""

    def __init__(self):
        self.wires: dict[str, Wire] = {}

    def __getattr__(self, name: str) -> Wire:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.wires.setdefault(name, Wire(8 * BUS_BYTES))

    def drive(self, values: dict[str, int]) -> None:
        for wire in self.wires.values():
            wire.value = 0
        for name, value in values.items():
            getattr(self, name).value = value


def seen(monitor, dut: Wires, *cycles: dict[str, int]):
    for cycle in cycles:
        dut.drive(cycle)
        monitor.step()
    return monitor


def master(*cycles: dict[str, int]) -> Monitor:
    """The monitor of a master, after these cycles."""
    dut = Wires()
    monitor = Monitor(dut, "", None, dut.rst, burst_bytes=BURST_BYTES, reads=READS)
    return seen(monitor, dut, *cycles)


def slave(*cycles: dict[str, int]) -> LiteMonitor:
    dut = Wires()
    return seen(LiteMonitor(dut, "", None, dut.rst), dut, *cycles)


def address(channel: str, place: int = 0, beats: int = 1, **more: int) -> dict[str, int]:
    values = {"valid": 1, "ready": 1, "addr": place, "len": beats - 1, "size": 2, "burst": 1}
    values |= {"cache": 0b1111, "prot": 0, **more}
    return {channel + name: value for name, value in values.items()}


READ, WRITE = address("ar", beats=2), address("aw", beats=2)
BEAT = {"rvalid": 1, "rready": 1, "rdata": 7}
LAST = BEAT | {"rlast": 1}
DATA = {"wvalid": 1, "wready": 1, "wdata": 1, "wstrb": 15}
LAST_DATA = DATA | {"wlast": 1}
ANSWER = {"bvalid": 1, "bready": 1}
RESET = {"rst": 1}
STUCK = {"arready": 0}


def test_what_is_right_passes_and_is_counted():
    reads = master(READ | STUCK, READ, BEAT, LAST | READ, BEAT, LAST)
    assert reads.quiet
    assert reads.bursts["ar"] == 2
    assert reads.beats["r"] == 4
    assert reads.stalled["ar"] == 1
    writes = master(WRITE, DATA | {"wready": 0}, DATA | WRITE, LAST_DATA, ANSWER | DATA, LAST_DATA)
    assert not writes.quiet
    writes = master(WRITE, DATA, LAST_DATA, ANSWER)
    assert writes.quiet
    assert writes.bursts["b"] == 1
    # After a reset nothing is owed.
    assert master(READ, BEAT, RESET, RESET, {}, READ, BEAT, LAST).quiet


@pytest.mark.parametrize(
    ("cycles", "says"),
    [
        ([READ | STUCK, {}], "ARVALID is withdrawn"),
        ([READ | STUCK, READ | {"araddr": 4}], "AR changes"),
        ([WRITE | {"awready": 0}, WRITE | {"awlen": 3}], "AW changes"),
        ([WRITE, DATA | {"wready": 0}, DATA | {"wstrb": 7}], "W changes"),
        ([address("ar", 2)], "not aligned"),
        ([address("ar", size=1)], "not as wide as the bus"),
        ([address("ar", burst=0)], "burst type 0"),
        ([address("ar", 4096 - 4, 2)], "crosses 4 KiB"),
        ([address("aw", BURST_BYTES - 4, 2)], f"crosses a multiple of {BURST_BYTES}"),
        ([address("ar", cache=0)], "cache"),
        ([address("aw", prot=4)], "prot"),
        ([READ, READ, READ], "3 reads at once"),
        ([DATA], "data before its address"),
        ([DATA | WRITE], "data before its address"),
        ([WRITE, LAST_DATA], "WLAST"),
        ([WRITE, DATA, DATA], "WLAST"),
        ([ANSWER], "data it does not have"),
        ([WRITE, DATA, ANSWER], "data it does not have"),
        ([BEAT], "nobody asked for"),
        ([READ, LAST], "RLAST"),
        ([READ, BEAT, BEAT], "RLAST"),
        ([RESET, RESET | READ], "ARVALID is high in reset"),
        ([RESET, RESET | {"wvalid": 1}], "WVALID is high in reset"),
    ],
)
def test_what_a_master_may_not_do(cycles, says):
    with pytest.raises(AssertionError, match=says):
        master(*cycles)


def test_a_register_needs_an_edge_to_be_reset():
    assert master(RESET | READ, RESET, {}).quiet


ASK = {"arvalid": 1, "arready": 1}
TOLD = {"rvalid": 1, "rready": 1, "rdata": 5}
PLACE, WORD = {"awvalid": 1, "awready": 1}, {"wvalid": 1, "wready": 1}


def test_a_slave_that_answers():
    monitor = slave(ASK | PLACE, TOLD | WORD, ANSWER | ASK, TOLD | {"rresp": 2})
    assert monitor.transfers == {"aw": 1, "w": 1, "ar": 2, "b": 1, "r": 2}
    assert slave(ASK, TOLD | {"rready": 0}, TOLD).transfers["r"] == 1


@pytest.mark.parametrize(
    ("cycles", "says"),
    [
        ([TOLD], "RVALID without a request"),
        ([ASK | TOLD], "RVALID without a request"),
        ([ASK, TOLD, TOLD], "RVALID without a request"),
        ([PLACE, ANSWER], "BVALID without a request"),
        ([WORD, ANSWER], "BVALID without a request"),
        ([ASK, TOLD | {"rready": 0}, {}], "RVALID is withdrawn"),
        ([ASK, TOLD | {"rready": 0}, TOLD | {"rdata": 6}], "R changes"),
        ([PLACE | WORD, ANSWER | {"bresp": 1}], "BRESP is 0b1"),
        ([ASK | {"arready": 0}, {}], "ARVALID is withdrawn"),
        ([RESET, RESET | TOLD], "RVALID is high in reset"),
        ([ASK, RESET, TOLD], "RVALID without a request"),
    ],
)
def test_what_a_slave_may_not_do(cycles, says):
    with pytest.raises(AssertionError, match=says):
        slave(*cycles)
