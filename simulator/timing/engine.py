"""When every instruction starts and ends, from docs/microarchitecture.md, event by event.

Everything but the read port is a matter of maxima: a stage starts an instruction in the cycle after
the last thing it waits for, however late we get round to computing it. So every stage runs ahead
until it needs a time that is not known yet, and when all of them are stuck, the read port makes one
decision: since whatever has not asked by then waits for that decision, directly or not, it can only
ask later. Cost: one step per instruction and one per burst; idle cycles cost nothing.

Integers, arrays of integers and loops only: numba compiles this source, and CPython runs it as it
is (on lists, which it indexes faster). A hot path, hence long functions and no objects. The plain
version is tests/lib/timing_judge.py, which steps every register cycle by cycle.
"""

from typing import Any, NamedTuple

from vta_isa.microarch import (
    FETCH_WRITE,
    GRANT_TO_ADDRESS,
    LOAD_REQUEST,
    LOAD_SETUP,
    LOAD_WRITE,
    PAD_FIRST,
    STORE_ADDRESS,
    STORE_DATA,
    STORE_RESPONSE,
)

from .columns import LOAD, POP_NEXT, POP_PREV, PUSH_NEXT, PUSH_PREV, STORE, Columns

NEVER = 1 << 62

# Stages are numbered as in vta_isa.enums.Stage, fetch is 0.
FETCH, LOADER, COMPUTE, STORER = range(4)

# The token queue behind each flag, by stage (vta_isa.enums.TokenQueue); -1 where there is none.
FROM_PREV = (-1, -1, 0, 2)
FROM_NEXT = (-1, 1, 3, -1)
TO_PREV = (-1, -1, 1, 3)
TO_NEXT = (-1, 0, 2, -1)

# Clients of the read port in falling priority, and whose they are.
CLIENTS = 3
STAGE_OF = (COMPUTE, FETCH, LOADER)
CLIENT_OF = (1, 2, 0, -1)  # by stage

# What a cycle was spent on; the first four are indexed by the kind of instruction.
# fmt: off
BUSY_OTHER, BUSY_GEMM, BUSY_ALU, BUSY_LOAD, BUSY_STORE = range(5)
WAIT_DRAM, WAIT_PREV, WAIT_NEXT, WAIT_FULL, IDLE, CAUSES = range(5, 11)
# fmt: on

# Phases of a stage.
WAITING, LOADING, PUSHING = range(3)

# Scalars that change, kept in one array.
# fmt: off
(
    DISPATCHED, LAST_DISPATCH,          # instructions dispatched, cycle of the last of them
    ARRIVED,                            # instructions whose arrival is known
    CHUNK_BEGIN, CHUNK_END,             # instructions of the chunk requested last
    LAST_GRANT, LAST_BEAT,              # cycles, on the read port; -1 before the first
    READ_BURSTS, READ_BEATS,            # granted so far
    WINDOW_BURST,                       # burst that holds the beat that opens the window
    WRITE_BURSTS, WRITE_BEATS,
    FETCH_GRANT,                        # cycle of fetch's last grant
    SCALARS,
) = range(14)
# fmt: on


class Rules(NamedTuple):
    """The machine, the memory and the launch, in numbers."""

    insns: int
    insn_address: int  # bytes, a multiple of INSN_BYTES
    insn_bytes: int
    chunk_insns: int
    buffer_insns: int  # a power of two
    fetch_request: int
    command_depth: int
    token_depth: int
    token_ring: int  # a power of two, at least token_depth
    bus_bytes: int
    burst_bytes: int
    outstanding: int
    window: int
    read_latency: int
    write_latency: int
    jitter: int  # 1 if there is any
    read_key: int
    write_key: int
    beat_ring: int  # a power of two, at least the window and the longest burst
    record_bursts: int  # 1 to fill the burst log


class Log(NamedTuple):
    """Results, and the bursts in flight as far as somebody may still ask for them."""

    dispatch: Any  # (n,) cycles
    start: Any
    end: Any
    spent: Any  # (4 * CAUSES,) cycles by stage and cause
    bursts: Any  # 8 numbers per burst: the fields of vta_isa.launch.Bursts


