"""The schedule that convolution and matrix product share.

Read from top to bottom: where data lives, how it is cut, what overlaps, what the hardware does.
"""

from __future__ import annotations

from vta_isa import Machine

from .. import te
from ..intrinsics import gemm, gemm_reset
from ..ir.nodes import Scope
from ..schedule import Schedule, create_schedule
from .epilogue import EpilogueStage, schedule_epilogue
from .tiles import Product, Tile


def schedule_tiled_product(
    out: te.Tensor,
    product: Product,
    tile: Tile,
    machine: Machine,
    *,
    stages: list[EpilogueStage],
    taps: tuple[str, ...],
    fetch: str | None,
    data: str,
    weights: str,
    bias: str | None,
) -> Schedule:
    """Tile ``out``, compute its ``product`` stage on the GEMM core, its epilogue on the ALU.

    Names are those of stages and placeholders; ``fetch`` is the stage that pads or gathers the
    input, None where the input is read as it is. ``taps`` are kernel axes of the reduction.
    """
    s = create_schedule(out)
    s.set_scope(product.name, Scope.ACC)
    if bias is not None:
        bias = s.cache_read(bias, Scope.ACC, [stages[0].name])  # the first one adds it
    wgt = s.cache_read(weights, Scope.WGT, [product.name])
    if fetch is None:
        fetch = s.cache_read(data, Scope.INP, [product.name])
    else:
        s.set_scope(fetch, Scope.INP)

    # Output tiles, one virtual thread per consecutive part of the thread axis.
    outer: list[str] = []
    inner: list[str] = []
    for axis in product.out:
        around, within = s.split(out.name, axis.name, factor=tile.out[axis.name])
        if axis.name == tile.thread_axis:
            thread, around = s.split(out.name, around, nparts=tile.threads)
            outer.insert(0, thread)
        outer.append(around)
        inner.append(within)
    s.reorder(out.name, *outer, *inner)
    if tile.thread_axis is not None:
        s.vthread(out.name, outer[0])

    # The epilogue and the product, a tile at a time.
    at = outer[-1]
    schedule_epilogue(s, stages, out.name, at)
    if bias is not None and not tile.bias_stays:
        s.compute_at(bias, out.name, at)
    s.compute_at(product.name, out.name, at)

    # The reduction, a step at a time; its operands are loaded for each step.
    step, within = s.split(product.name, "ci", factor=tile.ci)
    names = [axis.name for axis in product.out]
    s.reorder(product.name, step, *names[1:], names[0], within, *taps, "b", "o", "k")
    s.compute_at(fetch, product.name, step)
    s.compute_at(wgt, product.name, step)
    s.tensorize(f"{product.name}.init", "b", gemm_reset(machine))
    s.tensorize(product.name, "b", gemm(machine))
    return s
