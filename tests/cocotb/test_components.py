"""Every component as Verilog in a second simulator: driver, monitor and reference apart."""

import pytest
from cocotb_bench import needs_cocotb, run_bench

from vta_hw.tokens import TokenQueue

pytestmark = needs_cocotb


@pytest.mark.parametrize("depth", [1, 3])
def test_token_queue(depth):
    run_bench("bench_tokens", TokenQueue(depth), parameters={"depth": depth})
