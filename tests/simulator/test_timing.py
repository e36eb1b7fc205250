"""The timing engine against the judge that steps every register, on streams made at random."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from timing_judge import Judge
from timing_streams import random_stream

from simulator.timing import Timing, simulate
from vta_isa import counters
from vta_isa.errors import DeadlockError
from vta_isa.machine import Machine, load_machine

MACHINES = {
    "default": {},
    "no-latency": {"memory": {"read_latency": 1, "write_latency": 1}},
    "slow-memory": {"memory": {"read_latency": 100, "write_latency": 40}},
    "jitter": {"memory": {"read_latency": 7, "write_latency": 3, "jitter": 1}},
    "jitter-slow": {"memory": {"read_latency": 60, "jitter": 2**32 - 1}},
    "queues": {"queues": {"command": 2, "token": 1}, "memory": {"read_latency": 3}},
    "queues-1": {"queues": {"command": 1, "token": 3}, "memory": {"jitter": 5}},
    "bus-32": {"axi": {"data_bits": 32, "burst_beats": 16, "outstanding_reads": 2}},
    "bus-128": {"axi": {"data_bits": 128, "outstanding_reads": 3}, "alu": {"tensor_interval": 1}},
    "bus-256": {"axi": {"data_bits": 256, "burst_beats": 1, "outstanding_reads": 5}},
    "bus-512": {"axi": {"data_bits": 512, "burst_beats": 64}, "alu": {"tensor_interval": 5}},
    "bus-512-jitter": {"axi": {"data_bits": 512, "burst_beats": 2}, "memory": {"jitter": 9}},
    "one-read": {"axi": {"outstanding_reads": 1, "burst_beats": 8}, "memory": {"read_latency": 2}},
    "many-reads": {"axi": {"outstanding_reads": 64, "data_bits": 32}, "queues": {"token": 2}},
    "tiny": "tiny",
    "extended": {"extensions": {"gemm_overwrite": True, "alu_requantize": True}},
}
SMALL = {"uop": "1 KiB", "inp": "2 KiB", "wgt": "8 KiB", "acc": "8 KiB"}


def machine_of(name: str) -> Machine:
    description = MACHINES[name]
    if isinstance(description, str):
        return load_machine(description)
    return load_machine({"name": name, "sram": SMALL, **description})


def assert_same(timing: Timing, judge: Judge) -> None:
    line = timing.timeline
    for name in ("dispatch", "start", "end", "stage"):
        expected = [getattr(insn, name) for insn in judge.insns]
        np.testing.assert_array_equal(getattr(line, name), expected, err_msg=name)
    assert timing.cycles == judge.cycles
    assert timing.tokens == judge.tokens_left
    assert line.bursts is not None
    for field in dataclasses.fields(judge.bursts):
        got, expected = (getattr(b, field.name) for b in (line.bursts, judge.bursts))
        np.testing.assert_array_equal(got, expected, err_msg=f"bursts.{field.name}")
    attribution = counters.attribution(timing.counters)
    for stage, causes in attribution.items():
        # The judge stops when the last instruction ends, so its sum is the launch.
        assert sum(judge.causes[stage].values()) == judge.cycles
        assert {c: n for c, n in causes.items() if n} == dict(judge.causes[stage])


def compare(
    table: NDArray[np.void], machine: Machine, address: int, tokens: tuple[int, int, int, int]
) -> bool:
    """Engine and judge agree; whether the stream ran through."""
    judge = Judge(table, machine, insn_address=address, tokens=tokens).run()
    for compiled in (True, False):
        arguments = {"insn_address": address, "tokens": tokens, "compiled": compiled}
        if judge.deadlock:
            with pytest.raises(DeadlockError, match="the stream deadlocks; "):
                simulate(table, machine, **arguments)
        else:
            assert_same(simulate(table, machine, **arguments, record_bursts=True), judge)
            simulate(table, machine, **arguments)
    return not judge.deadlock


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", MACHINES)
def test_engine_agrees_with_the_cycle_stepped_judge(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    machine = machine_of(name)
    table = random_stream(rng, machine, size=int(rng.choice([1, 5, 20, 70])))
    address = 16 * int(rng.integers(0, 64))
    tokens = (0, 0, 0, 0)
    if seed % 3 == 0:
        tokens = tuple(int(n) for n in rng.integers(0, min(machine.queues.token, 4) + 1, 4))
    compare(table, machine, address, tokens)
