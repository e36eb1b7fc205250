"""Fetch against a list: every instruction once, in order, to its queue, in its cycle.

The driver grants bursts and brings their data when it likes; the model says in which cycle what
has arrived is offered, and in which the next chunk is asked for.
"""

from collections import deque
from dataclasses import dataclass
from random import Random

import cocotb
from cocotb.triggers import RisingEdge
from packed import unpack
from small_machines import machine_of
from support import drive, parameters, random_of, sample, start

from vta_hw.bursts import burst_layout
from vta_hw.fetch import Lane
from vta_isa.encoding import encode_stream
from vta_isa.enums import AluOp, Buffer, Stage
from vta_isa.insn import INSN_BYTES, alu, finish, gemm, load, noop, records, store
from vta_isa.microarch import CHUNK_INSNS, CHUNK_REQUEST, burst_bytes

MACHINE = machine_of(parameters()["machine"])
BUS = MACHINE.bus_bytes
BURST = burst_layout(MACHINE)
LANE = {Stage.LOAD: Lane.LOAD, Stage.COMPUTE: Lane.COMPUTE, Stage.STORE: Lane.STORE}
PATIENCE = 20_000  # cycles until a launch hangs


def kinds() -> list[tuple[dict, Lane]]:
    """Every kind of instruction and where it belongs."""
    place = {"sram_base": 1, "dram_base": 2, "x_size": 3}
    compute = [load(buffer, **place) for buffer in (Buffer.UOP, Buffer.ACC, Buffer.ACC_8BIT)]
    compute += [gemm(uops=(0, 1)), finish(), *(alu(op, uops=(0, 1), imm=-1) for op in AluOp)]
    insns = [(insn, Lane.COMPUTE) for insn in compute]
    insns += [(load(buffer, **place), Lane.LOAD) for buffer in (Buffer.INP, Buffer.WGT)]
    insns += [(store(**place), Lane.STORE)]
    return insns + [(noop(stage, push_next=True), LANE[stage]) for stage in Stage]


@dataclass(frozen=True)
class Chunk:
    """Instructions ``first`` .. ``end`` - 1 of the stream, and the bursts that bring them."""

    first: int
    end: int
    bursts: list[tuple[int, int]]  # (address, beats)


