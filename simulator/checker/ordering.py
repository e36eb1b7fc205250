"""The other passes: an order in which a stream can run, and what it leaves unordered.

In the subset of Python that numba compiles, like footprints.py.
"""

from typing import Any

import numpy as np

from .layout import (
    BEHIND,
    CLEAR,
    COMBINE,
    COMPUTE,
    DRAIN,
    DRAM_RAW,
    DRAM_WAR,
    E_FIRST,
    E_HIGH,
    E_KIND,
    E_LOW,
    E_SECOND,
    EVENT_FIELDS,
    F_DST,
    F_SRC,
    F_WGT,
    FILL,
    FINISHES,
    FIRST,
    FOOTPRINT_FIELDS,
    KIND,
    LOAD_UNFINISHED,
    LOADER,
    MULTIPLY,
    NEVER_WRITTEN,
    PUSH,
    QUEUES,
    RAW,
    REPLACE,
    SHARED,
    STAGE,
    STAGES,
    STORE_UNFINISHED,
    STORER,
    TOKENS,
    UOPS,
    UOPS_STORED,
    WAR,
    Limits,
)


def in_program_order(info: Any, held: Any, limits: Limits) -> bool:
    """Whether one instruction after the other finds its tokens, and room for its own.

    Then no command queue can be too short, either. ``held`` are the tokens in the four queues; the
    numbers are used up.
    """
    for number in range(len(info)):
        tokens = info[number, TOKENS]
        if tokens:
            for queue in range(QUEUES):
                if tokens >> queue & 1:
                    if held[queue] == 0:
                        return False
                    held[queue] -= 1
            for queue in range(QUEUES):
                if tokens >> queue & PUSH:
                    if held[queue] >= limits.token_depth:
                        return False
                    held[queue] += 1
    return True


def schedule(info: Any, held: Any, limits: Limits, order: Any, state: Any) -> int:
    """Write an order in which the stream can run to ``order``; returns how far it comes.

    The stages are processes that meet in queues with one writer and one reader each, so whether
    they come to the end does not depend on how fast each of them is: one order decides for all.
    Fetch is such a process, too. Of the instructions that can start, the lowest number does.

    ``state``: per stage the instruction at its head (or the number of instructions), then per stage
    whether that has run and cannot push its tokens, then how many were dispatched.
    """
    total = len(info)
    following = np.full(total, total, dtype=np.int64)  # the next one of the same stage
    waiting = np.zeros(STAGES, dtype=np.int64)  # in its command queue
    last = np.full(STAGES, -1, dtype=np.int64)
    for stage in range(STAGES):
        state[stage] = total
        state[STAGES + stage] = 0
    for number in range(total):
        stage = info[number, STAGE]
        if last[stage] < 0:
            state[stage] = number
        else:
            following[last[stage]] = number
        last[stage] = number
    dispatched = 0
    done = 0
    progress = True
    while progress:
        progress = False
        while dispatched < total:
            stage = info[dispatched, STAGE]
            if waiting[stage] == limits.command_depth:
                break
            waiting[stage] += 1
            dispatched += 1
            progress = True
        for stage in range(STAGES):
            if state[STAGES + stage]:
                tokens = info[state[stage], TOKENS]
                room = True
                for queue in range(QUEUES):
                    if tokens >> queue & PUSH and held[queue] >= limits.token_depth:
                        room = False
                if room:
                    for queue in range(QUEUES):
                        if tokens >> queue & PUSH:
                            held[queue] += 1
                    state[STAGES + stage] = 0
                    state[stage] = following[state[stage]]
                    progress = True
        chosen = total
        for stage in range(STAGES):
            if waiting[stage] and not state[STAGES + stage] and state[stage] < chosen:
                tokens = info[state[stage], TOKENS]
                ready = True
                for queue in range(QUEUES):
                    if tokens >> queue & 1 and held[queue] == 0:
                        ready = False
                if ready:
                    chosen = state[stage]
        if chosen < total:
            stage = info[chosen, STAGE]
            for queue in range(QUEUES):
                if info[chosen, TOKENS] >> queue & 1:
                    held[queue] -= 1
            waiting[stage] -= 1
            state[STAGES + stage] = 1
            order[done] = chosen
            done += 1
            progress = True
    state[2 * STAGES] = dispatched
    return done


