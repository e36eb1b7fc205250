"""Devices for the runtime's tests: one that only records, and the judge."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.order import tokens_after
from vta_isa import Machine, decode_stream, load_machine
from vta_isa.launch import Launch, Timeline
from vta_runtime import ReferenceDevice, Runtime

MEMORY_BYTES = 1 << 20


def tokens_left(runtime: Runtime) -> tuple[int, int, int, int]:
    """What the launches of ``runtime``, which keeps its streams, left in the token queues."""
    tokens = (0, 0, 0, 0)
    for stream in runtime.streams:
        tokens = tokens_after(decode_stream(stream.words, runtime.machine), tokens)
    return tokens


class RecordingDevice:
    """Memory that is not mapped, and launches that do nothing but keep the stream.

    ``on_run``, where set, is called with the device in the place of an execution.
    """

    def __init__(self, machine: Machine, memory_bytes: int = MEMORY_BYTES, cycles: int = 0):
        self.machine = machine
        self.memory_bytes = memory_bytes
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.cycles = cycles
        self.tables: list[NDArray[np.void]] = []
        self.on_run: Callable[[RecordingDevice], None] | None = None

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        assert 0x1000 <= address <= address + data.size <= self.memory_bytes
        self.memory[address : address + data.size] = data

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        assert 0 <= address <= address + size <= self.memory_bytes
        return self.memory[address : address + size]

    def run(self, insn_address: int, insn_count: int) -> Launch:
        words = self.memory[insn_address : insn_address + 16 * insn_count]
        self.tables.append(decode_stream(words.copy(), self.machine))
        if self.on_run is not None:
            self.on_run(self)
        none = np.empty(0, np.int64)
        return Launch(self.cycles, {}, Timeline(none.astype(np.int8), none, none, none))


@pytest.fixture
def machine() -> Machine:
    return load_machine("default")


@pytest.fixture
def make_recorder() -> type[RecordingDevice]:
    return RecordingDevice


@pytest.fixture
def recorder(machine: Machine) -> RecordingDevice:
    return RecordingDevice(machine)


@pytest.fixture
def extended() -> Runtime:
    """On a machine with every extension."""
    return Runtime(RecordingDevice(load_machine("default-ext")))


@pytest.fixture
def runtime(recorder: RecordingDevice) -> Runtime:
    return Runtime(recorder)


@pytest.fixture(name="tokens_left")
def tokens_left_fixture() -> Callable[[Runtime], tuple[int, int, int, int]]:
    return tokens_left


@pytest.fixture
def judge(machine: Machine) -> Runtime:
    """A runtime on the reference device."""
    return Runtime(ReferenceDevice(machine, memory_bytes=MEMORY_BYTES), keep_streams=True)