class State(NamedTuple):
    """Everything that changes while the engine runs."""

    scalars: Any  # (SCALARS,)
    order: Any  # (n,) instruction numbers, by stage
    first: Any  # (5,) where each stage's part of `order` begins
    sent: Any  # (4,) instructions dispatched to each stage
    started: Any  # (4,) instructions each stage has started
    phase: Any  # (4,)
    free: Any  # (4,) first cycle in which the stage can start its next instruction
    ready: Any  # (4,) when PUSHING: first cycle in which the tokens could be pushed
    pushed: Any  # (4,) tokens ever pushed to each queue, leftovers of earlier launches included
    popped: Any  # (4,)
    push_cycle: Any  # (4 * token_ring,)
    pop_cycle: Any  # (4 * token_ring,)
    arrival: Any  # (buffer_insns,) cycle of the beat that completes the instruction
    present: Any  # (CLIENTS,) first cycle in which the request is presented, NEVER without one
    position: Any  # (CLIENTS,) byte address of the next burst
    row_end: Any  # (CLIENTS,) byte address behind the row, not rounded
    rows_left: Any  # (CLIENTS,) after the one in progress
    row_start: Any  # (CLIENTS,) byte address of the row in progress
    client_beats: Any  # (CLIENTS,) beats requested for the instruction so far
    burst_first: Any  # (outstanding,) ring: cycle of the first beat
    burst_last: Any  # (outstanding,) ring: cycle of the last beat
    burst_begin: Any  # (outstanding,) ring: number of the first beat
    beat_cycle: Any  # (beat_ring,) ring, with jitter only


def stall(key: int, beat: int) -> int:
    """vta_isa.microarch.jitter_stall, for compilation."""
    x = (key ^ beat) & 0xFFFFFFFF
    x ^= x >> 16
    x = (x * 0x21F0AAAD) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 0x735A2D97) & 0xFFFFFFFF
    x ^= x >> 15
    if x & 7:
        return 0
    return 1 + (x >> 3 & 7)


