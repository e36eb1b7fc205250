"""Short test benches for components, on Amaranth's own simulator."""

from collections.abc import Callable
from typing import Any

from amaranth.sim import Simulator


def bench(dut: Any, testbench: Callable[..., Any], *others: Callable[..., Any]) -> None:
    """Run ``testbench(ctx)`` on ``dut`` to its end; ``others`` run beside it for as long."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    for other in others:
        simulator.add_testbench(other, background=True)
    simulator.run()


async def put(ctx: Any, stream: Any, payload: Any) -> None:
    """Offer ``payload`` until it is taken; returns behind the clock edge that took it."""
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def get(ctx: Any, stream: Any) -> Any:
    """Take one payload."""
    ctx.set(stream.ready, 1)
    (payload,) = await ctx.tick().sample(stream.payload).until(stream.valid)
    ctx.set(stream.ready, 0)
    return payload
