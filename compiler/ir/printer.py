"""The text of a program: short enough to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Buffer,
    Call,
    Cast,
    Const,
    Coproc,
    DepPop,
    DepPush,
    DmaLoad,
    DmaStore,
    Emit,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Not,
    Produce,
    Program,
    Region,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Synchronize,
    TensorCall,
    UopKernel,
    UopPush,
    Var,
)

# How tightly an operation binds; as in Python.
_PRECEDENCE = {
    BinaryOp.OR: 1,
    BinaryOp.AND: 2,
    BinaryOp.LT: 4,
    BinaryOp.LE: 4,
    BinaryOp.EQ: 4,
    BinaryOp.NE: 4,
    BinaryOp.SHL: 5,
    BinaryOp.SHR: 5,
    BinaryOp.ADD: 6,
    BinaryOp.SUB: 6,
    BinaryOp.MUL: 7,
    BinaryOp.FLOORDIV: 7,
    BinaryOp.FLOORMOD: 7,
    BinaryOp.DIV: 7,
}
_NOT = 3
_INDENT = "    "


def to_text(node: Program | Stmt | Expr) -> str:
    """``node`` as text; statements end without a newline."""
    if isinstance(node, Program):
        return "\n".join(_program(node))
    if isinstance(node, Stmt):
        return "\n".join(_statement(node))
    return _expr(node, 0)


def buffer_text(buffer: Buffer) -> str:
    """``name: dtype[shape]`` and, on chip, its scope."""
    text = f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
    return text if buffer.scope is Scope.GLOBAL else f"{text} in {buffer.scope}"


def _program(program: Program) -> Iterator[str]:
    params = ", ".join(buffer_text(b) for b in program.params)
    outputs = ", ".join(b.name for b in program.outputs)
    yield f"program {program.name}({params})" + (f" -> {outputs}:" if outputs else ":")
    yield from _nested(program.body)


def _nested(stmt: Stmt) -> Iterator[str]:
    return (_INDENT + line for line in _statement(stmt))


def _statement(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case For(var, extent, body, kind):
            runs = "range" if kind is LoopKind.SERIAL else kind.value
            notes = ", ".join(f"{key}={value}" for key, value in stmt.annotations.items())
            yield f"for {var.name} in {runs}({extent}):" + (f"  # {notes}" if notes else "")
            yield from _nested(body)
        case Store(buffer, indices, value):
            yield f"{buffer.name}[{_list(indices)}] = {_expr(value, 0)}"
        case Seq(stmts):
            if not stmts:
                yield "pass"
            for item in stmts:
                yield from _statement(item)
        case If(cond, then, orelse):
            yield f"if {_expr(cond, 0)}:"
            yield from _nested(then)
            if orelse is not None:
                yield "else:"
                yield from _nested(orelse)
        case Alloc(buffer, body):
            yield f"alloc {buffer_text(buffer)}"
            yield from _statement(body)
        case Produce(name, body):
            yield f"produce {name}:"
            yield from _nested(body)
        case TensorCall(intrinsic, operands):
            emit = intrinsic.emit
            imm = "" if emit.imm is None or emit.fused else f", imm={emit.imm}"
            yield f"{intrinsic.name}({', '.join(map(_region, operands))}{imm})"
        case _:
            yield from _machine_statement(stmt)


def _machine_statement(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case DmaLoad():
            pads = ", ".join(_expr(p, 0) for p in (*stmt.y_pad, *stmt.x_pad))
            widen = ", widen" if stmt.widen else ""
            yield f"load {_dma(stmt)}, pad=({pads}){widen}"
        case DmaStore():
            yield f"store {_dma(stmt)}"
        case Coproc(stage, body):
            yield f"on {stage.name.lower()}:"
            yield from _nested(body)
        case DepPush(producer, consumer):
            yield f"push {producer.name.lower()} -> {consumer.name.lower()}"
        case DepPop(producer, consumer):
            yield f"pop {producer.name.lower()} -> {consumer.name.lower()}"
        case Synchronize():
            yield "synchronize"
        case UopPush(emit, dst, src, wgt):
            yield f"uop {_emit(emit)} dst={_expr(dst, 0)} src={_expr(src, 0)} wgt={_expr(wgt, 0)}"
        case UopKernel(emit, kernel_loops, body, params):
            names = f"({', '.join(p.name for p in params)})" if params else ""
            yield f"kernel{names} {_emit(emit)}:"
            for loop in kernel_loops:
                factors = f"dst+{loop.dst_factor} src+{loop.src_factor} wgt+{loop.wgt_factor}"
                yield f"{_INDENT}repeat {loop.extent}: {factors}"
            yield from _nested(body)
        case Call(name, args):
            texts = (a.name if isinstance(a, Buffer) else _expr(a, 0) for a in args)
            yield f"{name}({', '.join(texts)})"
        case _:
            yield repr(stmt)


def _dma(stmt: DmaLoad | DmaStore) -> str:
    sram = f"{stmt.sram.name}@{_expr(stmt.sram_index, _TIGHTEST)}"
    dram = f"{stmt.dram.name}@{_expr(stmt.dram_offset, _TIGHTEST)}"
    ends = f"{sram} <- {dram}" if isinstance(stmt, DmaLoad) else f"{sram} -> {dram}"
    sizes = f"{_expr(stmt.y_size, 8)} x {_expr(stmt.x_size, 8)}"
    return f"{ends}, {sizes}, stride={_expr(stmt.x_stride, 0)}"


def _emit(emit: Emit) -> str:
    words = [emit.mode]
    if emit.reset:
        words.append("reset")
    if emit.alu_op is not None:
        words.append(emit.alu_op.name.lower())
    if emit.overwrite:
        words.append("overwrite")
    if emit.fused is not None:
        low, high = emit.fused.bounds
        words.append(f"shift={emit.fused.shift} clip={low}..{high}")
    elif emit.imm is not None:
        words.append(f"imm={emit.imm}")
    return " ".join(words)


def _region(region: Region) -> str:
    axes = (
        _expr(start, 0) if size == 1 else f"{_expr(start, _TIGHTEST)}:+{size}"
        for start, size in zip(region.start, region.shape, strict=True)
    )
    return f"{region.buffer.name}[{', '.join(axes)}]"


_TIGHTEST = 9


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(_expr(e, 0) for e in exprs)


def _expr(expr: Expr, outer: int) -> str:
    """``expr``, in parentheses where it binds less tightly than ``outer``."""
    match expr:
        case Const(value, dtype):
            text = str(bool(value)) if dtype == "bool" else str(value)
            return f"({text})" if text.startswith("-") and outer >= _TIGHTEST else text
        case Var(name):
            return name
        case Load(buffer, indices):
            return f"{buffer.name}[{_list(indices)}]"
        case Cast(a, dtype):
            return f"{dtype}({_expr(a, 0)})"
        case Select(cond, a, b):
            return f"select({_expr(cond, 0)}, {_expr(a, 0)}, {_expr(b, 0)})"
        case Not(a):
            return _wrapped(f"not {_expr(a, _NOT)}", _NOT, outer)
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
            return f"{op}({_expr(a, 0)}, {_expr(b, 0)})"
        case Binary(op, a, b):
            own = _PRECEDENCE[op]
            comparison = own == _PRECEDENCE[BinaryOp.LT]
            left = _expr(a, own + 1 if comparison else own)
            return _wrapped(f"{left} {op} {_expr(b, own + 1)}", own, outer)
    return repr(expr)


def _wrapped(text: str, own: int, outer: int) -> str:
    return f"({text})" if own < outer else text
