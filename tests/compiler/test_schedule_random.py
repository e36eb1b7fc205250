"""Random schedules of small expressions compute what the naive ones do."""

import random

import expressions
import pytest
from schedule_fuzzer import random_step
from scheduled import assert_unchanged

from compiler.ir.printer import to_text
from compiler.ir.verify import verify
from compiler.schedule import create_schedule, replay


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("expression", expressions.ALL, ids=lambda e: e.__name__)
def test_a_random_schedule_computes_the_same(expression, seed):
    rng = random.Random(f"{expression.__name__} {seed}")
    outputs = expression()
    schedule = create_schedule(outputs)
    for _ in range(60):
        if len(schedule.steps) == 12:
            break
        if random_step(schedule, rng):
            verify(schedule.program)
    try:
        assert_unchanged(schedule, outputs, seed)
    except BaseException as error:
        error.add_note(f"seed {seed}\n{schedule.trace()}\n{schedule}")
        raise
    assert to_text(replay(schedule.steps, outputs).program) == to_text(schedule.program)
