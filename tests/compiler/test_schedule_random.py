"""Random schedules of small expressions compute what the naive ones do."""

import random

import expressions
import pytest
from schedule_fuzzer import random_step, random_tiling
from scheduled import assert_unchanged

from compiler.ir.printer import to_text
from compiler.ir.verify import verify
from compiler.schedule import create_schedule, replay


def check(schedule, outputs, seed):
    """The schedule is well formed, computes the right numbers and can be replayed."""
    try:
        assert_unchanged(schedule, outputs, seed)
    except BaseException as error:
        error.add_note(f"seed {seed}\n{schedule.trace()}\n{schedule}")
        raise
    assert to_text(replay(schedule.steps, outputs).program) == to_text(schedule.program)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("expression", expressions.ALL, ids=lambda e: e.__name__)
def test_random_primitives_compute_the_same(expression, seed):
    rng = random.Random(f"{expression.__name__} {seed}")
    outputs = expression()
    schedule = create_schedule(outputs)
    for _ in range(60):
        if len(schedule.steps) == 12:
            break
        if random_step(schedule, rng):
            verify(schedule.program)
    check(schedule, outputs, seed)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("expression", expressions.ALL, ids=lambda e: e.__name__)
def test_random_tilings_compute_the_same(expression, seed):
    rng = random.Random(f"{expression.__name__} tiled {seed}")
    outputs = expression()
    schedule = create_schedule(outputs)
    random_tiling(schedule, rng)
    check(schedule, outputs, seed)
