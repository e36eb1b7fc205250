"""Random index expressions over three variables, and their values by brute force."""

import itertools
import random
from collections.abc import Iterator

from compiler.ir.build import binary
from compiler.ir.interpreter import evaluate
from compiler.ir.nodes import BinaryOp, Const, Expr, Select, Var

X, Y, Z = (Var(name) for name in "xyz")
RANGES = {X: (0, 7), Y: (0, 3), Z: (0, 2)}

_COMPARISONS = [BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE]
_OPERATIONS = [
    *[BinaryOp.ADD] * 3,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.FLOORDIV,
    BinaryOp.FLOORMOD,
    BinaryOp.MIN,
    BinaryOp.MAX,
    None,
]


def random_expr(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([X, Y, Z, Const(rng.randint(-3, 9))])
    op = rng.choice(_OPERATIONS)
    a, b = random_expr(rng, depth - 1), random_expr(rng, depth - 1)
    if op is None:
        test = binary(rng.choice(_COMPARISONS), random_expr(rng, depth - 1), a)
        return Select(test, a, b)
    if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD):
        return binary(op, a, Const(rng.randint(1, 6)))
    if op is BinaryOp.MUL:
        return binary(op, a, Const(rng.randint(-4, 5)))
    return binary(op, a, b)


def points(*variables: Var) -> Iterator[dict[str, int]]:
    """Every assignment of the variables within ``RANGES``."""
    axes = [range(RANGES[v][0], RANGES[v][1] + 1) for v in variables]
    for values in itertools.product(*axes):
        yield {v.name: value for v, value in zip(variables, values, strict=True)}


def value(expr: Expr, point: dict[str, int]) -> int:
    return int(evaluate(expr, point))