def note(events: Any, counts: Any, kind: int, second: int, first: int, low: int, high: int) -> None:
    """Add an event, to the one before where that is about the same; count those that do not fit."""
    at = counts[0] * EVENT_FIELDS
    if counts[0] > 0:
        before = at - EVENT_FIELDS
        if (
            events[before + E_KIND] == kind
            and events[before + E_SECOND] == second
            and events[before + E_FIRST] == first
            and events[before + E_HIGH] == low
        ):
            events[before + E_HIGH] = high
            return
    if at + EVENT_FIELDS > len(events):
        counts[1] += 1
        return
    events[at + E_KIND] = kind
    events[at + E_SECOND] = second
    events[at + E_FIRST] = first
    events[at + E_LOW] = low
    events[at + E_HIGH] = high
    counts[0] += 1


def follow(
    info: Any,
    order: Any,
    limits: Limits,
    held: Any,
    footprints: Any,
    intervals: Any,
    cell_of: Any,
    there: Any,
    writer: Any,
    shared_rows: Any,
    shared_cells: Any,
    dram_cells: int,
    events: Any,
    counts: Any,
) -> None:
    """Follow what every stage knows of the others, and note accesses that nothing orders.

    ``order`` is one in which the stream can run, or empty for program order. ``clock[s, t]`` is the
    last instruction of stage ``t``, counted from 1, that is surely done when stage ``s`` goes on. A
    token carries the clock of its stage. ``held`` tokens of earlier launches carry none.

    INP and WGT are written by load and read by compute; ACC is written by compute and read by store
    (OUT mirrors it); so one writer and one reader per cell say all: ``writer (cells,)`` and
    ``reader``, the last instruction that did, from 1. ``there (cells,)`` says what earlier
    launches wrote. ``shared_*`` are accesses to DRAM that is both stored and loaded (dram.py).
    """
    total = len(order) if len(order) else len(info)
    cells = len(writer)
    reader = np.zeros(cells, dtype=np.int64)
    dram_writer = np.zeros(dram_cells, dtype=np.int64)
    dram_reader = np.zeros((2, dram_cells), dtype=np.int64)  # by load, by compute
    clock = np.zeros((STAGES, STAGES), dtype=np.int64)
    ring = 4
    while ring < limits.token_depth + 2:
        ring *= 2
    carried = np.zeros((QUEUES, ring, STAGES), dtype=np.int64)
    head = np.zeros(QUEUES, dtype=np.int64)
    tail = np.zeros(QUEUES, dtype=np.int64)
    for queue in range(QUEUES):
        tail[queue] = held[queue]
    finished = False

    for step in range(total):
        number = order[step] if len(order) else step
        stage = info[number, STAGE]
        tokens = info[number, TOKENS]
        if tokens:
            for queue in range(QUEUES):
                if tokens >> queue & 1:
                    slot = head[queue] & (ring - 1)
                    head[queue] += 1
                    for other in range(STAGES):
                        clock[stage, other] = max(clock[stage, other], carried[queue, slot, other])
        kind = info[number, KIND]

        if info[number, SHARED] >= 0:
            row = info[number, SHARED]
            for part in range(shared_rows[row], shared_rows[row + 1]):
                for cell in range(shared_cells[2 * part], shared_cells[2 * part + 1]):
                    if kind == DRAIN:
                        for side in range(2):
                            past = dram_reader[side, cell]
                            if past > clock[STORER, side]:
                                note(events, counts, DRAM_WAR, number, past - 1, cell, cell + 1)
                        dram_writer[cell] = number + 1
                    else:
                        past = dram_writer[cell]
                        if past > clock[stage, STORER]:
                            note(events, counts, DRAM_RAW, number, past - 1, cell, cell + 1)
                        elif past and kind == UOPS:
                            note(events, counts, UOPS_STORED, number, past - 1, cell, cell + 1)
                        dram_reader[stage, cell] = number + 1

        if kind == FILL:
            readers = STORER if stage == COMPUTE else COMPUTE
            known = clock[stage, readers]
            for cell in range(cell_of[info[number, FIRST]], cell_of[info[number, BEHIND]]):
                if reader[cell] > known:
                    note(events, counts, WAR, number, reader[cell] - 1, cell, cell + 1)
                writer[cell] = number + 1
        elif kind == DRAIN:
            known = clock[STORER, COMPUTE]
            for cell in range(cell_of[info[number, FIRST]], cell_of[info[number, BEHIND]]):
                if writer[cell] > known:
                    note(events, counts, RAW, number, writer[cell] - 1, cell, cell + 1)
                elif writer[cell] == 0 and not there[cell]:
                    note(events, counts, NEVER_WRITTEN, number, -1, cell, cell + 1)
                    there[cell] = 1
                reader[cell] = number + 1
        elif kind == MULTIPLY or kind == REPLACE or kind == CLEAR or kind == COMBINE:
            row = info[number, FIRST] * FOOTPRINT_FIELDS
            # What it reads: src and wgt of a GEMM are written by load, src of an ALU by compute.
            if kind == MULTIPLY or kind == REPLACE:
                known = clock[COMPUTE, LOADER]
                for pair in range(footprints[row + F_SRC], footprints[row + F_WGT + 1], 2):
                    for cell in range(cell_of[intervals[pair]], cell_of[intervals[pair + 1]]):
                        if writer[cell] > known:
                            note(events, counts, RAW, number, writer[cell] - 1, cell, cell + 1)
                        elif writer[cell] == 0 and not there[cell]:
                            note(events, counts, NEVER_WRITTEN, number, -1, cell, cell + 1)
                            there[cell] = 1
                        reader[cell] = number + 1
            elif kind == COMBINE:
                for pair in range(footprints[row + F_SRC], footprints[row + F_WGT], 2):
                    for cell in range(cell_of[intervals[pair]], cell_of[intervals[pair + 1]]):
                        if writer[cell] == 0 and not there[cell]:
                            note(events, counts, NEVER_WRITTEN, number, -1, cell, cell + 1)
                            there[cell] = 1
            known = clock[COMPUTE, STORER]
            for pair in range(footprints[row + F_DST], footprints[row + F_SRC], 2):
                for cell in range(cell_of[intervals[pair]], cell_of[intervals[pair + 1]]):
                    reads = kind == MULTIPLY or kind == COMBINE
                    if reads and writer[cell] == 0 and not there[cell]:
                        note(events, counts, NEVER_WRITTEN, number, -1, cell, cell + 1)
                        there[cell] = 1
                    if reader[cell] > known:
                        note(events, counts, WAR, number, reader[cell] - 1, cell, cell + 1)
                    writer[cell] = number + 1
        elif kind == FINISHES and not finished:
            finished = True
            last_store = 0
            last_load = 0
            for earlier in range(number):
                if info[earlier, KIND] == DRAIN:
                    last_store = earlier + 1
                elif info[earlier, KIND] == FILL and info[earlier, STAGE] == LOADER:
                    last_load = earlier + 1
            if last_store > clock[COMPUTE, STORER]:
                note(events, counts, STORE_UNFINISHED, number, last_store - 1, 0, 0)
            if last_load > clock[COMPUTE, LOADER]:
                note(events, counts, LOAD_UNFINISHED, number, last_load - 1, 0, 0)

        clock[stage, stage] = number + 1
        if tokens >= PUSH:
            for queue in range(QUEUES):
                if tokens >> queue & PUSH:
                    slot = tail[queue] & (ring - 1)
                    tail[queue] += 1
                    for other in range(STAGES):
                        carried[queue, slot, other] = clock[stage, other]


PARTS = (in_program_order, schedule, note)
