"""Conditions are data: they compute what Python would, and can do nothing else."""

import random

import pytest

from vta.sweep.conditions import MOST_CHARACTERS, parse_condition
from vta.sweep.errors import SweepError

VALUES = {"a.x": 7, "a.y": 32, "b": 2, "flag": True, "kind": "int8", "none": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x <= a.y / 4", True),
        ("a.x <= a.y // 5", False),
        ("a.x % 4 == 3", True),
        ("2 < b <= a.x", False),
        ("2 <= b < a.x < a.y", True),
        ("not flag or a.x == 7", True),
        ("a.x == 8 or b == 2 and flag", True),
        ("kind in ['int8', 'int4']", True),
        ("kind not in ('int8',)", False),
        ("-a.x + 8 == 1", True),
        ("(a.x + 1) * b - 1 == 15", True),
        ("flag == true", True),
        ("none == null", True),
        ("a.y == 0.03125 KiB", True),
        ("a.y * 1 MHz == 32 MHz", True),
        ("  a.x  ", True),
    ],
)
def test_value(text: str, expected: bool) -> None:
    assert parse_condition(text, VALUES).holds(VALUES) is expected


def test_arithmetic_is_pythons() -> None:
    """Random expressions, with Python itself as the judge; the seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)

    def grow(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["x", "y", str(rng.randrange(9))])
        left, right = grow(depth - 1), grow(depth - 1)
        return f"({left} {rng.choice(['+', '-', '*', '<', '==', 'and', 'or'])} {right})"

    refused = 0
    for _ in range(300):
        text = grow(3)
        values = {"x": rng.randrange(-5, 6), "y": rng.randrange(-5, 6)}
        try:
            got = parse_condition(text, values).holds(values)
        except SweepError:  # truth values are no numbers here
            refused += 1
            continue
        assert got == bool(eval(text, {}, values)), text
    assert refused < 250


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.x <", "does not parse"),
        ("a.x = 3", "does not parse"),
        ("", "is no expression"),
        (7, "7 is no expression"),
        ("exit()", "a call ('exit()') is not allowed"),
        ("__import__('os').system('true')", "not allowed"),
        ("a.x.bit_length() > 2", "a call"),
        ("[i for i in b]", "a ListComp"),
        ("lambda: 1", "a Lambda"),
        ("(b := 3)", "a NamedExpr"),
        ("kind[0] == 'i'", "a Subscript"),
        ("f'{b}' == '2'", "a JoinedStr"),
        ("b ** 3 == 8", "a BinOp ('b ** 3') is not allowed"),
        ("b << 3", "a BinOp"),
        ("~b", "a UnaryOp"),
        ("b is 2", "a Compare"),
        ("b if flag else 1", "a IfExp"),
        ("b'x' == kind", "a Constant"),
        ("'x'.y == 1", "an attribute of something else than a key"),
        ("a.z == 1", "unknown key 'a.z'; did you mean 'a.y'?"),
        ("__class__", "unknown key '__class__'"),
        ("(" * 300 + "1" + ")" * 300, "does not parse"),
        ("1 + " * MOST_CHARACTERS + "1", f"at most {MOST_CHARACTERS}"),
    ],
)
def test_what_is_not_an_expression_over_keys_is_refused(text: object, message: str) -> None:
    with pytest.raises(
        ValueError, match=r"is no|not allowed|not parse|unknown key|at most"
    ) as caught:
        parse_condition(text, VALUES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.x / (b - 2) > 1", r"has no value for a.x = 7, b = 2: division by zero"),
        ("kind * 1000000000 == kind", r"'int8' is no number"),
        ("kind < 3", r"has no value for kind = 'int8'"),
        ("none + 1 == 1", r"None is no number"),
    ],
)
def test_what_has_no_value_says_for_what(text: str, message: str) -> None:
    with pytest.raises(SweepError, match=message):
        parse_condition(text, VALUES).holds(VALUES)
