"""The machine of docs/microarchitecture.md, stepped cycle by cycle: judge of simulator.timing.

Written from the page, section by section, for being obvious and not for being fast. Every part is a
generator that is resumed once per cycle. Parts see of each other only what happened in earlier
cycles (the page's "everything is registered"), so the order in which they are resumed does not
matter, with two exceptions that are wires: the memory, whose beat is registered in the same cycle,
comes first; the read port, which chooses among the requests of the current cycle, comes last.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vta_isa import microarch
from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode, Stage, TokenQueue
from vta_isa.launch import Bursts
from vta_isa.machine import Machine

INSN_BYTES = 16
CHUNK_BYTES = microarch.CHUNK_INSNS * INSN_BYTES
QUIET = 8  # cycles without anything under way: nothing will ever happen again

Part = Iterator[None]
# What the cycle is spent on, and whether it is the one in which the work is done (r).
Work = Iterator[tuple[str, bool]]


@dataclass
class Insn:
    """One instruction and what becomes of it."""

    number: int
    fields: dict[str, int]
    stage: Stage
    dispatch: int = -1
    start: int = -1
    end: int = -1


@dataclass
class Burst:
    """One burst; cycles are -1 until they happen."""

    stage: int  # 0 is fetch
    insn: int
    address: int
    beats: int
    request: int = -1
    grant: int = -1
    issue: int = -1
    on_bus: list[int] = field(default_factory=list)  # cycles of its beats

    @property
    def complete(self) -> bool:
        return len(self.on_bus) == self.beats


class Queue:
    """Section 3 and 4.2: what is pushed in t is there from t + 1, so is the place of a pop."""

    def __init__(self, depth: int, content: int = 0):
        self.depth = depth
        self.items: deque[tuple[int, Insn | None]] = deque([(-1, None)] * content)
        self.pops: list[int] = []
        self.pushes = [-1] * content

    def valid(self, t: int) -> bool:
        return bool(self.items) and self.items[0][0] < t

    def room(self, t: int) -> bool:
        held = sum(push < t for push in self.pushes) - sum(pop < t for pop in self.pops)
        return held < self.depth

    def push(self, t: int, item: Insn | None = None) -> None:
        assert self.room(t)
        self.items.append((t, item))
        self.pushes.append(t)

    def pop(self, t: int) -> Insn | None:
        assert self.valid(t)
        self.pops.append(t)
        return self.items.popleft()[1]


class Judge:
    """One launch of ``table`` on ``machine``; ``run`` first, then read the results."""

    def __init__(
        self,
        table: NDArray[np.void],
        machine: Machine,
        *,
        insn_address: int = 0,
        tokens: tuple[int, ...] = (0, 0, 0, 0),
    ):
        self.machine = machine
        self.insn_address = insn_address
        self.t = 0
        names = table.dtype.names
        self.insns = [
            Insn(i, fields, stage_of(fields))
            for i, row in enumerate(table)
            for fields in [{name: int(row[name]) for name in names}]
        ]
        self.commands = {stage: Queue(machine.queues.command) for stage in Stage}
        self.tokens = {q: Queue(machine.queues.token, tokens[q]) for q in TokenQueue}
        self.causes: dict[str, Counter[str]] = {
            name: Counter() for name in ("fetch", "load", "compute", "store")
        }
        self.requests: dict[int, Burst | None] = {Stage.COMPUTE: None, 0: None, Stage.LOAD: None}
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self.outstanding: list[Burst] = []  # reads granted and not complete before this cycle
        self.beat: Burst | None = None  # the read data on the bus in this cycle is of this burst
        self.read_beats = 0
        self.write_beats = 0
        self.executing = 0
        self.deadlock = False

    @property
    def cycles(self) -> int:
        return max(insn.end for insn in self.insns) + 1

    @property
    def tokens_left(self) -> tuple[int, ...]:
        return tuple(len(self.tokens[queue].items) for queue in TokenQueue)

    @property
    def bursts(self) -> Bursts:
        rows = [
            (b.stage, b.insn, b.address, b.beats, b.request, b.issue, b.on_bus[0], b.on_bus[-1])
            for b in self.reads + self.writes
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 8).T
        return Bursts(columns[0].astype(np.int8), *columns[1:])

    def run(self) -> "Judge":
        """Step until every instruction has ended, or until nothing can happen any more."""
        parts: list[Part] = [self.read_memory(), self.fetch()]
        parts += [self.stage(stage) for stage in Stage]
        parts += [self.read_port()]
        quiet = 0
        while any(insn.end < 0 for insn in self.insns):
            self.executing = 0
            for part in parts:
                next(part)
            busy = self.executing or self.outstanding
            quiet = 0 if busy or any(self.requests.values()) else quiet + 1
            if quiet > QUIET:
                self.deadlock = True
                break
            self.t += 1
        return self

    # ---- section 2 ------------------------------------------------------------------------------

    def fetch(self) -> Part:
        """Request chunks and dispatch instructions, both at once."""
        last = self.insn_address + INSN_BYTES * len(self.insns)
        chunks: list[list[Insn]] = []
        for insn in self.insns:
            address = self.insn_address + INSN_BYTES * insn.number
            if not chunks or address % CHUNK_BYTES == 0:
                chunks.append([])
            chunks[-1].append(insn)
        asked: list[list[Burst]] = []  # per chunk, its bursts
        waiting = deque(self.insns)

        while True:
            t = self.t
            k = len(asked)
            if k < len(chunks) and t >= microarch.FETCH_REQUEST:
                seen = t - microarch.CHUNK_REQUEST  # the last cycle that may decide
                granted = k < 1 or all(0 <= b.grant <= seen for b in asked[k - 1])
                emptied = k < 2 or 0 <= chunks[k - 2][-1].dispatch <= seen
                if granted and emptied:
                    begin = self.insn_address + INSN_BYTES * chunks[k][0].number
                    end = min((begin // CHUNK_BYTES + 1) * CHUNK_BYTES, last)
                    first = chunks[k][0].number
                    asked.append(self.bursts_of_row(0, first, begin, end - begin))
            self.present(0, [burst for bursts in asked for burst in bursts])

            if not waiting:
                self.causes["fetch"]["idle"] += 1
            else:
                insn = waiting[0]
                behind = self.insn_address + INSN_BYTES * (insn.number + 1)
                beat = self.cycle_of_byte(behind - 1, [b for bursts in asked for b in bursts])
                if beat is None or t < beat + microarch.FETCH_WRITE:
                    self.causes["fetch"]["wait_dram"] += 1
                elif not self.commands[insn.stage].room(t):
                    self.causes["fetch"]["wait_queue_full"] += 1
                else:
                    self.causes["fetch"]["busy"] += 1
                    self.commands[insn.stage].push(t, insn)
                    insn.dispatch = t
                    waiting.popleft()
                    self.executing += 1
            yield

    def cycle_of_byte(self, address: int, bursts: list[Burst]) -> int | None:
        for burst in bursts:
            beat = (address - burst.address) // self.machine.bus_bytes
            if 0 <= beat < burst.beats:
                return burst.on_bus[beat] if beat < len(burst.on_bus) else None
        return None

    # ---- section 4 ------------------------------------------------------------------------------

    def stage(self, stage: Stage) -> Part:
        """Start, execute and end instructions; say what each cycle is spent on."""
        causes = self.causes[stage.name.lower()]
        commands = self.commands[stage]
        while True:
            while not commands.valid(self.t):
                causes["idle"] += 1
                yield
            insn = commands.items[0][1]
            assert insn is not None
            pop_prev, pop_next = self.queues(insn, "pop")
            while True:
                if pop_prev is not None and not self.tokens[pop_prev].valid(self.t):
                    causes[f"wait_{before(stage)}"] += 1
                elif pop_next is not None and not self.tokens[pop_next].valid(self.t):
                    causes[f"wait_{behind(stage)}"] += 1
                else:
                    break
                yield
            commands.pop(self.t)
            for queue in (pop_prev, pop_next):
                if queue is not None:
                    self.tokens[queue].pop(self.t)
            insn.start = self.t

            for cause, done in self.work(insn):
                self.executing += 1
                causes[cause] += 1
                if done:
                    break
                yield
            pushes = [queue for queue in self.queues(insn, "push") if queue is not None]
            while not all(self.tokens[queue].room(self.t) for queue in pushes):
                yield
                causes["wait_token_full"] += 1
            for queue in pushes:
                self.tokens[queue].push(self.t)
            insn.end = self.t
            yield

    def queues(self, insn: Insn, verb: str) -> list[TokenQueue | None]:
        """The queues its flags name, towards the stage before and the one behind."""
        wiring = {
            ("pop", Stage.LOAD): (None, TokenQueue.COMPUTE_TO_LOAD),
            ("push", Stage.LOAD): (None, TokenQueue.LOAD_TO_COMPUTE),
            ("pop", Stage.COMPUTE): (TokenQueue.LOAD_TO_COMPUTE, TokenQueue.STORE_TO_COMPUTE),
            ("push", Stage.COMPUTE): (TokenQueue.COMPUTE_TO_LOAD, TokenQueue.COMPUTE_TO_STORE),
            ("pop", Stage.STORE): (TokenQueue.COMPUTE_TO_STORE, None),
            ("push", Stage.STORE): (TokenQueue.STORE_TO_COMPUTE, None),
        }
        return [
            queue if insn.fields[f"{verb}_{side}"] else None
            for queue, side in zip(wiring[verb, insn.stage], ("prev", "next"), strict=True)
        ]

    def work(self, insn: Insn) -> Work:
        """Resumed once per cycle from s to r."""
        f = insn.fields
        memory = f["opcode"] in (Opcode.LOAD, Opcode.STORE)
        if f["opcode"] in (Opcode.GEMM, Opcode.ALU):
            uops = range(f["uop_begin"], f["uop_end"])
            iterations = f["iter_out"] * f["iter_in"] * len(uops)
            if iterations:
                return self.pipeline(insn, iterations)
        elif memory and f["x_size"] and self.rows(insn):
            return self.load(insn) if f["opcode"] == Opcode.LOAD else self.store(insn)
        other = "busy_other" if insn.stage == Stage.COMPUTE else "busy"
        return ((other, left == 0) for left in reversed(range(microarch.NOOP_CYCLES)))

    def rows(self, insn: Insn) -> int:
        f = insn.fields
        padding = f["y_pad_before"] + f["y_pad_after"] if f["opcode"] == Opcode.LOAD else 0
        return f["y_size"] + padding

    # ---- section 5 ------------------------------------------------------------------------------

    def load(self, insn: Insn) -> Work:
        f = insn.fields
        busy = "busy_load" if insn.stage == Stage.COMPUTE else "busy"
        width = f["x_pad_before"] + f["x_size"] + f["x_pad_after"]
        pads = width * self.rows(insn) - f["x_size"] * f["y_size"]
        bursts = self.bursts_of(insn)
        data = sum(burst.beats for burst in bursts)
        bus_register = rotated = False  # a beat is in this register
        s = self.t
        while True:
            t = self.t
            if t >= s + microarch.LOAD_REQUEST:
                self.present(insn.stage, bursts)
            write_data = rotated
            write_pad = not write_data and pads > 0 and t >= s + microarch.PAD_FIRST
            data -= write_data
            pads -= write_pad
            done = data == 0 and pads == 0
            setup = t < s + microarch.LOAD_SETUP
            beat = self.beat is not None and self.beat.insn == insn.number
            beat = beat and self.beat.stage == insn.stage
            yield (busy if setup or write_data or write_pad else "wait_dram"), done
            rotated = bus_register
            bus_register = beat

    # ---- section 6 ------------------------------------------------------------------------------

    def pipeline(self, insn: Insn, iterations: int) -> Work:
        is_alu = insn.fields["opcode"] == Opcode.ALU
        fused = is_alu and insn.fields["alu_op"] == FusedOp.REQUANTIZE
        immediate = insn.fields["use_imm"]
        tree = [f"TREE{level}" for level in range(microarch.adder_tree(self.machine))]
        steps = ["UOP_READ", "INDEX_ADD", "SRAM_READ", "SRAM_READ"]
        interval = issued_in = 1  # in the last cycle of every interval
        if fused:
            steps += ["BIAS", "SHIFT", "CLIP"]
            if not immediate:
                iterations += insn.fields["iter_out"]  # one reads the bias, before the others
        elif is_alu and insn.fields["alu_op"] == AluOp.MUL:
            turns = range(0, self.machine.gemm.batch * self.machine.gemm.block_out, 2)
            steps += [f"LANES{first}" for first in turns] + ["OPERANDS", "PARTIAL", "SUM"]
            interval = 1 + len(steps) - 4  # nothing overlaps with the ACC read of its operands
            issued_in = 2
        elif is_alu:
            steps += ["EXECUTE"]
            if not immediate:
                interval = issued_in = self.machine.alu.tensor_interval
        else:
            steps += ["MULTIPLY", *tree, "ACCUMULATE"]
        steps += ["WRITE"]
        cause = "busy_alu" if is_alu else "busy_gemm"
        yield cause, False  # s: decode
        stages = [False] * len(steps)  # an iteration is in this step
        left = iterations
        phase = 0
        while True:
            phase += 1
            issue = left > 0 and phase == issued_in
            if phase == interval:
                phase = 0
            stages = [issue, *stages[:-1]]
            left -= issue
            yield cause, left == 0 and not any(stages[:-1])

    # ---- section 7 ------------------------------------------------------------------------------

    def present(self, client: int, bursts: list[Burst]) -> None:
        """Present the first burst that has not been granted, if there is none presented."""
        if self.requests[client] is not None:
            return
        for burst in bursts:
            if burst.grant < 0:
                burst.request = self.t
                self.requests[client] = burst
                return

    def read_port(self) -> Part:
        while True:
            t = self.t
            still = [b for b in self.outstanding if not (b.complete and b.on_bus[-1] < t)]
            beats = sum(b.beats - sum(beat < t for beat in b.on_bus) for b in still)
            few_bursts = len(still) < self.machine.axi.outstanding_reads
            self.outstanding = still
            if few_bursts and beats < microarch.read_window(self.machine):
                for client, burst in self.requests.items():  # in falling priority
                    if burst is not None:
                        burst.grant = t
                        burst.issue = t + microarch.GRANT_TO_ADDRESS
                        self.reads.append(burst)
                        self.outstanding.append(burst)
                        self.requests[client] = None
                        break
            yield

    # ---- section 8 ------------------------------------------------------------------------------

    def bursts_of(self, insn: Insn) -> list[Burst]:
        f = insn.fields
        buffer = Buffer.OUT if f["opcode"] == Opcode.STORE else Buffer(f["buffer"])
        unit = self.machine.entry_bytes(buffer)
        return [
            burst
            for y in range(f["y_size"])
            for burst in self.bursts_of_row(
                insn.stage,
                insn.number,
                (f["dram_base"] + y * f["x_stride"]) * unit,
                f["x_size"] * unit,
            )
        ]

    def bursts_of_row(self, stage: int, number: int, address: int, size: int) -> list[Burst]:
        """The beats that hold its bytes, cut at every boundary."""
        bus = self.machine.bus_bytes
        cut = min(microarch.PAGE_BYTES, self.machine.axi.burst_beats * bus)
        bursts: list[Burst] = []
        for beat in range(address // bus, (address + size - 1) // bus + 1):
            if not bursts or beat * bus % cut == 0:
                bursts.append(Burst(stage, number, beat * bus, 0))
            bursts[-1].beats += 1
        return bursts

    # ---- section 9 ------------------------------------------------------------------------------

    def store(self, insn: Insn) -> Work:
        s = self.t
        bursts = self.bursts_of(insn)
        addressed: list[Burst] = []
        data = deque(burst for burst in bursts for _ in range(burst.beats))
        stalled: int | None = None  # cycles the beat on the bus still has to wait
        while True:
            t = self.t
            if t >= s + microarch.STORE_ADDRESS and len(addressed) < len(bursts):
                ahead = [b for b in addressed if not (b.complete and b.on_bus[-1] < t)]
                if len(ahead) < microarch.WRITE_AHEAD:
                    burst = bursts[len(addressed)]
                    burst.request = burst.issue = t
                    addressed.append(burst)
                    self.writes.append(burst)
            transferred = False
            if t >= s + microarch.STORE_DATA and data:
                assert data[0].issue < t, "data never waits for its address"
                if stalled is None:
                    stalled = self.stall(microarch.WRITE_CHANNEL, self.write_beats)
                if stalled == 0:
                    transferred = True
                    data.popleft().on_bus.append(t)
                    self.write_beats += 1
                    stalled = None
                else:
                    stalled -= 1
            done = False
            if not data:
                response = bursts[-1].on_bus[-1] + self.machine.memory.write_latency
                done = t == response + microarch.STORE_RESPONSE
            busy = t < s + microarch.STORE_DATA or transferred
            yield ("busy" if busy else "wait_dram"), done

    # ---- section 10 -----------------------------------------------------------------------------

    def stall(self, channel: int, beat: int) -> int:
        seed = self.machine.memory.jitter
        if seed is None:
            return 0
        return microarch.jitter_stall(microarch.jitter_key(seed, channel), beat)

    def read_memory(self) -> Part:
        """Put at most one beat on the bus per cycle, in the order of the AR handshakes."""
        stalled: int | None = None
        while True:
            self.beat = None
            for burst in self.outstanding:
                if burst.complete:
                    continue
                if self.t >= burst.issue + self.machine.memory.read_latency:
                    if stalled is None:
                        stalled = self.stall(microarch.READ_CHANNEL, self.read_beats)
                    if stalled == 0:
                        burst.on_bus.append(self.t)
                        self.beat = burst
                        self.read_beats += 1
                        stalled = None
                    else:
                        stalled -= 1
                break
            yield


def stage_of(fields: dict[str, int]) -> Stage:
    if fields["opcode"] == Opcode.STORE:
        return Stage.STORE
    if fields["opcode"] == Opcode.LOAD and fields["buffer"] in (Buffer.INP, Buffer.WGT):
        return Stage.LOAD
    return Stage.COMPUTE


def before(stage: Stage) -> str:
    return Stage(stage - 1).name.lower()


def behind(stage: Stage) -> str:
    return Stage(stage + 1).name.lower()
