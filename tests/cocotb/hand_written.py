"""Streams written by hand: every instruction, at the edges of what its fields can say.

A stream is a list of instructions in program order. Those of ``SERIAL`` come without flags and are
executed strictly one after the other; those of ``RAW`` bring their own tokens.
"""

from collections.abc import Callable

import numpy as np
from programs import Program
from tokens import Fields, Weaver

from vta_isa.encoding import encode_stream, encode_uops
from vta_isa.enums import AluOp, Buffer, Opcode, Stage
from vta_isa.insn import alu, finish, gemm, load, noop, records, store
from vta_isa.machine import Machine

DATA = 4096  # bytes: where data begins; micro-ops lie before it
ROOM = 5 * 4096  # bytes of data, at least
UOPS = 24
SEED = 5

INP, WGT, UOP, ACC, ACC_8BIT = (
    Buffer.INP,
    Buffer.WGT,
    Buffer.UOP,
    Buffer.ACC,
    Buffer.ACC_8BIT,
)


def base(machine: Machine, buffer: Buffer, byte: int = 0) -> int:
    """The first entry at or behind ``byte`` of the data."""
    return -(-(DATA + byte) // machine.entry_bytes(buffer))


def filled(machine: Machine) -> list[Fields]:
    """Loads that leave no memory empty."""
    insns = [load(UOP, sram_base=0, dram_base=0, x_size=UOPS)]
    for number, buffer in enumerate((INP, WGT, ACC)):
        place = base(machine, buffer, 1000 * number)
        insns.append(load(buffer, sram_base=0, dram_base=place, x_size=machine.depth(buffer)))
    return insns


def result(machine: Machine, entries: int | None = None) -> Fields:
    """A STORE of the first results, or of all."""
    size = machine.depth(Buffer.OUT) if entries is None else entries
    return store(sram_base=0, dram_base=base(machine, Buffer.OUT, 4096), x_size=size)


def nothing_but_finish(machine: Machine) -> list[Fields]:
    return []


def whole_memories(machine: Machine) -> list[Fields]:
    return [*filled(machine), result(machine)]


def single_entries(machine: Machine) -> list[Fields]:
    """First and last entry of every memory, from addresses aligned to nothing but the entry."""
    insns = []
    for buffer in (UOP, INP, WGT, ACC, ACC_8BIT):
        last = machine.depth(ACC if buffer == ACC_8BIT else buffer) - 1
        start = 1 if buffer == UOP else base(machine, buffer) + 1
        insns += [load(buffer, sram_base=s, dram_base=start + s, x_size=1) for s in (0, last)]
    last = machine.depth(ACC) - 1
    place = base(machine, Buffer.OUT, 4096)
    return [
        *insns,
        *(store(sram_base=s, dram_base=place + 3 * i, x_size=1) for i, s in enumerate((0, last))),
    ]


def padding(machine: Machine) -> list[Fields]:
    """Every side alone, all sides, no data at all, and pads as wide as they can be."""
    insns = filled(machine)
    for buffer in (INP, WGT, ACC, ACC_8BIT, UOP):
        start = 0 if buffer == UOP else base(machine, buffer, 100)
        sides = [((1, 0), (0, 0)), ((0, 1), (0, 0)), ((0, 0), (1, 0)), ((0, 0), (0, 1))]
        sides += [((2, 1), (1, 2))]
        for number, (y_pad, x_pad) in enumerate(sides):
            tile = {"x_size": 2, "y_size": 2, "x_stride": 3, "y_pad": y_pad, "x_pad": x_pad}
            insns.append(load(buffer, sram_base=number, dram_base=start + number, **tile))
        insns += [
            load(buffer, sram_base=5, dram_base=start, x_size=3, y_size=0, y_pad=(1, 2)),
            load(buffer, sram_base=9, dram_base=start, x_size=1, x_pad=(15, 15)),
            load(buffer, sram_base=6, dram_base=start, x_size=1, y_pad=(15, 15)),
            load(buffer, sram_base=0, dram_base=start, x_size=0, y_size=9, y_pad=(9, 9)),
            load(buffer, sram_base=0, dram_base=start, x_size=5, y_size=0),
        ]
    return [*insns, result(machine)]


def strides(machine: Machine) -> list[Fields]:
    """Rows apart, side by side, overlapping, and all the same one; in both directions."""
    insns = filled(machine)
    for number, stride in enumerate((5, 3, 2, 1, 0)):
        tile = {"sram_base": 7 * number, "x_size": 3, "y_size": 4, "x_stride": stride}
        for buffer in (INP, ACC, ACC_8BIT):
            insns.append(load(buffer, dram_base=base(machine, buffer, 64), **tile))
        place = base(machine, Buffer.OUT, 4096 + 1024 * number) + 1
        insns.append(store(dram_base=place, **tile))
    return insns


def page_boundaries(machine: Machine) -> list[Fields]:
    """Rows that end at a page, begin at one, and cross one."""
    insns = filled(machine)
    for buffer in (INP, ACC, Buffer.OUT):
        unit = machine.entry_bytes(buffer)
        page = (DATA + 8192) // unit
        for start in (page - 4, page, page - 1):
            tile = {"sram_base": 1, "dram_base": start, "x_size": 4}
            insns.append(store(**tile) if buffer == Buffer.OUT else load(buffer, **tile))
    return insns


def multiplied(machine: Machine) -> list[Fields]:
    """Every product there is, then back to back into one accumulator until it wraps."""
    rows = min(machine.depth(ACC), machine.depth(INP), machine.depth(WGT), 60)
    return [
        *filled(machine),
        gemm(uops=(0, 1), iters=(1, rows), dst=(0, 1), src=(0, 1), wgt=(0, 1)),
        gemm(uops=(0, 1), iters=(3, rows), dst=(0, 0), src=(0, 1), wgt=(0, 1)),
        gemm(uops=(0, 5), iters=(2, 3), dst=(1, 2), src=(3, 1), wgt=(1, 4)),
        gemm(uops=(4, 5)),
        result(machine),
    ]


def close_together(machine: Machine) -> list[Fields]:
    """Iterations that read what 1, 2, 3, 4 iterations before have written."""
    insns = filled(machine)
    for distance in (1, 2, 3, 4):
        # Micro-op i has dst i: a loop over `distance` of them comes back after as many.
        insns += [
            gemm(uops=(0, distance), iters=(1, 5), dst=(0, 0), src=(0, 1), wgt=(0, 1)),
            alu(AluOp.ADD, uops=(0, distance), iters=(1, 5), dst=(0, 0), src=(0, 0)),
            alu(AluOp.ADD, uops=(0, 1), iters=(1, 12), dst=(0, 1), src=(0, 1)),
            alu(AluOp.MUL, uops=(0, distance), iters=(5, 1), dst=(0, 0), src=(0, 0), imm=-3),
            # dst of an iteration is src of the `distance`-th after it.
            alu(AluOp.ADD, uops=(distance + 8, distance + 9), iters=(1, 9), dst=(0, 1), src=(0, 1)),
        ]
    return [*insns, result(machine)]


def resets(machine: Machine) -> list[Fields]:
    return [
        *filled(machine),
        gemm(uops=(0, 1), iters=(1, 3), dst=(0, 2), reset=True),
        gemm(uops=(2, 3), reset=True),
        gemm(uops=(0, 1), iters=(1, 4), dst=(0, 1), src=(0, 1)),
        result(machine),
        gemm(uops=(0, 1), iters=(1, machine.depth(ACC)), dst=(0, 1), reset=True),
        result(machine, 9),
    ]


def overwritten(machine: Machine) -> list[Fields]:
    """Products that replace what there was, also of the iteration before, and then are added to."""
    replace = machine.extensions.gemm_overwrite
    insns = filled(machine)
    for distance in (1, 2, 3, 4):
        insns += [
            gemm(uops=(0, distance), iters=(1, 5), src=(0, 1), wgt=(0, 1), overwrite=replace),
            gemm(uops=(0, distance), iters=(1, 2), src=(0, 1), wgt=(0, 1)),
            gemm(uops=(0, 1), iters=(2, distance), dst=(0, 1), src=(1, 1), overwrite=replace),
            alu(AluOp.ADD, uops=(0, distance), imm=distance),
        ]
    return [*insns, result(machine)]


def nothing_to_compute(machine: Machine) -> list[Fields]:
    """Loops without an iteration, whatever else they say."""
    far = machine.depth(ACC) - 1
    return [
        *filled(machine),
        gemm(uops=(0, 0), iters=(3, 3), dst=(far, far)),
        gemm(uops=(5, 2), iters=(3, 3), reset=True),
        gemm(uops=(0, 9), iters=(0, 3), dst=(far, far)),
        alu(AluOp.ADD, uops=(0, 9), iters=(3, 0), dst=(far, far), imm=1),
        alu(AluOp.MUL, uops=(9, 9), iters=((1 << 14) - 1, (1 << 14) - 1)),
        result(machine),
    ]


def immediates(machine: Machine) -> list[Fields]:
    """Every operation with every edge of the immediate, each on an entry of its own."""
    insns, number = filled(machine), 0
    for op in AluOp:
        for imm in (0, 1, -1, 31, -31, 32, -32, (1 << 15) - 1, -(1 << 15)):
            insns.append(alu(op, uops=(number % UOPS, number % UOPS + 1), imm=imm))
            number += 1
    return [
        *insns,
        alu(AluOp.MAX, uops=(0, UOPS), iters=(1, 2), dst=(0, 1), imm=-5),
        result(machine),
    ]


def two_tensors(machine: Machine) -> list[Fields]:
    """Every operation on two entries, on one with itself, and with shifts of any size."""
    insns = filled(machine)
    for op in AluOp:
        insns += [
            alu(op, uops=(0, 8), iters=(1, 2), dst=(0, 4), src=(0, 3)),
            alu(op, uops=(16, 17), iters=(1, 4), dst=(0, 1), src=(0, 1)),
        ]
    return [*insns, result(machine)]


def more_than_fetch_holds(machine: Machine) -> list[Fields]:
    """Several chunks of one stage: its command queue fills, and fetch with it."""
    insns = filled(machine)
    insns += [
        gemm(uops=(i % 8, 8 + i % 8), iters=(2, 2), dst=(1, 1), src=(1, 1)) for i in range(45)
    ]
    return [*insns, result(machine)]


def fields_of_nothing(machine: Machine) -> list[Fields]:
    """No-ops of every stage whose fields would be out of range if they mattered."""
    junk = {"sram_base": 0xFFFF, "dram_base": 0xFFFF_FFFF, "y_size": 0xFFFF, "x_stride": 0xFFFF}
    pads = {"y_pad_before": 15, "y_pad_after": 15, "x_pad_before": 15, "x_pad_after": 15}
    loads = [
        {"opcode": Opcode.LOAD, "buffer": buffer, **junk, **pads}
        for buffer in (UOP, INP, WGT, ACC, ACC_8BIT)
    ]
    stores = [{"opcode": Opcode.STORE, "buffer": buffer, **junk} for buffer in (UOP, Buffer.OUT)]
    return [*loads, *stores, *filled(machine), result(machine)]


def more_tokens_than_room(machine: Machine) -> list[Fields]:
    """Every producer runs into a full token queue before its consumer takes one."""
    many = machine.queues.token + 2
    ahead = min(many, machine.queues.command + machine.queues.token)
    insns = []
    for producer, push, consumer, pop in (
        (Stage.LOAD, "push_next", Stage.COMPUTE, "pop_prev"),
        (Stage.COMPUTE, "push_prev", Stage.LOAD, "pop_next"),
        (Stage.COMPUTE, "push_next", Stage.STORE, "pop_prev"),
        (Stage.STORE, "push_prev", Stage.COMPUTE, "pop_next"),
    ):
        insns += [noop(producer, **{push: True}) for _ in range(ahead)]
        insns += [noop(consumer, **{pop: True}) for _ in range(ahead)]
    return [*insns, finish()]


def tokens_on_both_sides(machine: Machine) -> list[Fields]:
    """Compute waits for both neighbours and lets both go, over and over."""
    insns = []
    for _ in range(6):
        insns += [
            noop(Stage.STORE, push_prev=True),
            noop(Stage.LOAD, push_next=True),
            noop(Stage.COMPUTE, pop_prev=True, pop_next=True, push_prev=True, push_next=True),
            noop(Stage.LOAD, pop_next=True),
            noop(Stage.STORE, pop_prev=True),
        ]
    return [*insns, finish()]


Stream = Callable[[Machine], list[Fields]]
SERIAL: tuple[Stream, ...] = (
    nothing_but_finish,
    whole_memories,
    single_entries,
    padding,
    strides,
    page_boundaries,
    multiplied,
    overwritten,
    close_together,
    resets,
    nothing_to_compute,
    immediates,
    two_tensors,
    more_than_fetch_holds,
    fields_of_nothing,
)
RAW: tuple[Stream, ...] = (more_tokens_than_room, tokens_on_both_sides)
STREAMS = {stream.__name__: stream for stream in (*SERIAL, *RAW)}


def written(name: str, machine: Machine) -> Program:
    """The stream of that name and the DRAM it works on."""
    insns = STREAMS[name](machine)
    if STREAMS[name] in SERIAL:
        insns = in_series(insns, machine)
    table = records(insns)
    return Program(encode_stream(table, machine), dram_image(machine), machine, table)


def in_series(insns: list[Fields], machine: Machine) -> list[Fields]:
    """With the tokens that let each begin when the one before has ended, and a FINISH."""
    weaver = Weaver(np.random.default_rng(SEED), machine.queues.token, spare=0.0)
    for insn in insns:
        weaver.add(insn, stage_of(insn), dict(weaver.count))
    weaver.finish()
    return weaver.insns


def stage_of(insn: Fields) -> Stage:
    if insn["opcode"] == Opcode.STORE:
        return Stage.STORE
    operands = insn.get("buffer") in (int(INP), int(WGT))
    return Stage.LOAD if insn["opcode"] == Opcode.LOAD and operands else Stage.COMPUTE


def dram_image(machine: Machine) -> np.ndarray:
    """Micro-ops, then bytes of every kind, enough to fill any memory: ``(bytes,) uint8``.

    Micro-op i works on entry i of ACC, and on entries close by of INP and WGT.
    """
    rng = np.random.default_rng(SEED)
    largest = max(machine.depth(buffer) * machine.entry_bytes(buffer) for buffer in Buffer)
    size = DATA + max(ROOM, 4096 + largest + 4096)
    image = rng.integers(0, 256, size, dtype=np.uint8)
    inp, wgt = (machine.depth(buffer) for buffer in (INP, WGT))
    uops = [(i, i % min(8, inp), 3 * i % min(8, wgt)) for i in range(16)]
    uops += [(8 + i, 4 + i, 0) for i in range(UOPS - 16)]
    words = encode_uops(np.array(uops), machine).astype("<u4")
    image[: words.nbytes] = words.view(np.uint8)
    # Small amounts to shift by, and accumulators about to wrap.
    scalars = image[DATA + 2000 : DATA + 2400].view("<i4")
    scalars[:50] = rng.integers(-40, 40, 50)
    scalars[50:] = 2**31 - 1 - rng.integers(0, 1000, 50)
    return image
