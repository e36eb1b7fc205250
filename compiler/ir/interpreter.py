"""Runs a program one scalar at a time: the judge of every rewrite.

The program is first turned into closures, one per node, which is some ten times faster than
looking at the nodes again in every iteration. Memory is flat Python lists in which ``None`` marks
an element nobody has written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from vta_isa.errors import CompileError

from .arithmetic import Scalar, apply, convert, limits
from .expand import expand_call
from .nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Coproc,
    DepPop,
    DepPush,
    Expr,
    For,
    If,
    Load,
    Not,
    Produce,
    Program,
    Select,
    Seq,
    Stmt,
    Store,
    Synchronize,
    TensorCall,
    Var,
)
from .visit import stored_buffers

_Env: TypeAlias = dict[str, int]
_Value: TypeAlias = Callable[[_Env], Scalar]
_Action: TypeAlias = Callable[[_Env], None]
_Memory: TypeAlias = dict[str, list[Scalar | None]]


class InterpreterError(CompileError):
    """A program that reads what nobody wrote, or leaves its buffers."""


def run(program: Program, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Execute ``program`` on ``arrays``, one per parameter; outputs are written in place.

    Every array must have its buffer's shape and type. Virtual threads and parallel loops run their
    iterations in order; statements that only order the stages of the machine do nothing.
    """
    memory: _Memory = {}
    for buffer in program.params:
        memory[buffer.name] = _checked(program, buffer, arrays).reshape(-1).tolist()
    _Compiler(memory).statement(program.body)({})
    for buffer in stored_buffers(program.body) & set(program.params):
        flat = np.array(memory[buffer.name], dtype=buffer.dtype)
        arrays[buffer.name][...] = flat.reshape(buffer.shape)


def evaluate(expr: Expr, values: Mapping[str, int]) -> Scalar:
    """The value of an expression that reads no buffer, given its variables by name."""
    return _Compiler({}).value(expr)(dict(values))


def _checked(
    program: Program, buffer: Buffer, arrays: Mapping[str, NDArray[np.generic]]
) -> NDArray[np.generic]:
    if buffer.name not in arrays:
        names = ", ".join(b.name for b in program.params)
        raise InterpreterError(f"{program.name}: no array for {buffer.name!r}; it takes {names}")
    array = arrays[buffer.name]
    if array.shape != buffer.shape or array.dtype != np.dtype(buffer.dtype):
        raise InterpreterError(
            f"{program.name}: {buffer.name} is {array.dtype}{list(array.shape)}, "
            f"expected {buffer.dtype}{list(buffer.shape)}"
        )
    return array


