"""Streams made at random for timing alone: indices and addresses mean nothing to anybody else.

Rows are short and long, aligned and not; stages talk by tokens as a compiler would, too much, or so
that they deadlock. ``programs.random_program`` makes streams that also compute something.
"""

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import AluOp, Buffer, LowKind, Stage
from vta_isa.insn import alu, finish, gemm, load, noop, records, requantize, store
from vta_isa.machine import Machine


def random_stream(
    rng: np.random.Generator, machine: Machine, size: int, *, legal: float = 0.9
) -> NDArray[np.void]:
    """``(size,) INSN_DTYPE``, FINISH last.

    A stream in which every token asked for has been pushed before in program order, with
    probability ``legal``; otherwise flags are thrown, and it may deadlock.
    """
    held = dict.fromkeys(((1, 2), (2, 1), (2, 3), (3, 2)), 0)
    capacity = machine.queues.token
    thrown = rng.random() > legal
    # What kind of stream: mostly no-ops, loads, or everything.
    weights = rng.dirichlet(np.ones(7) * 0.7)
    rows = []
    for number in range(size):
        kind = 7 if number == size - 1 else int(rng.choice(7, p=weights))
        stage = (1, 1, 2, 2, 2, 3, int(rng.integers(1, 4)), 2)[kind]
        flags = {}
        for flag, link in (
            ("pop_prev", (stage - 1, stage)),
            ("pop_next", (stage + 1, stage)),
            ("push_prev", (stage, stage - 1)),
            ("push_next", (stage, stage + 1)),
        ):
            if link not in held or rng.random() < 0.5:
                continue
            step = -1 if flag.startswith("pop") else 1
            if thrown or 0 <= held[link] + step <= capacity:
                held[link] += step
                flags[flag] = True
        rows.append(_insn(rng, machine, kind, stage, flags))
    return records(rows)


def _insn(
    rng: np.random.Generator, machine: Machine, kind: int, stage: int, flags: dict[str, bool]
) -> dict[str, int]:
    def upto(most: int) -> int:
        return int(rng.integers(0, most + 1))

    size = {
        "x_size": upto(3) if rng.random() < 0.7 else upto(40),
        "y_size": upto(3) if rng.random() < 0.8 else upto(12),
        "x_stride": upto(50),
        "sram_base": 0,
        "dram_base": upto(5000),
    }
    pads = {}
    if rng.random() < 0.5:
        most = 15 if rng.random() < 0.2 else 2
        pads = {"y_pad": (upto(most), upto(most)), "x_pad": (upto(most), upto(most))}
    begin = upto(4)
    uops = {"uops": (begin, begin + upto(4)), "iters": (upto(3), upto(6))}
    zero = (0, 0)
    if kind in (0, 1):
        buffer = (Buffer.INP, Buffer.WGT)[kind]
        return load(buffer, **size, **pads, **flags)
    if kind == 2:
        buffer = (Buffer.UOP, Buffer.ACC, Buffer.ACC_8BIT)[upto(2)]
        return load(buffer, **size, **pads, **flags)
    if kind == 3:
        return gemm(**uops, dst=zero, src=zero, wgt=zero, reset=bool(upto(1)), **flags)
    if kind == 4:
        imm = 3 if upto(1) else None
        if machine.extensions.alu_requantize and upto(1):
            clip = {"low": LowKind.ZERO, "high": 7}
            return requantize(**uops, dst=zero, bias=None if imm else 0, **clip, **flags)
        op = AluOp.MUL if upto(3) == 0 else AluOp.ADD
        return alu(op, **uops, dst=zero, src=zero, imm=imm, **flags)
    if kind == 5:
        return store(**size, **flags)
    return finish(**flags) if kind == 7 else noop(Stage(stage), **flags)