def chunks(address: int, count: int) -> list[Chunk]:
    """The stream cut at every CHUNK_INSNS-th instruction slot of memory, beat by beat."""
    found, first = [], 0
    while first < count:
        slot = address // INSN_BYTES + first
        end = min(count, first + CHUNK_INSNS - slot % CHUNK_INSNS)
        begin, behind = (address + number * INSN_BYTES for number in (first, end))
        bursts: list[tuple[int, int]] = []
        for beat in range(begin // BUS * BUS, behind, BUS):
            if not bursts or beat % burst_bytes(MACHINE) == 0:
                bursts.append((beat, 0))
            bursts[-1] = bursts[-1][0], bursts[-1][1] + 1
        found.append(Chunk(first, end, bursts))
        first = end
    return found


class Model:
    """What fetch shows in a cycle, from what happened in the cycles before."""

    def __init__(self, address: int, count: int):
        self.address, self.count = address, count
        self.chunks = chunks(address, count)
        self.dispatched = 0
        self.asked = 0  # chunks whose bursts are all granted
        self.bursts: deque[tuple[int, int]] = deque()  # of the chunk being asked for
        self.stock = 0  # bytes of the stream written into the buffer
        self._ask()

    def _ask(self) -> None:
        """The next chunk, if it may be asked for by now."""
        if self.bursts or self.asked == len(self.chunks):
            return
        emptied = self.chunks[self.asked - 2].end if self.asked >= 2 else 0
        if self.dispatched >= emptied:
            self.bursts.extend(self.chunks[self.asked].bursts)

    @property
    def request(self) -> tuple[int, int] | None:
        """The burst presented."""
        return self.bursts[0] if self.bursts else None

    @property
    def offered(self) -> int | None:
        """The number of the instruction that is offered to its queue."""
        there = self.stock >= (self.dispatched + 1) * INSN_BYTES
        return self.dispatched if there and self.dispatched < self.count else None

    def end_of_cycle(self, granted: bool, beat: int | None, taken: bool) -> None:
        """``beat`` is the address of the data that was there."""
        assert CHUNK_REQUEST == 2, "a chunk is asked for by what the cycle before this one left"
        self._ask()
        self.dispatched += taken
        if beat is not None:
            self.stock = beat + BUS - self.address
        if granted:
            self.bursts.popleft()
            if not self.bursts:
                self.asked += 1


async def launched(dut, rng: Random, insns: list[tuple[dict, Lane]], address: int) -> None:
    """One launch in a memory, and before queues, of a mood of their own."""
    words = encode_stream(records(insn for insn, _ in insns), MACHINE)
    memory = rng.randbytes(address) + words.astype("<u8").tobytes() + rng.randbytes(512)
    model, beats = Model(address, len(insns)), deque()
    grants, data, room = (rng.choice([1.0, 0.8, 0.3]) for _ in range(3))
    drive(dut, start=1, insn_address=address, insn_count=len(insns), valid=0)
    await RisingEdge(dut.clk)
    # What the host says matters in the cycle of the start only.
    drive(dut, start=0, insn_address=address ^ 0x30, insn_count=rng.randrange(99))
    for cycle in range(1, PATIENCE):
        where = f"cycle {cycle}, instruction {model.dispatched} of {len(insns)}"
        ready = int(rng.random() < grants)
        beat = beats.popleft() if beats and rng.random() < data else None
        value = rng.getrandbits(8 * BUS)
        if beat is not None:
            value = int.from_bytes(memory[beat : beat + BUS], "little")
        open_lanes = [int(rng.random() < room) for _ in Lane]
        drive(dut, request__ready=ready, valid=int(beat is not None), data=value)
        drive(dut, **{f"insns__{int(lane)}__ready": open_lanes[lane] for lane in Lane})
        await RisingEdge(dut.clk)

        valid, payload, busy = sample(dut, "request__valid", "request__payload", "busy")
        assert busy, f"{where}: not busy"
        assert bool(valid) == (model.request is not None), f"{where}: request {valid}"
        if model.request is not None:
            burst = unpack(BURST, payload)
            assert (burst["address"], burst["len"] + 1) == model.request, where
        lanes = [sample(dut, f"insns__{int(lane)}__valid")[0] for lane in Lane]
        wanted, number = [0] * len(Lane), model.offered
        if number is not None:
            wanted[insns[number][1]] = 1
        assert lanes == wanted, f"{where}: offered to {lanes}, not {wanted}"
        taken = number is not None and bool(open_lanes[insns[number][1]])
        if number is not None:
            word = sample(dut, f"insns__{int(insns[number][1])}__payload")[0]
            low, high = words[number].tolist()
            assert word == low | high << 64, f"{where}: {word:#x}"
        granted = bool(valid and ready)
        if granted:
            first, length = model.request
            beats.extend(range(first, first + length * BUS, BUS))
        model.end_of_cycle(granted, beat, taken)
        if model.dispatched == len(insns):
            break
    else:
        raise AssertionError(f"{model.dispatched} of {len(insns)} dispatched in {PATIENCE} cycles")
    assert not beats, "more was asked for than the stream has"
    for _ in range(3):
        drive(dut, request__ready=1, valid=0, **{f"insns__{int(n)}__ready": 1 for n in Lane})
        await RisingEdge(dut.clk)
        names = ["busy", "request__valid", *(f"insns__{int(lane)}__valid" for lane in Lane)]
        assert not any(sample(dut, *names)), "something is left when all are dispatched"


async def begun(dut) -> None:
    lanes = [f"insns__{int(lane)}__ready" for lane in Lane]
    names = ("start", "insn_address", "insn_count", "request__ready", "data", "valid", *lanes)
    await start(dut, **dict.fromkeys(names, 0))


@cocotb.test()
@cocotb.parametrize(count=[1, 2, 15, 16, 17, 32, 33, 100])
async def every_instruction_once_in_order_in_its_cycle(dut, count):
    rng = random_of(f"fetch {count}")
    await begun(dut)
    for _ in range(6):  # nothing of a launch is left in the next
        insns = [rng.choice(kinds()) for _ in range(count - 1)] + [(finish(), Lane.COMPUTE)]
        await launched(dut, rng, insns, INSN_BYTES * rng.choice([0, 1, 15, 16, rng.randrange(99)]))


@cocotb.test()
async def every_kind_to_its_queue(dut):
    rng = random_of("kinds")
    await begun(dut)
    for lane in Lane:
        await launched(dut, rng, [kind for kind in kinds() if kind[1] == lane] * 3, 0x7F0)
    await launched(dut, rng, kinds() * 2, 0x10)


@cocotb.test()
async def a_stream_of_nothing(dut):
    await begun(dut)
    drive(dut, start=1, insn_address=64, insn_count=0)
    for _ in range(5):
        await RisingEdge(dut.clk)
        drive(dut, start=0)
        assert not any(sample(dut, "busy", "request__valid")), "there is nothing to fetch"
    await launched(dut, random_of("nothing"), kinds(), 64)