class _Compiler:
    """Turns nodes into closures over one memory."""

    def __init__(self, memory: _Memory):
        self.memory = memory

    # -- statements ---------------------------------------------------------------------------

    def statement(self, stmt: Stmt) -> _Action:
        match stmt:
            case For():
                return self._loop(stmt)
            case Store(buffer, indices, value):
                return self._store(buffer, indices, value)
            case Seq(stmts):
                return _sequence([self.statement(s) for s in stmts])
            case If():
                return self._branch(stmt)
            case Alloc(buffer, body):
                return self._alloc(buffer, body)
            case Produce(_, body) | Coproc(_, body):
                return self.statement(body)
            case TensorCall():
                return self.statement(expand_call(stmt))
            case DepPush() | DepPop() | Synchronize():
                return _sequence([])
        raise InterpreterError(f"the interpreter does not run {type(stmt).__name__} statements")

    def _loop(self, loop: For) -> _Action:
        name, iterations, body = loop.var.name, range(loop.extent), self.statement(loop.body)

        def action(env: _Env) -> None:
            for i in iterations:
                env[name] = i
                body(env)

        return action

    def _branch(self, stmt: If) -> _Action:
        cond, then = self.value(stmt.cond), self.statement(stmt.then)
        orelse = self.statement(stmt.orelse) if stmt.orelse is not None else None

        def action(env: _Env) -> None:
            if cond(env):
                then(env)
            elif orelse is not None:
                orelse(env)

        return action

    def _alloc(self, buffer: Buffer, body: Stmt) -> _Action:
        size = int(np.prod(buffer.shape, dtype=np.int64))
        memory, name = self.memory, buffer.name
        memory[name] = cells = cast(list[Scalar | None], [None] * size)
        inner = self.statement(body)

        def action(env: _Env) -> None:
            cells[:] = [None] * size
            inner(env)

        return action

    def _store(self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> _Action:
        cells, offset, result = (
            self._cells(buffer),
            self._offset(buffer, indices),
            self.value(value),
        )

        def action(env: _Env) -> None:
            new = result(env)
            cells[offset(env)] = new

        return action

    # -- values -------------------------------------------------------------------------------

    def value(self, expr: Expr) -> _Value:
        match expr:
            case Const(value):
                return lambda env: value
            case Var(name):
                return lambda env: env[name]
            case Binary(op, a, b):
                return self._binary(op, a, b)
            case Not(a):
                operand = self.value(a)
                return lambda env: not operand(env)
            case Select(cond, a, b):
                test, yes, no = self.value(cond), self.value(a), self.value(b)
                return lambda env: yes(env) if test(env) else no(env)
            case Cast(a, dtype):
                operand = self.value(a)
                return lambda env: convert(operand(env), dtype)
            case Load(buffer, indices):
                return self._load(buffer, indices)
        raise InterpreterError(f"the interpreter does not compute {type(expr).__name__}")

    def _binary(self, op: BinaryOp, a: Expr, b: Expr) -> _Value:
        left, right, dtype = self.value(a), self.value(b), a.dtype
        if op is BinaryOp.AND:
            return lambda env: left(env) and right(env)
        if op is BinaryOp.OR:
            return lambda env: left(env) or right(env)
        if op in (BinaryOp.ADD, BinaryOp.MUL) and not dtype.startswith("float"):
            # These two are most of what a convolution does.
            low, high = limits(dtype)
            if op is BinaryOp.ADD:

                def total(env: _Env) -> Scalar:
                    result = left(env) + right(env)
                    return result if low <= result <= high else convert(result, dtype)

                return total

            def product(env: _Env) -> Scalar:
                result = left(env) * right(env)
                return result if low <= result <= high else convert(result, dtype)

            return product
        return lambda env: _apply(op, left(env), right(env), dtype)

    def _load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _Value:
        cells, offset = self._cells(buffer), self._offset(buffer, indices)

        def load(env: _Env) -> Scalar:
            result = cells[offset(env)]
            if result is None:
                at = np.unravel_index(offset(env), buffer.shape)
                raise InterpreterError(f"{_element(buffer, at)} is read but was never written")
            return result

        return load

    def _cells(self, buffer: Buffer) -> list[Scalar | None]:
        if buffer.name not in self.memory:
            raise InterpreterError(f"buffer {buffer.name} is used outside its allocation")
        return self.memory[buffer.name]

    def _offset(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Callable[[_Env], int]:
        """The flat offset of an element; every index is checked against its own axis."""
        if len(indices) != len(buffer.shape):
            raise InterpreterError(
                f"{buffer.name} has {len(buffer.shape)} axes and is given {len(indices)} indices"
            )
        axes = [
            (cast(Callable[[_Env], int], self.value(index)), size)
            for index, size in zip(indices, buffer.shape, strict=True)
        ]

        def offset(env: _Env) -> int:
            flat = 0
            for index, size in axes:
                i = index(env)
                if not 0 <= i < size:
                    at = [index(env) for index, _ in axes]
                    raise InterpreterError(
                        f"{_element(buffer, at)} is outside {buffer.name}{list(buffer.shape)}"
                    )
                flat = flat * size + i
            return flat

        return offset


def _apply(op: BinaryOp, a: Scalar, b: Scalar, dtype: str) -> Scalar:
    try:
        return apply(op, a, b, dtype)
    except (ValueError, ZeroDivisionError) as error:
        raise InterpreterError(f"{a} {op} {b}: {error}") from error


def _sequence(actions: list[_Action]) -> _Action:
    def action(env: _Env) -> None:
        for step in actions:
            step(env)

    return action


def _element(buffer: Buffer, at: object) -> str:
    indices = ", ".join(str(int(i)) for i in at)  # type: ignore[attr-defined]
    return f"{buffer.name}[{indices}]"
