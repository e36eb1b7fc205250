"""When every instruction starts and ends, from docs/microarchitecture.md, event by event.

Everything but the read port is a matter of maxima: a stage starts an instruction in the cycle after
the last thing it waits for, however late we get round to computing it. So every stage runs ahead
until it needs a cycle that is not known yet. When all of them are stuck, the read port makes one
decision: whatever has not asked by then waits for that decision, directly or not, so it can only
ask later. Cost: one step per instruction and one per burst; idle cycles cost nothing.

Integers, flat arrays and loops only: numba compiles this source, and CPython runs it as it is (on
lists, which it indexes faster than arrays). A hot path, hence few objects. The plain version is
tests/lib/timing_judge.py, which steps every register cycle by cycle.
"""

from typing import Any

from vta_isa.microarch import (
    CHUNK_REQUEST,
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

from .decode import decode
from .layout import (
    ADDRESS,
    AFTER_NEXT,
    AFTER_PREV,
    ARRIVAL,
    ARRIVED,
    BEATS,
    BUSY_LOAD,
    BUSY_STORE,
    CAUSES,
    CHUNK_BEGIN,
    CHUNK_END,
    CLIENT_OF,
    CYCLES,
    DISPATCH,
    DISPATCHED,
    END,
    FETCH,
    FETCH_DRAM,
    FETCH_FULL,
    FETCH_GRANT,
    FLAGS,
    FREE,
    FROM_NEXT,
    FROM_PREV,
    HEAD,
    HELD,
    IDLE,
    INSN_FIELDS,
    KIND,
    LAST_BEAT,
    LAST_DISPATCH,
    LAST_GRANT,
    LEAVING,
    LOAD,
    LOADER,
    LOADING,
    NEVER,
    NEXT,
    PADS,
    PHASE,
    POP_NEXT,
    POP_PREV,
    POPPED,
    POSITION,
    PRESENT,
    PUSH_NEXT,
    PUSH_PREV,
    PUSHED,
    PUSHING,
    READ_BEATS,
    READ_BURSTS,
    READY,
    ROW_BYTES,
    ROW_END,
    ROW_START,
    ROWS,
    ROWS_LEFT,
    SENT,
    SPENT,
    STAGE,
    STAGE_OF,
    STALLED,
    START,
    STARTED,
    STORE,
    STORER,
    STRIDE_BYTES,
    TO_NEXT,
    TO_PREV,
    WAIT_DRAM,
    WAIT_FULL,
    WAIT_NEXT,
    WAIT_PREV,
    WAITING,
    WINDOW_BURST,
    WRITE_BEATS,
    WRITE_BURSTS,
    Rules,
)


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
    # Both are powers of two.
    boundary = (position | (rules.burst_bytes - 1)) + 1
    return min(boundary, ((row_end - 1) | (rules.bus_bytes - 1)) + 1)


def log_burst(
    bursts: Any,
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
    """Write one burst to the log: the fields of vta_isa.launch.Bursts."""
    at = 8 * number
    bursts[at] = stage
    bursts[at + 1] = insn
    bursts[at + 2] = address
    bursts[at + 3] = beats
    bursts[at + 4] = request
    bursts[at + 5] = issue
    bursts[at + 6] = first
    bursts[at + 7] = last


def begin_rows(
    client: int, present: int, address: int, row_bytes: int, rows: int, rules: Rules, state: Any
) -> None:
    """Let a client of the read port present the first burst of its first row."""
    state[PRESENT + client] = present
    state[POSITION + client] = address & -rules.bus_bytes
    state[ROW_START + client] = address
    state[ROW_END + client] = address + row_bytes
    state[ROWS_LEFT + client] = rows - 1
    state[BEATS + client] = 0


def request_chunk(insns: Any, rules: Rules, state: Any) -> bool:
    """Present the next chunk if one is left and its half of the buffer has been dispatched."""
    begin = state[CHUNK_END]
    if state[PRESENT + CLIENT_OF[FETCH]] != NEVER or begin == rules.insns:
        return False
    emptied = state[CHUNK_BEGIN]  # the chunk before the one requested last ends here
    if state[DISPATCHED] < emptied:
        return False
    present = rules.fetch_request
    if begin > 0:
        present = state[FETCH_GRANT] + CHUNK_REQUEST
    if emptied > 0:
        present = max(present, insns[(emptied - 1) * INSN_FIELDS + DISPATCH] + CHUNK_REQUEST)
    place = rules.insn_address // rules.insn_bytes + begin
    end = min(begin + rules.chunk_insns - place % rules.chunk_insns, rules.insns)
    state[CHUNK_BEGIN] = begin
    state[CHUNK_END] = end
    row_bytes = (end - begin) * rules.insn_bytes
    begin_rows(CLIENT_OF[FETCH], present, place * rules.insn_bytes, row_bytes, 1, rules, state)
    return True


def dispatch(insns: Any, rules: Rules, state: Any) -> bool:
    """Push instructions that have arrived into their command queues, in order, one per cycle."""
    before = state[DISPATCHED]
    number = before
    last = state[LAST_DISPATCH]
    while number < state[ARRIVED]:
        row = number * INSN_FIELDS
        stage = insns[row + STAGE]
        arrival = state[ARRIVAL + (number & (rules.buffer_insns - 1))]
        valid = max(last + 1, arrival + FETCH_WRITE)
        cycle = valid
        sent = state[SENT + stage]
        if sent >= rules.command_depth:
            if state[STARTED + stage] <= sent - rules.command_depth:
                break
            leaving = state[LEAVING + stage] * INSN_FIELDS
            state[LEAVING + stage] = insns[leaving + NEXT]
            cycle = max(valid, insns[leaving + START] + 1)
        state[SPENT + WAIT_DRAM] += valid - (last + 1)
        state[SPENT + WAIT_FULL] += cycle - valid
        insns[row + DISPATCH] = cycle
        insns[row + FETCH_DRAM] = valid - (last + 1)
        insns[row + FETCH_FULL] = cycle - valid
        state[SENT + stage] = sent + 1
        last = cycle
        number += 1
    state[DISPATCHED] = number
    state[LAST_DISPATCH] = last
    asked = request_chunk(insns, rules, state)
    return asked or number > before


def token_cycle(queue: int, rules: Rules, state: Any) -> int:
    """When the oldest token of the queue was pushed; NEVER if there is none."""
    popped = state[POPPED + queue]
    if popped == state[PUSHED + queue]:
        return NEVER
    slot = popped & (rules.token_ring - 1)
    return state[rules.push_cycle + queue * rules.token_ring + slot]  # type: ignore[no-any-return]


def pop_token(queue: int, cycle: int, rules: Rules, state: Any) -> None:
    """Take the oldest token of the queue."""
    slot = state[POPPED + queue] & (rules.token_ring - 1)
    state[rules.pop_cycle + queue * rules.token_ring + slot] = cycle
    state[POPPED + queue] += 1


def room_cycle(queue: int, rules: Rules, state: Any) -> int:
    """First cycle in which the queue has room for a token; NEVER if that is not known yet."""
    needed = state[PUSHED + queue] - rules.token_depth
    if needed < 0:
        return 0
    if state[POPPED + queue] <= needed:
        return NEVER
    slot = needed & (rules.token_ring - 1)
    return state[rules.pop_cycle + queue * rules.token_ring + slot] + 1  # type: ignore[no-any-return]


def push_token(queue: int, cycle: int, rules: Rules, state: Any) -> None:
    """Add a token to the queue."""
    slot = state[PUSHED + queue] & (rules.token_ring - 1)
    state[rules.push_cycle + queue * rules.token_ring + slot] = cycle
    state[PUSHED + queue] += 1


def write_bursts(number: int, insns: Any, rules: Rules, state: Any, bursts: Any) -> int:
    """Send every burst of a STORE; returns the cycle of the last B response.

    Data beats follow each other without gaps, whatever the rows, unless the memory stalls.
    """
    row = number * INSN_FIELDS
    start = insns[row + START]
    beat = state[WRITE_BEATS]
    burst = state[WRITE_BURSTS]
    last = start + STORE_DATA - 1
    issue = start + STORE_ADDRESS - 1
    last_before = 0  # last beat of the burst before the one before: WRITE_AHEAD is 2
    for y in range(insns[row + ROWS]):
        address = insns[row + ADDRESS] + y * insns[row + STRIDE_BYTES]
        row_end = address + insns[row + ROW_BYTES]
        position = address & -rules.bus_bytes
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
                place = state[READ_BURSTS] + burst
                log_burst(bursts, place, STORER, number, position, beats, issue, issue, first, last)
            beat += beats
            burst += 1
            position = end
    state[WRITE_BEATS] = beat
    state[WRITE_BURSTS] = burst
    return last + rules.write_latency  # type: ignore[no-any-return]


def start_cycle(stage: int, row: int, insns: Any, rules: Rules, state: Any) -> int:
    """When the stage starts its next instruction, tokens consumed; NEVER if not known yet."""
    flags = insns[row + FLAGS]
    prev_cycle = -1
    next_cycle = -1
    if flags & POP_PREV:
        prev_cycle = token_cycle(FROM_PREV[stage], rules, state)
    if flags & POP_NEXT:
        next_cycle = token_cycle(FROM_NEXT[stage], rules, state)
    if prev_cycle == NEVER or next_cycle == NEVER:
        return NEVER
    free = state[FREE + stage]
    valid = max(free, insns[row + DISPATCH] + 1)
    after_prev = max(valid, prev_cycle + 1)
    start = max(after_prev, next_cycle + 1)
    spent = SPENT + stage * CAUSES
    state[spent + IDLE] += valid - free
    state[spent + WAIT_PREV] += after_prev - valid
    state[spent + WAIT_NEXT] += start - after_prev
    insns[row + AFTER_PREV] = after_prev - valid
    insns[row + AFTER_NEXT] = start - after_prev
    if flags & POP_PREV:
        pop_token(FROM_PREV[stage], start, rules, state)
    if flags & POP_NEXT:
        pop_token(FROM_NEXT[stage], start, rules, state)
    return start  # type: ignore[no-any-return]


def finish(stage: int, row: int, insns: Any, rules: Rules, state: Any) -> bool:
    """End the instruction when its tokens have room; False if that is not known yet."""
    flags = insns[row + FLAGS]
    ready = state[READY + stage]
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
    insns[row + END] = end
    insns[row + HELD] = end - ready
    state[SPENT + stage * CAUSES + WAIT_FULL] += end - ready
    state[FREE + stage] = end + 1
    state[HEAD + stage] = insns[row + NEXT]
    state[PHASE + stage] = WAITING
    return True


def finish_load(stage: int, last: int, beats: int, insns: Any, state: Any) -> None:
    """All beats of a LOAD are granted, the last comes in cycle ``last`` (0 without any): the end.

    Padding is written in cycles without a data write. If it outlasts the data, every cycle from the
    first pad on held one write, so their number says when it is done.
    """
    row = state[HEAD + stage] * INSN_FIELDS
    start = insns[row + START]
    pads = insns[row + PADS]
    ready = last + LOAD_WRITE
    if pads > 0:
        ready = max(ready, start + PAD_FIRST + pads + beats - 1)
    busy = LOAD_SETUP + pads + beats
    spent = SPENT + stage * CAUSES
    state[spent + BUSY_LOAD] += busy
    state[spent + WAIT_DRAM] += ready - start + 1 - busy
    insns[row + STALLED] = ready - start + 1 - busy
    state[READY + stage] = ready
    state[PHASE + stage] = PUSHING


def execute(stage: int, number: int, insns: Any, rules: Rules, state: Any, bursts: Any) -> None:
    """Do the work of the instruction the stage has started; a LOAD with data waits for the port."""
    row = number * INSN_FIELDS
    start = insns[row + START]
    kind = insns[row + KIND]
    spent = SPENT + stage * CAUSES
    if kind == LOAD:
        rows = insns[row + ROWS]
        if rows > 0:
            address, row_bytes = insns[row + ADDRESS], insns[row + ROW_BYTES]
            present = start + LOAD_REQUEST
            begin_rows(CLIENT_OF[stage], present, address, row_bytes, rows, rules, state)
            state[PHASE + stage] = LOADING
        else:
            finish_load(stage, 0, 0, insns, state)
        return
    if kind == STORE:
        beats = state[WRITE_BEATS]
        ready = write_bursts(number, insns, rules, state, bursts) + STORE_RESPONSE
        busy = STORE_DATA + state[WRITE_BEATS] - beats
        state[spent + BUSY_STORE] += busy
        state[spent + WAIT_DRAM] += ready - start + 1 - busy
        insns[row + STALLED] = ready - start + 1 - busy
    else:
        cycles = insns[row + CYCLES]
        ready = start + cycles - 1
        state[spent + kind] += cycles
    state[READY + stage] = ready
    state[PHASE + stage] = PUSHING


def advance(stage: int, insns: Any, rules: Rules, state: Any, bursts: Any) -> bool:
    """Let a stage run ahead until it needs a cycle that is not known yet; True if it moved."""
    moved = False
    while state[PHASE + stage] != LOADING:
        number = state[HEAD + stage]
        if state[PHASE + stage] == PUSHING:
            if not finish(stage, number * INSN_FIELDS, insns, rules, state):
                break
        else:
            if state[STARTED + stage] == state[SENT + stage]:
                break
            start = start_cycle(stage, number * INSN_FIELDS, insns, rules, state)
            if start == NEVER:
                break
            insns[number * INSN_FIELDS + START] = start
            state[STARTED + stage] += 1
            execute(stage, number, insns, rules, state, bursts)
        moved = True
    return moved


def received(beat: int, rules: Rules, state: Any) -> int:
    """Cycle of a beat of the last ``outstanding`` bursts; of an older one, one before them."""
    if rules.jitter:
        return state[rules.beat_cycle + (beat & (rules.beat_ring - 1))]  # type: ignore[no-any-return]
    burst = max(state[WINDOW_BURST], state[READ_BURSTS] - rules.outstanding)
    slot = burst % rules.outstanding
    while True:
        first = state[rules.burst_first + slot]
        begin = state[rules.burst_begin + slot]
        if beat <= begin + state[rules.burst_last + slot] - first:
            break
        burst += 1
        slot += 1
        if slot == rules.outstanding:
            slot = 0
    state[WINDOW_BURST] = burst
    return first + beat - begin  # type: ignore[no-any-return]


def grant(insns: Any, rules: Rules, state: Any, bursts: Any) -> bool:
    """Grant one burst; True if it was the last of an instruction, or brings instructions."""
    number = state[READ_BURSTS]
    beat = state[READ_BEATS]
    slot = number % rules.outstanding
    cycle = state[LAST_GRANT] + 1
    if number >= rules.outstanding:
        cycle = max(cycle, state[rules.burst_last + slot] + 1)
    if beat >= rules.window:
        cycle = max(cycle, received(beat - rules.window, rules, state) + 1)
    cycle = max(cycle, min(state[PRESENT], state[PRESENT + 1], state[PRESENT + 2]))
    client = 0
    while state[PRESENT + client] > cycle:
        client += 1
    stage = STAGE_OF[client]

    position = state[POSITION + client]
    end = burst_end(position, state[ROW_END + client], rules)
    beats = (end - position) // rules.bus_bytes
    issue = cycle + GRANT_TO_ADDRESS
    first = max(issue + rules.read_latency, state[LAST_BEAT] + 1)
    last = first + beats - 1
    if rules.jitter:
        first += stall(rules.read_key, beat)
        last = first
        state[rules.beat_cycle + (beat & (rules.beat_ring - 1))] = first
        for later in range(beat + 1, beat + beats):
            last += 1 + stall(rules.read_key, later)
            state[rules.beat_cycle + (later & (rules.beat_ring - 1))] = last
    state[rules.burst_first + slot] = first
    state[rules.burst_last + slot] = last
    state[rules.burst_begin + slot] = beat
    state[LAST_GRANT] = cycle
    state[LAST_BEAT] = last
    state[READ_BURSTS] = number + 1
    state[READ_BEATS] = beat + beats
    state[BEATS + client] += beats
    state[POSITION + client] = end
    if rules.record_bursts:
        insn = state[CHUNK_BEGIN]
        if stage != FETCH:
            insn = state[HEAD + stage]
        request = state[PRESENT + client]
        place = number + state[WRITE_BURSTS]
        log_burst(bursts, place, stage, insn, position, beats, request, issue, first, last)

    row_done = end >= state[ROW_END + client]
    state[PRESENT + client] = cycle + 1
    if stage == FETCH:
        state[FETCH_GRANT] = cycle
        if row_done:
            state[PRESENT + client] = NEVER
        arrive(position, end, beat, first, rules, state)
        return True
    if not row_done:
        return False
    if state[ROWS_LEFT + client] > 0:
        row = state[HEAD + stage] * INSN_FIELDS
        row_start = state[ROW_START + client] + insns[row + STRIDE_BYTES]
        state[ROW_START + client] = row_start
        state[ROW_END + client] = row_start + insns[row + ROW_BYTES]
        state[POSITION + client] = row_start & -rules.bus_bytes
        state[ROWS_LEFT + client] -= 1
        return False
    state[PRESENT + client] = NEVER
    finish_load(stage, last, state[BEATS + client], insns, state)
    return True


def arrive(position: int, end: int, beat: int, first: int, rules: Rules, state: Any) -> None:
    """Note in which cycle each instruction that a burst of fetch completes has arrived.

    The burst holds bytes ``position`` to ``end``; its first beat is number ``beat``, in ``first``.
    """
    number = state[ARRIVED]
    behind = rules.insn_address + (number + 1) * rules.insn_bytes
    while number < state[CHUNK_END] and behind <= end:
        part = (behind - 1 - position) // rules.bus_bytes
        cycle = first + part
        if rules.jitter:
            cycle = state[rules.beat_cycle + ((beat + part) & (rules.beat_ring - 1))]
        state[ARRIVAL + (number & (rules.buffer_insns - 1))] = cycle
        number += 1
        behind += rules.insn_bytes
    state[ARRIVED] = number


def run(
    table: Any, words: Any, unit: Any, insns: Any, rules: Rules, state: Any, bursts: Any
) -> bool:
    """Run a launch; True if every instruction ended, False if the stages are deadlocked."""
    decode(table, words, unit, insns, rules, state)
    while True:
        moved = True
        while moved:
            moved = dispatch(insns, rules, state)
            for stage in range(LOADER, STORER + 1):
                if advance(stage, insns, rules, state, bursts):
                    moved = True
        if min(state[PRESENT], state[PRESENT + 1], state[PRESENT + 2]) == NEVER:
            break
        while not grant(insns, rules, state, bursts):
            pass
    ended = 0
    for stage in range(LOADER, STORER + 1):
        if state[PHASE + stage] == WAITING:
            ended += state[STARTED + stage]
    return bool(ended == rules.insns)


# What `run` calls: compiled with it.
PARTS = (
    decode,
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
    execute,
    advance,
    received,
    grant,
    arrive,
)
