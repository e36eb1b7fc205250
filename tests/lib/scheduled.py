"""Running a schedule next to the naive program it came from."""

import numpy as np
from numpy.typing import NDArray

from compiler.ir.interpreter import run
from compiler.ir.nodes import Program
from compiler.ir.verify import verify
from compiler.schedule import Schedule, create_schedule


def random_arrays(program: Program, seed: int) -> dict[str, NDArray[np.generic]]:
    """An array per parameter: random inputs, outputs full of a value that is not the result."""
    rng = np.random.default_rng(seed)
    return {
        b.name: (
            rng.integers(-100, 101, b.shape) if b not in program.outputs else np.full(b.shape, 77)
        ).astype(b.dtype)
        for b in program.params
    }


def results(program: Program, seed: int) -> dict[str, NDArray[np.generic]]:
    """The outputs of the program for the random inputs of ``seed``."""
    arrays = random_arrays(program, seed)
    run(program, arrays)
    return {buffer.name: arrays[buffer.name] for buffer in program.outputs}


def assert_same(before: Program, after: Program, seed: int = 0) -> None:
    """Both programs are well formed and compute the same from the random inputs of ``seed``."""
    verify(before)
    verify(after)
    expected, got = results(before, seed), results(after, seed)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, err_msg=f"{name}, seed {seed}")


def assert_unchanged(schedule: Schedule, outputs, seed: int = 0) -> None:  # type: ignore[no-untyped-def]
    """The schedule computes what the naive schedule of ``outputs`` computes."""
    assert_same(create_schedule(outputs).program, schedule.program, seed)
