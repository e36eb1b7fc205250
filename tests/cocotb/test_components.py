"""Every component as Verilog in a second simulator: driver, monitor and reference apart."""

import pytest
from cocotb_bench import needs_cocotb, run_bench
from small_machines import machine_of

from vta_hw.alu import TensorAlu
from vta_hw.bursts import BurstSplitter
from vta_hw.csr import Csr
from vta_hw.fetch import Fetch
from vta_hw.gate import Gate
from vta_hw.gemm import GemmCore
from vta_hw.loader import Loader
from vta_hw.memory_port import ReadPort
from vta_hw.queue import Queue
from vta_hw.scratchpad import Geometry, Scratchpad
from vta_hw.store import Store
from vta_hw.tokens import TokenQueue
from vta_isa.enums import Buffer
from vta_isa.registers import register_map

pytestmark = needs_cocotb
both = pytest.mark.parametrize("machine", ["tiny", "odd"])


@pytest.mark.parametrize("depth", [1, 3])
def test_token_queue(depth):
    run_bench("bench_tokens", TokenQueue(depth), parameters={"depth": depth})


def test_queue():
    run_bench("bench_queue", Queue(16, 3), parameters={"depth": 3})


@pytest.mark.parametrize(
    ("machine", "buffer", "readers"), [("tiny", "ACC", 1), ("odd", "ACC", 2), ("odd", "INP", 1)]
)
def test_scratchpad(machine, buffer, readers):
    geometry = Geometry.of(machine_of(machine), Buffer[buffer])
    parameters = {"machine": machine, "buffer": buffer, "readers": readers}
    run_bench("bench_scratchpad", Scratchpad(geometry, readers), parameters=parameters)


@both
def test_burst_splitter(machine):
    component = BurstSplitter(machine_of(machine))
    run_bench("bench_bursts", component, parameters={"machine": machine})


@both
def test_fetch(machine):
    run_bench("bench_fetch", Fetch(machine_of(machine)), parameters={"machine": machine})


@pytest.mark.parametrize("machine", ["tiny", "odd", "long-bursts"])
def test_read_port(machine):
    run_bench("bench_read_port", ReadPort(machine_of(machine)), parameters={"machine": machine})


@pytest.mark.parametrize(
    ("machine", "memories"),
    [("tiny", ("INP", "WGT")), ("tiny", ("UOP", "ACC")), ("odd", ("UOP", "ACC"))],
)
def test_loader(machine, memories):
    built_for = machine_of(machine)
    geometries = tuple(Geometry.of(built_for, Buffer[name]) for name in memories)
    parameters = {"machine": machine, "memories": memories}
    run_bench("bench_loader", Loader(built_for, geometries), parameters=parameters)


@both
def test_gemm(machine):
    component = GemmCore(machine_of(machine))
    parameters = {"machine": machine, "latency": component.latency}
    run_bench("bench_gemm", component, parameters=parameters)


@pytest.mark.parametrize("machine", ["tiny", "odd", "requantize"])
def test_alu(machine):
    run_bench("bench_alu", TensorAlu(machine_of(machine)), parameters={"machine": machine})


@both
def test_store(machine):
    run_bench("bench_store", Store(machine_of(machine)), parameters={"machine": machine})


def test_registers():
    component = Csr(register_map(machine_of("odd")))
    run_bench("bench_csr", component, parameters={"machine": "odd"})


def test_gate():
    machine = machine_of("tiny")
    run_bench("bench_gate", Gate(machine), parameters={"machine": "tiny", "seeds": 10})
