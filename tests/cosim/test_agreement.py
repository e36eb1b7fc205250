"""Simulator and RTL agree: a sample of what `make exact` runs, on the machines of tests/hw."""

import machines
import numpy as np
import pytest
import rtl_machines
from programs import random_program
from rtl_checks import needs_compiler

import vta
from simulator.timing import simulate
from vta.cli.main import main
from vta.cosimulation import MEMORIES, with_memory
from vta.lockstep import Lockstep
from vta_isa.encoding import encode_stream
from vta_isa.enums import Stage
from vta_isa.insn import finish, noop, records
from vta_runtime import Device, MappedDevice
from vta_runtime.devices.rtl import RtlDevice

pytestmark = needs_compiler

PRODUCT = {"layers": [{"name": "product", "kind": "dense", "m": 3, "n": 13, "k": 21}]}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_random_programs(name, memory, seed):
    machine = with_memory(rtl_machines.machine(name), memory, seed)
    rng = np.random.default_rng([seed, 9])
    program = random_program(rng, machine)
    run = Lockstep(machine).launch(program.stream, program.dram, 16 * int(rng.integers(64)))
    assert run.difference is None, f"{run.difference}\n{run.difference.around}"
    assert run.rtl.timeline.bursts is not None
    assert run.rtl.counters == run.simulator.counters


def test_memories_and_tokens_stay_from_launch_to_launch():
    tiny = machines.machine("tiny")
    pair = Lockstep(tiny)
    left = encode_stream(records([noop(Stage.LOAD, push_next=True), finish()]), tiny)
    taken = encode_stream(records([finish(pop_prev=True)]), tiny)
    dram = np.zeros(64, dtype=np.uint8)
    for stream in (left, taken, left, left, taken, taken):
        run = pair.launch(stream, dram)
        assert run.difference is None, run.difference
        assert not run.deadlocked
    run = pair.launch(taken, dram)
    assert run.deadlocked
    assert run.difference is None


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_compiled_layer(memory):
    result = vta.cosim(PRODUCT, machines.machine("tiny"), memory=memory, seed=4)
    assert result.agrees, result
    assert result.total("bursts") > 0


def test_a_network_runs_on_the_rtl():
    tiny = machines.machine("tiny")
    simulated, measured = (vta.run(PRODUCT, tiny, device=name) for name in ("simulator", "rtl"))
    assert measured.device == "rtl"
    assert measured.total == simulated.total


def test_the_device_is_one():
    device = RtlDevice(machines.machine("tiny"), memory_bytes=1 << 16)
    assert isinstance(device, Device)
    assert isinstance(device, MappedDevice)
    data = np.arange(100, dtype=np.uint8)
    device.write(4096, data)
    np.testing.assert_array_equal(device.read(4096, 100), data)
    assert device.host_address(4097) - device.host_address(4096) == 1
    table = records([finish()])
    device.write(8192, encode_stream(table, device.machine).reshape(-1).view(np.uint8))
    assert device.run(8192, 1).cycles == simulate(table, device.machine, insn_address=8192).cycles


ON_RTL = ("-c", "tiny", "--device", "rtl")


@pytest.mark.slow
def test_waves_of_a_window_of_cycles(tmp_path):
    tiny = machines.machine("tiny")
    stream = encode_stream(records([finish()]), tiny)
    plain = Lockstep(tiny)
    shown = Lockstep(tiny, waves=(tmp_path / "w.vcd", 5, tiny.memory.read_latency + 10))
    dram = np.zeros(64, dtype=np.uint8)
    for _ in range(2):
        cycles = [pair.launch(stream, dram).rtl.cycles for pair in (plain, shown)]
        assert cycles[0] == cycles[1]
    shown.close()
    text = (tmp_path / "w.vcd").read_text()
    times = [int(line[1:]) for line in text.splitlines() if line.startswith("#")]
    # Two units of time per cycle; the window reaches two cycles into the second launch.
    assert (times[0], times[-1]) == (10, 2 * (tiny.memory.read_latency + 10) - 1)
    assert times == sorted(set(times))
    assert "trace_start" in text


@pytest.mark.slow
def test_waves_of_a_layer_that_runs_on_the_rtl(tmp_path, capsys):
    file = tmp_path / "w.vcd"
    assert main(["run", "vector-add/ragged", *ON_RTL, "--waves", str(file)]) == 0
    whole = [line for line in file.read_text().splitlines() if line.startswith("#")]
    cycles = vta.run("vector-add/ragged", "tiny", device="rtl").total.cycles
    assert whole == [f"#{time}" for time in range(2 * cycles)]
    window = [*ON_RTL, "--waves", str(file), "--cycles", "100:110"]
    assert main(["run", "vector-add/ragged", *window]) == 0
    part = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert part == whole[200:220]
