"""A REQUANTIZE that reads what it has just begun to write is refused, by every engine."""

import numpy as np
import pytest
from machines import machine
from slots import APART, first_too_early

from simulator.apart import too_close
from simulator.checker import Code, check
from simulator.machine import Simulator
from vta_isa import encode_uops, finish, load, microarch, records, requantize
from vta_isa.encoding import encode_stream
from vta_isa.enums import Buffer, LowKind
from vta_isa.errors import StreamError

EXTENDED = machine("extended")
CLIP = {"low": LowKind.ZERO, "high": 127}
UOPS_AT = 1024  # entry of DRAM where micro-ops are


def fused(uops, iters, **more):
    return requantize(uops=(0, uops), iters=iters, **CLIP, **more)


def table(*pairs):
    return np.array([(dst, src, 0) for dst, src in pairs], dtype=np.int32)


def test_the_distance_is_that_of_the_page() -> None:
    assert microarch.REQUANTIZE_APART == APART


@pytest.mark.parametrize("seed", range(20))
def test_the_first_such_read_is_that_of_plain_enumeration(seed: int) -> None:
    print(f"{seed=}")
    rng = np.random.default_rng([seed, 77])
    found = 0
    for _ in range(50):
        count, spread = int(rng.integers(1, 10)), int(rng.choice([2, 9, 60]))
        uops = rng.integers(0, spread, (count, 3)).astype(np.int32)
        if rng.random() < 0.5:
            uops[:, 0] = np.arange(count)
        step, outer, bias = (int(rng.choice([0, 1, 2, 5, count, 40])) for _ in range(3))
        iters = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 11, 20], 2))
        insn = fused(count, iters, dst=(outer, step), bias=bias if rng.random() < 0.7 else None)
        wanted = first_too_early(insn, uops)
        got = too_close(records([insn])[0], uops)
        place = got and (got.outer, got.inner, got.uop, got.entry, got.apart)
        assert place == wanted, insn
        found += wanted is not None
    assert 0 < found < 50


NEAR = table((3, 0), (4, 0), (5, 0), (6, 0), (7, 0))
CASES = [
    (table((3, 0)), {"iters": (1, 2)}, "reads entry 3 of ACC, written 1 places before"),
    (NEAR, {"iters": (1, 2)}, "reads entry 3 of ACC, written 5 places before"),
    (np.concatenate([NEAR, table((8, 0))]), {"iters": (1, 2)}, None),
    (table((3, 9)), {"iters": (2, 1), "bias": 0, "dst": (6, 0)}, None),
    (table((9, 9)), {"iters": (2, 1), "bias": 0, "dst": (6, 0)}, "the bias reads entry 9"),
    (table((3, 9)), {"iters": (9, 1), "bias": 1, "dst": (2, 0)}, "outer iteration 8: the bias"),
]


@pytest.mark.parametrize(("uops", "loops", "message"), CASES)
@pytest.mark.parametrize("engine", ["reference", "numpy", "native"])
def test_every_engine_refuses_it(uops, loops, message, engine) -> None:
    dram = np.zeros(65536, dtype=np.uint8)
    words = encode_uops(uops, EXTENDED).astype("<u4").view(np.uint8)
    dram[4 * UOPS_AT : 4 * UOPS_AT + len(words)] = words
    insns = [
        load(Buffer.ACC, sram_base=0, dram_base=0, x_size=32),
        load(Buffer.UOP, sram_base=0, dram_base=UOPS_AT, x_size=len(uops)),
        fused(len(uops), **loops),
        finish(),
    ]
    stream = encode_stream(records(insns), EXTENDED)
    codes = [finding.code for finding in check(stream, EXTENDED, dram)]
    assert codes == ([Code.TOO_CLOSE] if message else [])
    simulator = Simulator(EXTENDED, engine=engine)
    if message is None:
        simulator.launch(stream, dram)
        return
    with pytest.raises(StreamError, match=message):
        simulator.launch(stream, dram)
