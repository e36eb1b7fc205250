"""Expressions over a description that keep or drop a point: data, never run as Python.

    gemm.block_in <= axi.data_bits / 4
    sram.wgt in [64 KiB, 128 KiB] and not compile.vthreads

Names are the keys of the description and a few numbers that follow from it, literals are numbers
(with a unit, if you like) and texts in quotes; ``+ - * / // %``, comparisons, ``in``, ``and``,
``or``, ``not`` and parentheses combine them. Everything else is refused when the file is read.
"""

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vta_isa.suggest import did_you_mean
from vta_isa.units import parse_quantity

from .errors import SweepError
from .keys import UNITS

MOST_CHARACTERS = 1000  # far above any condition people write; bounds the depth of the tree

Values = Mapping[str, Any]
_Evaluate = Callable[[Values], Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, among: item in among,
    ast.NotIn: lambda item, among: item not in among,
}
_QUANTITY = re.compile(rf"(?<![\w.])(\d[\d_]*(?:\.\d+)?)\s+({'|'.join(UNITS)})\b")
_ALLOWED = "allowed are keys, numbers, texts, + - * / // %, comparisons, in, and, or, not, ( )"


@dataclass(frozen=True)
class Condition:
    """One expression, checked; ``names`` are those it reads."""

    text: str
    names: frozenset[str]
    _evaluate: _Evaluate

    def holds(self, values: Values) -> bool:
        """Whether a point with these values stays; ``values`` has every name it reads."""
        try:
            return bool(self._evaluate(values))
        except (TypeError, ZeroDivisionError) as error:
            shown = ", ".join(f"{name} = {values[name]!r}" for name in sorted(self.names))
            raise SweepError(f"where: {self.text!r} has no value for {shown}: {error}") from None


def parse_condition(text: object, known: Collection[str]) -> Condition:
    """The condition ``text`` states; ValueError tells what is not allowed in it."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is no expression; write one like gemm.block_in <= 32")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"an expression of {len(text)} characters; at most {MOST_CHARACTERS}")
    plain = _QUANTITY.sub(lambda m: str(parse_quantity(m.group(0), UNITS)), text)
    try:
        tree = ast.parse(plain.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{text!r} does not parse: {what}; {_ALLOWED}") from None
    names: set[str] = set()

    def refuse(node: ast.AST, what: str) -> ValueError:
        shown = ast.get_source_segment(plain.strip(), node) or plain
        return ValueError(f"{text!r}: {what} ({shown!r}) is not allowed; {_ALLOWED}")

    def walk(node: ast.expr) -> _Evaluate:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return lambda values: value
            case ast.Name() | ast.Attribute():
                name = _dotted(node)
                if name is None:
                    raise refuse(node, "an attribute of something else than a key")
                if name in _WORDS:
                    word = _WORDS[name]
                    return lambda values: word
                if name not in known:
                    raise ValueError(f"{text!r}: unknown key {name!r}{did_you_mean(name, known)}")
                names.add(name)
                return lambda values: values[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                combine, a, b = _BINARY[type(op)], walk(left), walk(right)
                return lambda values: combine(_number(a(values)), _number(b(values)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = walk(operand)
                return lambda values: not inner(values)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = walk(operand)
                return lambda values: -_number(inner(values))
            case ast.BoolOp(op=op, values=parts):
                terms = [walk(part) for part in parts]
                decides = isinstance(op, ast.Or)  # the truth value that ends the search

                def first_decisive(values: Values) -> Any:
                    for term in terms:
                        found = term(values)
                        if bool(found) is decides:
                            break
                    return found

                return first_decisive
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARE for op in ops
            ):
                sides = [walk(term) for term in (left, *others)]
                tests = [_COMPARE[type(op)] for op in ops]

                def compare(values: Values) -> bool:
                    found = [side(values) for side in sides]
                    pairs = zip(tests, found[:-1], found[1:], strict=True)
                    return all(test(a, b) for test, a, b in pairs)

                return compare
            case ast.List(elts=items) | ast.Tuple(elts=items):
                members = [walk(item) for item in items]
                return lambda values: [member(values) for member in members]
            case ast.Call():
                raise refuse(node, "a call")
        raise refuse(node, f"a {type(node).__name__}")

    evaluate = walk(tree.body)
    return Condition(text, frozenset(names), evaluate)


_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}  # as YAML spells them


def _dotted(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=below, attr=name):
            above = _dotted(below)
            return None if above is None else f"{above}.{name}"
    return None


def _number(value: Any) -> Any:
    """Arithmetic is for numbers: a text times 10**9 would fill the memory."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value
