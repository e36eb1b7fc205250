"""A trace, read back, says what the timelines it was made from say."""

import bisect
import io
import itertools
import math
from collections import Counter, defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from timing_streams import random_stream

pytest.importorskip("perfetto", reason="timelines need perfetto: pip install 'vta-sdk[report]'")

from perfetto_reader import ReadTrace, Slice, read_trace

from simulator.order import POPS, PUSHES
from simulator.timing import Timing, simulate
from vta.report.perfetto_trace import COUNTERS, TRACKS, WINDOW, TraceWriter
from vta_isa.assembly import format_stream
from vta_isa.counters import attribution
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer, Stage, TokenQueue
from vta_isa.errors import DeadlockError
from vta_isa.machine import Machine, load_machine

Launches = list[tuple[NDArray[np.void], Timing]]
SMALL = {"uop": "1 KiB", "inp": "2 KiB", "wgt": "8 KiB", "acc": "8 KiB"}
MACHINES = {
    "default": {},
    "jitter": {"memory": {"read_latency": 7, "write_latency": 3, "jitter": 1}},
    "queues": {"queues": {"command": 2, "token": 30}, "memory": {"read_latency": 3}},
    "bus-512": {"axi": {"data_bits": 512, "burst_beats": 2}, "memory": {"read_latency": 100}},
}


def machine_of(name: str) -> Machine:
    return load_machine({"name": name, "sram": SMALL, **MACHINES[name]})


def random_launches(seed: int, machine: Machine) -> Launches:
    """A few launches that hand each other tokens, the first of them short."""
    rng = np.random.default_rng(seed)
    print(f"seed {seed}")
    while True:
        launches: Launches = []
        tokens = (0, 0, 0, 0)
        try:
            for size in (1, *rng.integers(2, 60, size=3).tolist()):
                table = random_stream(rng, machine, size)
                timing = simulate(table, machine, tokens=tokens, record_bursts=True)
                launches.append((table, timing))
                tokens = timing.tokens
        except DeadlockError:  # tokens that were left may fill a queue for good
            continue
        return launches


def traced(launches: Launches, machine: Machine, folder: Path, layers: int = 1) -> ReadTrace:
    file = io.BytesIO()
    writer = TraceWriter(file, "a title")
    for layer in range(layers):
        pairs = [(encode_stream(table, machine), timing) for table, timing in launches]
        writer.layer(f"layer {layer}", machine, pairs, {"count": 3})
    (folder / "trace").write_bytes(file.getvalue())
    return read_trace(folder / "trace")


def begins(launches: Launches) -> list[int]:
    return list(itertools.accumulate((timing.cycles for _, timing in launches), initial=0))


@pytest.fixture(scope="module", params=itertools.product(MACHINES, range(3)), ids=str)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Machine, Launches, ReadTrace]:
    name, seed = request.param
    machine = machine_of(name)
    launches = random_launches(seed, machine)
    return machine, launches, traced(launches, machine, tmp_path_factory.mktemp("trace"))


def test_instructions_are_slices_with_their_assembly(case) -> None:
    machine, launches, trace = case
    expected = defaultdict(list)
    for (table, timing), base in zip(launches, begins(launches), strict=False):
        texts = format_stream(encode_stream(table, machine), machine, comments=False).splitlines()
        line = timing.timeline
        for insn, text in enumerate(texts):
            dispatch = base + int(line.dispatch[insn])
            expected["fetch"].append((insn, dispatch, dispatch + 1, text.split()[0]))
            start, end = base + int(line.start[insn]), base + int(line.end[insn]) + 1
            expected[Stage(line.stage[insn]).name.lower()].append((insn, start, end, text))
    for track in ("fetch", "load", "compute", "store"):
        got = [
            (
                each.arguments["insn"],
                each.begin,
                each.end,
                each.arguments.get("assembly", each.name),
            )
            for each in trace.slices[track]
            if each.category == "instruction"
        ]
        assert got == expected[track]


