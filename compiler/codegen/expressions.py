"""Expressions of the IR as LLVM values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from vta_isa import CompileError

from ..ir.arithmetic import bits, is_float, is_integer
from ..ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    Not,
    Select,
    Var,
)
from ..ir.visit import walk
from .types import is_signed, literal, memory_type, value_type
from .writer import FunctionWriter

ERROR_FLAG = "@vta.error"
DIVIDED_BY_ZERO, SHIFTED_TOO_FAR = 1, 2
"""What native code leaves in the error flag."""

_PREDICATES = {BinaryOp.LT: "lt", BinaryOp.LE: "le", BinaryOp.EQ: "eq", BinaryOp.NE: "ne"}
_DIVISIONS = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD}
_SHIFTS = {BinaryOp.SHR: True, BinaryOp.SHL: False}


class Expressions:
    """Computes expressions in one function.

    ``variables`` are the values of loop variables, ``pointers`` the addresses of buffers by name.
    """

    def __init__(
        self, out: FunctionWriter, variables: Mapping[str, str], pointers: Mapping[str, str]
    ):
        self.out = out
        self.variables = dict(variables)
        self.pointers = dict(pointers)

    def value(self, expr: Expr) -> str:
        """The operand that holds ``expr``."""
        match expr:
            case Const(value, dtype):
                return literal(value, dtype)
            case Var(name):
                return self.variables[name]
            case Load(buffer, indices):
                return self.load(buffer, indices)
            case Cast(a, dtype):
                return self.cast(self.value(a), a.dtype, dtype)
            case Not(a):
                return self.out.let(f"xor i1 {self.value(a)}, true")
            case Select(cond, a, b, dtype):
                return self.select(cond, a, b, dtype)
            case Binary():
                return self.binary(expr)
        raise TypeError(f"no code for {type(expr).__name__}")

    # -- memory -------------------------------------------------------------------------------

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        flat = "0"
        for axis, index in enumerate(indices):
            step = prod(buffer.shape[axis + 1 :])
            part = self.value(index)
            if step != 1:
                part = self.out.let(f"mul nsw i64 {part}, {step}")
            flat = part if flat == "0" else self.out.let(f"add nsw i64 {flat}, {part}")
        kind = memory_type(buffer.dtype)
        base = self.pointers[buffer.name]
        return self.out.let(f"getelementptr inbounds {kind}, ptr {base}, i64 {flat}")

    def load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        at = self.address(buffer, indices)
        loaded = self.out.let(f"load {memory_type(buffer.dtype)}, ptr {at}{self.out.access}")
        return self.out.let(f"icmp ne i8 {loaded}, 0") if buffer.dtype == "bool" else loaded

    def store(self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
        result = self.value(value)
        if buffer.dtype == "bool":
            result = self.out.let(f"zext i1 {result} to i8")
        at = self.address(buffer, indices)
        self.out.do(f"store {memory_type(buffer.dtype)} {result}, ptr {at}{self.out.access}")

    # -- choice -------------------------------------------------------------------------------

    def select(self, cond: Expr, a: Expr, b: Expr, dtype: str) -> str:
        """Only the chosen side is computed where the other could fail."""
        test = self.value(cond)
        kind = value_type(dtype)
        if _may_fail(a) or _may_fail(b):
            return self.out.choose(test, kind, lambda: self.value(a), lambda: self.value(b))
        yes, no = self.value(a), self.value(b)
        return self.out.let(f"select i1 {test}, {kind} {yes}, {kind} {no}")

    def logical(self, op: BinaryOp, a: Expr, b: Expr) -> str:
        left = self.truth(a)
        if not _may_fail(b):
            word = "and" if op is BinaryOp.AND else "or"
            return self.out.let(f"{word} i1 {left}, {self.truth(b)}")
        right: Callable[[], str] = lambda: self.truth(b)  # noqa: E731
        if op is BinaryOp.AND:
            return self.out.choose(left, "i1", right, lambda: "false")
        return self.out.choose(left, "i1", lambda: "true", right)

    def truth(self, expr: Expr) -> str:
        return self.cast(self.value(expr), expr.dtype, "bool")

    # -- arithmetic ---------------------------------------------------------------------------

    def binary(self, expr: Binary) -> str:
        op, dtype = expr.op, expr.a.dtype
        if op in (BinaryOp.AND, BinaryOp.OR):
            return self.logical(op, expr.a, expr.b)
        a, b = self.value(expr.a), self.value(expr.b)
        kind = value_type(dtype)
        if op in _PREDICATES:
            return self.compare(op, a, b, dtype)
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            # As in Python: the second operand only where it is strictly beyond the first.
            first, second = (b, a) if op is BinaryOp.MIN else (a, b)
            beyond = self.compare(BinaryOp.LT, first, second, dtype)
            return self.out.let(f"select i1 {beyond}, {kind} {b}, {kind} {a}")
        if is_float(dtype):
            return self.float_binary(op, a, b, kind)
        if dtype == "bool":
            raise CompileError(f"codegen: {op} is not defined on bool; cast the operands first")
        constant = isinstance(expr.b, Const)
        if op in _DIVISIONS:
            return self.divide(op, a, b, dtype, checked=expr.b == Const(0, dtype) or not constant)
        if op in _SHIFTS:
            return self.shift(op, a, b, dtype, checked=not constant)
        word = {BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul"}[op]
        return self.out.let(f"{word} {kind} {a}, {b}")

    def compare(self, op: BinaryOp, a: str, b: str, dtype: str) -> str:
        kind, predicate = value_type(dtype), _PREDICATES[op]
        if is_float(dtype):
            order = "u" if op is BinaryOp.NE else "o"
            return self.out.let(f"fcmp {order}{predicate} {kind} {a}, {b}")
        if op in (BinaryOp.LT, BinaryOp.LE):
            predicate = ("s" if is_signed(dtype) else "u") + predicate
        return self.out.let(f"icmp {predicate} {kind} {a}, {b}")

    def divide(self, op: BinaryOp, a: str, b: str, dtype: str, checked: bool) -> str:
        """Rounding towards minus infinity; a divisor of 0 raises the flag and gives 0 or ``a``."""
        out, kind, signed = self.out, value_type(dtype), is_signed(dtype)
        if checked:
            zero = out.let(f"icmp eq {kind} {b}, 0")
            self.flag(zero, DIVIDED_BY_ZERO)
            b = out.let(f"select i1 {zero}, {kind} 1, {kind} {b}")
        if not signed:
            word = "udiv" if op is BinaryOp.FLOORDIV else "urem"
            return out.let(f"{word} {kind} {a}, {b}")
        # The most negative number over -1 traps on some hosts: divide by 1 and negate.
        divisor, negate = b, ""
        if checked or b == "-1":
            negate = out.let(f"icmp eq {kind} {b}, -1")
            divisor = out.let(f"select i1 {negate}, {kind} 1, {kind} {b}")
        remainder = out.let(f"srem {kind} {a}, {divisor}")
        odd = out.let(f"icmp ne {kind} {remainder}, 0")
        mixed = out.let(f"icmp slt {kind} {out.let(f'xor {kind} {remainder}, {divisor}')}, 0")
        below = out.let(f"and i1 {odd}, {mixed}")
        if op is BinaryOp.FLOORMOD:
            shifted = out.let(f"add {kind} {remainder}, {divisor}")
            return out.let(f"select i1 {below}, {kind} {shifted}, {kind} {remainder}")
        quotient = out.let(f"sdiv {kind} {a}, {divisor}")
        quotient = out.let(f"sub {kind} {quotient}, {out.let(f'zext i1 {below} to {kind}')}")
        if not negate:
            return quotient
        return out.let(
            f"select i1 {negate}, {kind} {out.let(f'sub {kind} 0, {a}')}, {kind} {quotient}"
        )

    def shift(self, op: BinaryOp, a: str, b: str, dtype: str, checked: bool) -> str:
        out, kind = self.out, value_type(dtype)
        if checked:
            far = out.let(f"icmp uge {kind} {b}, {bits(dtype)}")
            self.flag(far, SHIFTED_TOO_FAR)
            b = out.let(f"select i1 {far}, {kind} 0, {kind} {b}")
        right = "ashr" if is_signed(dtype) else "lshr"
        return out.let(f"{right if op is BinaryOp.SHR else 'shl'} {kind} {a}, {b}")

    def flag(self, happened: str, code: int) -> None:
        """Remember an error without a branch that would keep loops from being vectorised."""
        old = self.out.let(f"load i32, ptr {ERROR_FLAG}")
        new = self.out.let(f"select i1 {happened}, i32 {code}, i32 {old}")
        self.out.do(f"store i32 {new}, ptr {ERROR_FLAG}")

    def float_binary(self, op: BinaryOp, a: str, b: str, kind: str) -> str:
        words = {
            BinaryOp.ADD: "fadd",
            BinaryOp.SUB: "fsub",
            BinaryOp.MUL: "fmul",
            BinaryOp.DIV: "fdiv",
        }
        if op in words:
            return self.out.let(f"{words[op]} {kind} {a}, {b}")
        return self.float_floor(op, a, b, kind)

    def float_floor(self, op: BinaryOp, a: str, b: str, kind: str) -> str:
        """Quotient and remainder as Python defines them, in double precision."""
        out = self.out
        wide = [out.let(f"fpext float {x} to double") if kind == "float" else x for x in (a, b)]
        zero = out.let(f"fcmp oeq double {wide[1]}, {literal(0.0, 'float64')}")
        self.flag(zero, DIVIDED_BY_ZERO)
        remainder = out.let(f"frem double {wide[0]}, {wide[1]}")
        nothing = literal(0.0, "float64")
        odd = out.let(f"fcmp une double {remainder}, {nothing}")
        signs = [out.let(f"fcmp olt double {x}, {nothing}") for x in (remainder, wide[1])]
        adjust = out.let(f"and i1 {odd}, {out.let(f'xor i1 {signs[0]}, {signs[1]}')}")
        if op is BinaryOp.FLOORMOD:
            moved = out.let(f"fadd double {remainder}, {wide[1]}")
            signed_zero = self._copysign(nothing, wide[1])
            plain = out.let(f"select i1 {odd}, double {remainder}, double {signed_zero}")
            result = out.let(f"select i1 {adjust}, double {moved}, double {plain}")
        else:
            rest = out.let(f"fsub double {wide[0]}, {remainder}")
            quotient = out.let(f"fdiv double {rest}, {wide[1]}")
            less = out.let(f"fsub double {quotient}, {literal(1.0, 'float64')}")
            quotient = out.let(f"select i1 {adjust}, double {less}, double {quotient}")
            out.module.declare("llvm.rint.f64", "double", ["double"])
            nearest = out.let(f"call double @llvm.rint.f64(double {quotient})")
            ratio = out.let(f"fdiv double {wide[0]}, {wide[1]}")
            is_zero = out.let(f"fcmp oeq double {nearest}, {nothing}")
            signed_zero = self._copysign(nothing, ratio)
            result = out.let(f"select i1 {is_zero}, double {signed_zero}, double {nearest}")
        return out.let(f"fptrunc double {result} to float") if kind == "float" else result

    def _copysign(self, size: str, sign: str) -> str:
        self.out.module.declare("llvm.copysign.f64", "double", ["double", "double"])
        return self.out.let(f"call double @llvm.copysign.f64(double {size}, double {sign})")

    # -- conversion ---------------------------------------------------------------------------

    def cast(self, value: str, source: str, target: str) -> str:
        """Integers keep their low bits, floats are cut towards zero."""
        if source == target:
            return value
        out, before, after = self.out, value_type(source), value_type(target)
        if target == "bool":
            if is_float(source):
                return out.let(f"fcmp une {before} {value}, {literal(0.0, source)}")
            return out.let(f"icmp ne {before} {value}, 0")
        if is_float(source) and is_float(target):
            return out.let(
                f"{'fpext' if after == 'double' else 'fptrunc'} {before} {value} to {after}"
            )
        if is_float(target):
            word = "sitofp" if is_signed(source) else "uitofp"
            return out.let(f"{word} {before} {value} to {after}")
        if is_float(source):
            return self.float_to_integer(value, before, target)
        if source == "bool":
            return out.let(f"zext i1 {value} to {after}")
        if bits(source) == bits(target):
            return value
        if bits(source) > bits(target):
            return out.let(f"trunc {before} {value} to {after}")
        return out.let(f"{'sext' if is_signed(source) else 'zext'} {before} {value} to {after}")

    def float_to_integer(self, value: str, kind: str, target: str) -> str:
        """Low bits of the integer, for values that fit 64 bits, with or without a sign."""
        out = self.out
        wide = []
        for word in ("fptosi", "fptoui"):
            name = f"llvm.{word}.sat.i64.{'f32' if kind == 'float' else 'f64'}"
            out.module.declare(name, "i64", [kind])
            wide.append(out.let(f"call i64 @{name}({kind} {value})"))
        below = out.let(f"fcmp olt {kind} {value}, {literal(0.0, 'float64')}")
        result = out.let(f"select i1 {below}, i64 {wide[0]}, i64 {wide[1]}")
        after = value_type(target)
        return result if after == "i64" else out.let(f"trunc i64 {result} to {after}")


def _may_fail(expr: Expr) -> bool:
    """Whether computing ``expr`` where it is not wanted could touch what it must not."""
    return any(
        isinstance(n, Load)
        or (
            isinstance(n, Binary)
            and (n.op in _DIVISIONS or n.op in _SHIFTS)
            and is_integer(n.a.dtype)
            and not isinstance(n.b, Const)
        )
        for n in walk(expr)
    )
