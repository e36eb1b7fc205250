"""Where two records of the same launch differ: docs/exactness.md says what is compared."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.enums import Buffer, Stage
from vta_isa.launch import Bursts, Launch

BUFFERS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
INSN_EVENTS = ("dispatch", "start", "end")
BURST_FIELDS = tuple(f.name for f in fields(Bursts))
_BURST_CYCLES = ("request", "issue", "first", "last")
_BURST_DTYPE = np.dtype([(name, np.int64) for name in BURST_FIELDS])
_FETCH = 0

Timed = tuple[int, "Difference"]  # the cycle in which it can first be seen


@dataclass(frozen=True)
class Difference:
    """One thing about which simulator and RTL disagree."""

    what: str
    simulator: int | str
    rtl: int | str
    insn: int | None = None  # the instruction it is about
    around: str = ""  # that one and its neighbours: cycles on both sides, assembly

    def __str__(self) -> str:
        return f"{self.what}: simulator {self.simulator}, RTL {self.rtl}"

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("what", "simulator", "rtl", "insn")}


def timing_differences(simulated: Launch, measured: Launch) -> Iterator[Difference]:
    """In the order of time: instructions, bursts, causes; then cycles, then counters."""
    timed = [
        *_of_insns(simulated, measured),
        *_of_bursts(simulated, measured),
        *_of_places(simulated, measured),
    ]
    for _, difference in sorted(timed, key=lambda pair: pair[0]):
        yield difference
    if simulated.cycles != measured.cycles:
        yield Difference("cycles of the launch", simulated.cycles, measured.cycles)
    for name in sorted(simulated.counters.keys() | measured.counters.keys()):
        mine, theirs = (side.counters.get(name, "none") for side in (simulated, measured))
        if mine != theirs:
            yield Difference(f"counter {name}", mine, theirs)


def data_differences(
    images: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    memories: Mapping[Buffer, tuple[NDArray[np.integer], NDArray[np.integer]]],
) -> Iterator[Difference]:
    """The first byte of DRAM, and the first scalar of each memory; simulator's side first."""
    for address in np.flatnonzero(images[0] != images[1])[:1].tolist():
        mine, theirs = (int(image[address]) for image in images)
        yield Difference(f"DRAM byte {address:#x}", mine, theirs)
    for buffer, sides in memories.items():
        for place in np.argwhere(sides[0] != sides[1])[:1].tolist():
            entry, *scalar = place
            where = f", scalar {scalar}" if scalar else ""
            mine, theirs = (int(side[tuple(place)]) for side in sides)
            yield Difference(f"{buffer.name} memory, entry {entry}{where}", mine, theirs)


def _of_insns(simulated: Launch, measured: Launch) -> Iterator[Timed]:
    """The earliest difference of each kind of event."""
    left, right = simulated.timeline, measured.timeline
    for event in INSN_EVENTS:
        mine, theirs = getattr(left, event), getattr(right, event)
        wrong = np.flatnonzero(mine != theirs)
        if len(wrong):
            first = np.minimum(mine, theirs)[wrong]
            insn = int(wrong[np.argmin(first)])
            what = f"{event} of instruction {insn}"
            yield int(first.min()), Difference(what, int(mine[insn]), int(theirs[insn]), insn)
    for insn in np.flatnonzero(left.stage != right.stage)[:1].tolist():
        mine, theirs = (Stage(int(side.stage[insn])).name.lower() for side in (left, right))
        difference = Difference(f"stage of instruction {insn}", mine, theirs, insn)
        yield int(left.dispatch[insn]), difference


def _of_bursts(simulated: Launch, measured: Launch) -> Iterator[Timed]:
    """The first difference among the reads, and among the writes."""
    tables = [_burst_table(launch) for launch in (simulated, measured)]
    for kind, writes in (("read", False), ("write", True)):
        left, right = (table[(table["stage"] == Stage.STORE) == writes] for table in tables)
        common = min(len(left), len(right))
        wrong = np.flatnonzero(left[:common] != right[:common])
        if len(wrong):
            number = int(wrong[0])
            mine, theirs = left[number], right[number]
            name = next(name for name in BURST_FIELDS if mine[name] != theirs[name])
            difference = Difference(
                f"{name} of {kind} burst {number}, for {_served(mine)}",
                int(mine[name]),
                int(theirs[name]),
                int(mine["insn"]),
            )
            yield min(int(side[at]) for side in (mine, theirs) for at in _BURST_CYCLES), difference
        elif len(left) != len(right):
            extra = max(left, right, key=len)[common]
            difference = Difference(
                f"{kind} bursts in all; the first one missing is for {_served(extra)}",
                len(left),
                len(right),
                int(extra["insn"]),
            )
            yield int(extra["request"]), difference


def _of_places(simulated: Launch, measured: Launch) -> Iterator[Timed]:
    """The first instruction whose cycles were spent on something else, and on what."""
    left, right = simulated.timeline.places, measured.timeline.places
    assert left is not None, "a launch is compared with its places"
    assert right is not None, "a launch is compared with its places"
    mine, theirs = left.causes, right.causes
    for insn, column in np.argwhere(mine != theirs)[:1].tolist():
        name = CAUSE_COUNTERS[column]
        what = f"cycles that instruction {insn} is in {name}"
        difference = Difference(what, int(mine[insn, column]), int(theirs[insn, column]), insn)
        fetch = name.startswith("fetch")
        yield (
            int((simulated.timeline.dispatch if fetch else simulated.timeline.end)[insn]),
            difference,
        )


def _burst_table(launch: Launch) -> NDArray[np.void]:
    """``(m,)`` records of the bursts, which must have been recorded."""
    bursts = launch.timeline.bursts
    assert bursts is not None, "a launch is compared with its bursts"
    table = np.zeros(len(bursts.stage), dtype=_BURST_DTYPE)
    for name in BURST_FIELDS:
        table[name] = getattr(bursts, name)
    return table


def _served(burst: np.void) -> str:
    stage = int(burst["stage"])
    reader = "fetch from" if stage == _FETCH else f"{Stage(stage).name.lower()},"
    return f"{reader} instruction {burst['insn']} at byte {int(burst['address']):#x}"