def test_arguments_are_the_fields_that_are_not_0(case) -> None:
    _, launches, trace = case
    (table, timing), *_ = launches[1:]
    begin, end = begins(launches)[1:3]
    shown = {
        each.arguments["insn"]: each.arguments
        for stage in ("load", "compute", "store")
        for each in trace.slices[stage]
        if each.category == "instruction" and begin <= each.begin < end
    }
    assert len(shown) == len(table)
    for insn, arguments in shown.items():
        assert arguments["dispatch"] == timing.timeline.dispatch[insn]
        for field in ("x_size", "y_size", "iter_out", "imm", "uop_end", "alu_op"):
            assert arguments.get(field, 0) == table[insn][field]
        assert "opcode" not in arguments


def test_gaps_are_waits_that_add_up_to_the_counters(case) -> None:
    _, launches, trace = case
    counted = Counter()
    for _, timing in launches:
        for stage, causes in attribution(timing.counters).items():
            for cause in ("wait_load", "wait_compute", "wait_store"):
                counted[stage, cause.replace("_", " for ")] += causes.get(cause, 0)
    shown = Counter()
    for track in ("load", "compute", "store"):
        assert all(each.level == 0 for each in trace.slices[track]), "slices inside each other"
        taken = sorted((each.begin, each.end) for each in trace.slices[track])
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(taken)), track
        for each in trace.slices[track]:
            if each.category == "wait":
                shown[track, each.name] += each.end - each.begin
    assert +shown == +counted


def tokens_in_time(launches: Launches) -> list[tuple[TokenQueue, tuple[int, int], tuple[int, int]]]:
    """Queue, pushing and popping instruction (launch, number) of each token, by stepping time."""
    events = []
    for number, ((table, timing), base) in enumerate(zip(launches, begins(launches), strict=False)):
        line = timing.timeline
        for insn in range(len(table)):
            stage = Stage(line.stage[insn])
            for order, wiring, when in ((0, POPS, line.start), (1, PUSHES, line.end)):
                for (owner, flag), queue in wiring.items():
                    if owner == stage and table[flag][insn]:
                        events.append((base + int(when[insn]), order, queue, (number, insn)))
    queues = defaultdict(deque)
    taken = []
    for _, order, queue, insn in sorted(events):  # a token pushed in a cycle is there in the next
        if order:
            queues[queue].append(insn)
        else:
            taken.append((queue, queues[queue].popleft(), insn))
    return sorted(taken)


def test_tokens_are_flows_from_who_pushes_to_who_pops(case) -> None:
    _, launches, trace = case
    edges = begins(launches)

    def place(each: Slice) -> tuple[int, int]:
        launch = int(np.searchsorted(edges, each.begin, side="right")) - 1
        return launch, each.arguments["insn"]

    pushers, poppers = {}, {}
    for track in ("load", "compute", "store"):
        for each in trace.slices[track]:
            for flow in each.flows:
                assert flow not in pushers, "a flow begins twice"
                pushers[flow] = track, place(each)
            for flow in each.ending_flows:
                assert flow not in poppers, "a flow ends twice"
                poppers[flow] = track, place(each)
    got = sorted(
        (
            TokenQueue[f"{pushers[flow][0]}_to_{track}".upper()],
            pushers[flow][1],
            insn,
        )
        for flow, (track, insn) in poppers.items()
    )
    assert got == tokens_in_time(launches)
    assert len(pushers) - len(poppers) == sum(launches[-1][1].tokens)


def test_bursts_are_slices_on_their_channel(case) -> None:
    machine, launches, trace = case
    expected = {"DRAM read": [], "DRAM write": []}
    for (table, timing), base in zip(launches, begins(launches), strict=False):
        bursts = timing.timeline.bursts
        for i, stage in enumerate(bursts.stage.tolist()):
            insn = int(bursts.insn[i])
            name = Buffer(table["buffer"][insn]).name.lower() if stage else "instructions"
            beats = int(bursts.beats[i])
            expected["DRAM write" if stage == Stage.STORE else "DRAM read"].append(
                (
                    name,
                    base + int(bursts.first[i]),
                    base + int(bursts.last[i]) + 1,
                    {
                        "insn": insn,
                        "address": int(bursts.address[i]),
                        "beats": beats,
                        "request": int(bursts.request[i]),
                        "issue": int(bursts.issue[i]),
                        "bytes": beats * machine.bus_bytes,
                    },
                )
            )
    for channel, rows in expected.items():
        got = [(each.name, each.begin, each.end, each.arguments) for each in trace.slices[channel]]
        assert got == rows


