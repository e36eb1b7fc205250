"""A tensorized call spelled out: the loops it stands for, over the buffers it is applied to."""

from __future__ import annotations

from typing import cast

from .build import add
from .nodes import Buffer, Expr, Load, Region, Stmt, Store, TensorCall
from .simplify import simplify
from .visit import Node, map_children


def expand_call(call: TensorCall) -> Stmt:
    """``gemm(acc[i, 0:+1, 0:+4], ...)  ->  for b: for o: for k: acc[i, b, o] = acc[i, b, o] + ...``

    The loops keep the intrinsic's variables, so two expansions may share names.
    """
    formals = call.intrinsic.formals
    regions = {f.name: r for f, r in zip(formals, call.operands, strict=True)}

    def visit(node: Node) -> Node:
        node = map_children(node, visit)
        if isinstance(node, (Load, Store)):
            region = regions[node.buffer.name]
            indices = _indices(node.buffer, region, node.indices)
            if isinstance(node, Load):
                return Load(region.buffer, indices)
            return Store(region.buffer, indices, node.value)
        return node

    return cast(Stmt, visit(call.intrinsic.body))


def _indices(formal: Buffer, region: Region, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    leading = len(region.start) - len(formal.shape)
    inner = zip(region.start[leading:], indices, strict=True)
    return (*region.start[:leading], *(simplify(add(start, index)) for start, index in inner))