def burst_end(position: int, row_end: int, rules: Rules) -> int:
    """Byte address behind the burst that begins at ``position``, rounded up to the bus."""
    boundary = (position // rules.burst_bytes + 1) * rules.burst_bytes
    bus = rules.bus_bytes
    return min(boundary, (row_end + bus - 1) // bus * bus)


def log_burst(
    log: Log,
    number: int,
    stage: int,
    insn: int,
    address: int,
    beats: int,
    request: int,
    issue: int,
    first: int,
    last: int,
) -> None:
    """Write one burst to the log."""
    at = 8 * number
    log.bursts[at] = stage
    log.bursts[at + 1] = insn
    log.bursts[at + 2] = address
    log.bursts[at + 3] = beats
    log.bursts[at + 4] = request
    log.bursts[at + 5] = issue
    log.bursts[at + 6] = first
    log.bursts[at + 7] = last


def begin_rows(
    client: int, present: int, address: int, row_bytes: int, rows: int, rules: Rules, state: State
) -> None:
    """Let a client of the read port present the first burst of its first row."""
    state.present[client] = present
    state.row_start[client] = address
    state.position[client] = address // rules.bus_bytes * rules.bus_bytes
    state.row_end[client] = address + row_bytes
    state.rows_left[client] = rows - 1
    state.client_beats[client] = 0


def request_chunk(rules: Rules, log: Log, state: State) -> bool:
    """Present the next chunk if one is left and its half of the buffer has been dispatched."""
    scalars = state.scalars
    begin = scalars[CHUNK_END]
    if state.present[CLIENT_OF[FETCH]] != NEVER or begin == rules.insns:
        return False
    emptied = scalars[CHUNK_BEGIN]  # the chunk before the one requested last ends here
    if scalars[DISPATCHED] < emptied:
        return False
    present = rules.fetch_request
    if begin > 0:
        present = scalars[FETCH_GRANT] + 1
    if emptied > 0:
        present = max(present, log.dispatch[emptied - 1] + 1)
    place = rules.insn_address // rules.insn_bytes + begin
    end = min(begin + rules.chunk_insns - place % rules.chunk_insns, rules.insns)
    scalars[CHUNK_BEGIN] = begin
    scalars[CHUNK_END] = end
    address = place * rules.insn_bytes
    row_bytes = (end - begin) * rules.insn_bytes
    begin_rows(CLIENT_OF[FETCH], present, address, row_bytes, 1, rules, state)
    return True


def dispatch(columns: Columns, rules: Rules, log: Log, state: State) -> bool:
    """Push instructions that have arrived into their command queues, in order, one per cycle."""
    scalars = state.scalars
    number = scalars[DISPATCHED]
    before = number
    last = scalars[LAST_DISPATCH]
    wait_dram = 0
    wait_full = 0
    while number < scalars[ARRIVED]:
        stage = columns.stage[number]
        arrival = state.arrival[number & (rules.buffer_insns - 1)] + FETCH_WRITE
        valid = max(last + 1, arrival)
        cycle = valid
        leaving = state.sent[stage] - rules.command_depth
        if leaving >= 0:
            if state.started[stage] <= leaving:
                break
            left = log.start[state.order[state.first[stage] + leaving]]
            cycle = max(valid, left + 1)
        wait_dram += valid - (last + 1)
        wait_full += cycle - valid
        log.dispatch[number] = cycle
        state.sent[stage] += 1
        last = cycle
        number += 1
    scalars[DISPATCHED] = number
    scalars[LAST_DISPATCH] = last
    log.spent[WAIT_DRAM] += wait_dram
    log.spent[WAIT_FULL] += wait_full
    asked = request_chunk(rules, log, state)
    return asked or number > before


def token_cycle(queue: int, rules: Rules, state: State) -> int:
    """When the oldest token of the queue was pushed; NEVER if there is none."""
    if state.popped[queue] == state.pushed[queue]:
        return NEVER
    return state.push_cycle[queue * rules.token_ring + (state.popped[queue] & (rules.token_ring - 1))]


def pop_token(queue: int, cycle: int, rules: Rules, state: State) -> None:
    """Take the oldest token of the queue."""
    slot = state.popped[queue] & (rules.token_ring - 1)
    state.pop_cycle[queue * rules.token_ring + slot] = cycle
    state.popped[queue] += 1


def room_cycle(queue: int, rules: Rules, state: State) -> int:
    """First cycle in which the queue has room for a token; NEVER if that is not known yet."""
    needed = state.pushed[queue] - rules.token_depth
    if needed < 0:
        return 0
    if state.popped[queue] <= needed:
        return NEVER
    return state.pop_cycle[queue * rules.token_ring + (needed & (rules.token_ring - 1))] + 1


def push_token(queue: int, cycle: int, rules: Rules, state: State) -> None:
    """Add a token to the queue."""
    slot = state.pushed[queue] & (rules.token_ring - 1)
    state.push_cycle[queue * rules.token_ring + slot] = cycle
    state.pushed[queue] += 1


def write_bursts(number: int, start: int, columns: Columns, rules: Rules, log: Log, state: State) -> int:
    """Send every burst of a STORE; returns the cycle of the last B response.

    Data beats follow each other without gaps, whatever the rows, unless the memory stalls.
    """
    scalars = state.scalars
    beats_before = scalars[WRITE_BEATS]
    beat = beats_before
    burst = scalars[WRITE_BURSTS]
    last = start + STORE_DATA - 1
    issue = start + STORE_ADDRESS - 1
    last_before = 0  # last beat of the burst before the one before: WRITE_AHEAD is 2
    for row in range(columns.rows[number]):
        address = columns.address[number] + row * columns.stride_bytes[number]
        row_end = address + columns.row_bytes[number]
        position = address // rules.bus_bytes * rules.bus_bytes
        while position < row_end:
            end = burst_end(position, row_end, rules)
            beats = (end - position) // rules.bus_bytes
            issue = max(issue, last_before) + 1
            last_before = last
            first = last + 1
            if rules.jitter:
                first += stall(rules.write_key, beat)
                last = first
                for later in range(beat + 1, beat + beats):
                    last += 1 + stall(rules.write_key, later)
            else:
                last += beats
            if rules.record_bursts:
                place = scalars[READ_BURSTS] + burst
                log_burst(log, place, STORER, number, position, beats, issue, issue, first, last)
            beat += beats
            burst += 1
            position = end
    scalars[WRITE_BEATS] = beat
    scalars[WRITE_BURSTS] = burst
    return last + rules.write_latency


def start_cycle(stage: int, number: int, columns: Columns, rules: Rules, log: Log, state: State) -> int:
    """When the stage starts its next instruction, tokens consumed; NEVER if not known yet."""
    flags = columns.flags[number]
    prev_cycle = -1
    next_cycle = -1
    if flags & POP_PREV:
        prev_cycle = token_cycle(FROM_PREV[stage], rules, state)
    if flags & POP_NEXT:
        next_cycle = token_cycle(FROM_NEXT[stage], rules, state)
    if prev_cycle == NEVER or next_cycle == NEVER:
        return NEVER
    free = state.free[stage]
    valid = max(free, log.dispatch[number] + 1)
    after_prev = max(valid, prev_cycle + 1)
    start = max(after_prev, next_cycle + 1)
    spent = stage * CAUSES
    log.spent[spent + IDLE] += valid - free
    log.spent[spent + WAIT_PREV] += after_prev - valid
    log.spent[spent + WAIT_NEXT] += start - after_prev
    if flags & POP_PREV:
        pop_token(FROM_PREV[stage], start, rules, state)
    if flags & POP_NEXT:
        pop_token(FROM_NEXT[stage], start, rules, state)
    return start


def finish(stage: int, number: int, rules: Rules, columns: Columns, log: Log, state: State) -> bool:
    """End the instruction when its tokens have room; False if that is not known yet."""
    flags = columns.flags[number]
    ready = state.ready[stage]
    end = ready
    if flags & PUSH_PREV:
        end = max(end, room_cycle(TO_PREV[stage], rules, state))
    if flags & PUSH_NEXT:
        end = max(end, room_cycle(TO_NEXT[stage], rules, state))
    if end == NEVER:
        return False
    if flags & PUSH_PREV:
        push_token(TO_PREV[stage], end, rules, state)
    if flags & PUSH_NEXT:
        push_token(TO_NEXT[stage], end, rules, state)
    log.end[number] = end
    log.spent[stage * CAUSES + WAIT_FULL] += end - ready
    state.free[stage] = end + 1
    state.phase[stage] = WAITING
    return True


def finish_load(
    stage: int, last: int, beats: int, columns: Columns, log: Log, state: State
) -> None:
    """All beats of a LOAD are granted, the last comes in cycle ``last`` (0 without any): the end.

    Padding is written in cycles without a data write. If it outlasts the data, every cycle from the
    first pad on held one write, so their number says when it is done.
    """
    number = state.order[state.first[stage] + state.started[stage] - 1]
    start = log.start[number]
    pads = columns.pads[number]
    ready = last + LOAD_WRITE
    if pads > 0:
        ready = max(ready, start + PAD_FIRST + pads + beats - 1)
    busy = LOAD_SETUP + pads + beats
    log.spent[stage * CAUSES + BUSY_LOAD] += busy
    log.spent[stage * CAUSES + WAIT_DRAM] += ready - start + 1 - busy
    state.ready[stage] = ready
    state.phase[stage] = PUSHING


def advance(stage: int, columns: Columns, rules: Rules, log: Log, state: State) -> bool:
    """Let a stage run ahead until it needs a cycle that is not known yet."""
    moved = False
    while True:
        if state.phase[stage] == LOADING:
            return moved
        if state.phase[stage] == PUSHING:
            number = state.order[state.first[stage] + state.started[stage] - 1]
            if not finish(stage, number, rules, columns, log, state):
                return moved
            moved = True
        if state.started[stage] == state.sent[stage]:
            return moved
        number = state.order[state.first[stage] + state.started[stage]]
        start = start_cycle(stage, number, columns, rules, log, state)
        if start == NEVER:
            return moved
        moved = True
        state.started[stage] += 1
        log.start[number] = start
        kind = columns.kind[number]
        if kind == LOAD:
            if columns.rows[number] > 0:
                state.phase[stage] = LOADING
                begin_rows(
                    CLIENT_OF[stage],
                    start + LOAD_REQUEST,
                    columns.address[number],
                    columns.row_bytes[number],
                    columns.rows[number],
                    rules,
                    state,
                )
            else:
                finish_load(stage, 0, 0, columns, log, state)
        elif kind == STORE:
            scalars = state.scalars
            beats = scalars[WRITE_BEATS]
            response = write_bursts(number, start, columns, rules, log, state)
            busy = STORE_DATA + scalars[WRITE_BEATS] - beats
            ready = response + STORE_RESPONSE
            log.spent[stage * CAUSES + BUSY_STORE] += busy
            log.spent[stage * CAUSES + WAIT_DRAM] += ready - start + 1 - busy
            state.ready[stage] = ready
            state.phase[stage] = PUSHING
        else:
            cycles = columns.cycles[number]
            log.spent[stage * CAUSES + kind] += cycles
            state.ready[stage] = start + cycles - 1
            state.phase[stage] = PUSHING


def beat_cycle(beat: int, rules: Rules, state: State) -> int:
    """Cycle of a beat that is not older than the last ``outstanding`` bursts; -1 if it is."""
    if rules.jitter:
        return state.beat_cycle[beat & (rules.beat_ring - 1)]
    scalars = state.scalars
    burst = max(scalars[WINDOW_BURST], scalars[READ_BURSTS] - rules.outstanding)
    slot = burst % rules.outstanding
    while state.burst_begin[slot] + state.burst_last[slot] - state.burst_first[slot] < beat:
        burst += 1
        slot += 1
        if slot == rules.outstanding:
            slot = 0
    scalars[WINDOW_BURST] = burst
    return state.burst_first[slot] + beat - state.burst_begin[slot]


def grant(columns: Columns, rules: Rules, log: Log, state: State) -> bool:
    """Grant one burst; True if that was the last of an instruction, or brought instructions."""
    scalars = state.scalars
    number = scalars[READ_BURSTS]
    slot = number % rules.outstanding
    cycle = scalars[LAST_GRANT] + 1
    if number >= rules.outstanding:
        cycle = max(cycle, state.burst_last[slot] + 1)
    beat = scalars[READ_BEATS]
    if beat >= rules.window:
        cycle = max(cycle, beat_cycle(beat - rules.window, rules, state) + 1)

    present = state.present
    cycle = max(cycle, min(present[0], present[1], present[2]))
    client = 0
    while present[client] > cycle:
        client += 1

    position = state.position[client]
    end = burst_end(position, state.row_end[client], rules)
    beats = (end - position) // rules.bus_bytes
    issue = cycle + GRANT_TO_ADDRESS
    first = max(issue + rules.read_latency, scalars[LAST_BEAT] + 1)
    last = first + beats - 1
    if rules.jitter:
        first += stall(rules.read_key, beat)
        last = first
        state.beat_cycle[beat & (rules.beat_ring - 1)] = first
        for later in range(beat + 1, beat + beats):
            last += 1 + stall(rules.read_key, later)
            state.beat_cycle[later & (rules.beat_ring - 1)] = last
    state.burst_first[slot] = first
    state.burst_last[slot] = last
    state.burst_begin[slot] = beat
    scalars[LAST_GRANT] = cycle
    scalars[LAST_BEAT] = last
    scalars[READ_BURSTS] = number + 1
    scalars[READ_BEATS] = beat + beats
    stage = STAGE_OF[client]
    if rules.record_bursts:
        insn = scalars[CHUNK_BEGIN]
        if stage != FETCH:
            insn = state.order[state.first[stage] + state.started[stage] - 1]
        place = number + scalars[WRITE_BURSTS]
        asked = present[client]
        log_burst(log, place, stage, insn, position, beats, asked, issue, first, last)

    present[client] = cycle + 1
    state.client_beats[client] += beats
    state.position[client] = end
    if stage == FETCH:
        scalars[FETCH_GRANT] = cycle
        arrived = scalars[ARRIVED]
        behind = rules.insn_address + (arrived + 1) * rules.insn_bytes
        while arrived < scalars[CHUNK_END] and behind <= end:
            part = (behind - 1 - position) // rules.bus_bytes
            arrival = first + part
            if rules.jitter:
                arrival = state.beat_cycle[(beat + part) & (rules.beat_ring - 1)]
            state.arrival[arrived & (rules.buffer_insns - 1)] = arrival
            arrived += 1
            behind += rules.insn_bytes
        scalars[ARRIVED] = arrived
        if end >= state.row_end[client]:
            present[client] = NEVER
        return True
    if end < state.row_end[client]:
        return False
    if state.rows_left[client] > 0:
        number = state.order[state.first[stage] + state.started[stage] - 1]
        row_start = state.row_start[client] + columns.stride_bytes[number]
        state.row_start[client] = row_start
        state.row_end[client] = row_start + columns.row_bytes[number]
        state.position[client] = row_start // rules.bus_bytes * rules.bus_bytes
        state.rows_left[client] -= 1
        return False
    present[client] = NEVER
    finish_load(stage, last, state.client_beats[client], columns, log, state)
    return True


def run(columns: Columns, rules: Rules, log: Log, state: State) -> bool:
    """Run the launch; True if every instruction ended, False if the stages are deadlocked."""
    present = state.present
    while True:
        moved = True
        while moved:
            moved = dispatch(columns, rules, log, state)
            for stage in range(LOADER, STORER + 1):
                if advance(stage, columns, rules, log, state):
                    moved = True
        if min(present[0], present[1], present[2]) == NEVER:
            break
        while not grant(columns, rules, log, state):
            pass
    for stage in range(LOADER, STORER + 1):
        if state.phase[stage] != WAITING:
            return False
        if state.first[stage] + state.started[stage] != state.first[stage + 1]:
            return False
    return True


# What `run` calls: these are compiled with it.
PARTS = (
    stall,
    burst_end,
    log_burst,
    begin_rows,
    request_chunk,
    dispatch,
    token_cycle,
    pop_token,
    room_cycle,
    push_token,
    write_bursts,
    start_cycle,
    finish,
    finish_load,
    advance,
    beat_cycle,
    grant,
)