def held_in_cycle(samples: list[tuple[int, float]], cycle: int) -> float:
    """Samples of one cycle replace each other."""
    place = bisect.bisect_right(samples, cycle, key=lambda sample: sample[0])
    return samples[place - 1][1] if place else 0


def test_counters_are_what_a_look_at_every_cycle_finds(case) -> None:
    _, launches, trace = case
    left = dict.fromkeys(TokenQueue, 0)
    for (table, timing), base in zip(launches, begins(launches), strict=False):
        line, bursts = timing.timeline, timing.timeline.bursts
        for cycle in {*range(0, timing.cycles, 7), *(line.start + 1).tolist(), timing.cycles - 1}:
            if cycle >= timing.cycles:
                continue
            at = base + cycle
            for stage in Stage:
                mine = line.stage == stage
                count = (mine & (line.dispatch < cycle) & (cycle <= line.start)).sum()
                name = f"{stage.name.lower()} commands queued"
                assert held_in_cycle(trace.samples[name], at) == count
            for queue in TokenQueue:
                count = left[queue]
                for sign, wiring, when in ((1, PUSHES, line.end), (-1, POPS, line.start)):
                    owner, flag = next(key for key, value in wiring.items() if value == queue)
                    moved = (line.stage == owner) & (table[flag] != 0) & (when < cycle)
                    count += sign * int(moved.sum())
                name = f"tokens {queue.name.lower().replace('_', ' ')}"
                assert held_in_cycle(trace.samples[name], at) == count
            reads = bursts.stage != Stage.STORE
            count = (reads & (bursts.issue <= cycle) & (cycle <= bursts.last)).sum()
            assert held_in_cycle(trace.samples["DRAM read bursts outstanding"], at) == count
        left = dict(zip(TokenQueue, timing.tokens, strict=True))


def test_bandwidth_is_the_mean_of_each_window(case) -> None:
    machine, launches, trace = case
    for channel, writes in (("DRAM read", False), ("DRAM write", True)):
        samples = trace.samples[f"{channel} bandwidth"]
        for (_, timing), base in zip(launches, begins(launches), strict=False):
            bursts = timing.timeline.bursts
            moved = np.zeros(timing.cycles)
            for i in np.flatnonzero((bursts.stage == Stage.STORE) == writes):
                first, last = int(bursts.first[i]), int(bursts.last[i])
                moved[first : last + 1] += bursts.beats[i] * machine.bus_bytes / (last - first + 1)
            for begin in range(0, timing.cycles, WINDOW):
                mean = moved[begin : begin + WINDOW].mean()
                got = held_in_cycle(samples, base + begin)
                assert math.isclose(got, mean, abs_tol=2e-6), (channel, begin)


def test_layers_follow_each_other_on_the_same_tracks(tmp_path: Path) -> None:
    machine = machine_of("default")
    launches = random_launches(5, machine)
    trace = traced(launches, machine, tmp_path, layers=2)
    total = begins(launches)[-1]
    assert trace.process == "a title"
    assert trace.order == [*TRACKS, *COUNTERS]
    assert trace.units == COUNTERS
    layers = [each for each in trace.slices["layer"] if each.level == 0]
    assert [(each.name, each.begin, each.end) for each in layers] == [
        ("layer 0", 0, total),
        ("layer 1", total, 2 * total),
    ]
    assert layers[0].arguments == {"count": 3}
    inner = [each for each in trace.slices["layer"] if each.level == 1]
    assert [each.begin for each in inner[: len(launches)]] == begins(launches)[:-1]
    assert inner[0].arguments["cycles"] == launches[0][1].cycles
    for track in ("fetch", "load", "compute", "store", "DRAM read"):
        slices = trace.slices[track]
        half = len(slices) // 2
        assert [(a.name, a.begin + total) for a in slices[:half]] == [
            (b.name, b.begin) for b in slices[half:]
        ]
