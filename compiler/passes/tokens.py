"""Insert the dependence tokens that order neighbouring stages; the argument is docs/tokens.md."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count, pairwise

from vta_isa.enums import Stage

from ..ir.build import seq
from ..ir.nodes import (
    Alloc,
    Coproc,
    DepPop,
    DepPush,
    For,
    If,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Synchronize,
    Var,
)
from ..ir.visit import walk
from .accesses import accesses, names

EDGES = ((Stage.LOAD, Stage.COMPUTE), (Stage.COMPUTE, Stage.STORE))


def insert_tokens(program: Program) -> Program:
    """Order every read after its write and every overwrite after the reads, stage by stage.

        for k in range(4):                push compute -> load
          coproc load: a <- A[k]          for k in range(4):
          coproc compute: gemm(a)    →      coproc load: pop compute; a <- A[k]; push -> compute
                                            coproc compute: pop load; gemm(a); push -> load
                                          pop compute -> load

    Each edge between neighbouring stages is done on its own and looks only at blocks that touch a
    buffer both stages use. Of two such blocks in a row on different stages, the first pushes
    after its last access and the second pops before its first; around a loop, the last block
    of the body feeds the first. A loop that pops before its first push *wants* a token, and then it
    *leaves* one; a neighbour that needs the same edge gives and takes it, otherwise an extra push
    before and an extra pop after balance it. Nothing is left over at a synchronisation or at the
    end of the function.

    Virtual threads own their buffers, so a thread is ordered like a program of its own, and its
    tokens lie inside its blocks, to be replicated with them.
    """
    body = program.body
    for edge in EDGES:
        body = _Edge(edge, body).insert(body)
    return replace(program, body=body)


# ---------------------------------------------------------------------------------------------
# What one edge sees of a program
# ---------------------------------------------------------------------------------------------


@dataclass
class _Node:
    """A statement, with the tokens to put in and around it; children in ``parts``."""

    stmt: Stmt
    parts: list[_Node] = field(default_factory=list)
    before: list[Stmt] = field(default_factory=list)
    opening: list[Stmt] = field(default_factory=list)  # after ``before``, where it matters
    closing: list[Stmt] = field(default_factory=list)  # before ``after``
    after: list[Stmt] = field(default_factory=list)
    pops: DepPop | None = None  # inside the block, before its first access
    pushes: DepPush | None = None  # inside the block, after its last access


@dataclass(frozen=True)
class _Token:
    """A token a loop wants or leaves, one per virtual thread inside of which it is counted."""

    producer: Stage
    consumer: Stage
    threads: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Item:
    """What a sequence sees of a statement: the stage it starts and ends on, and loop tokens.

    ``first`` and ``last`` are None at a synchronisation, across which nothing needs a token.
    ``head`` and ``tail`` are the nodes that take the pop and the push. ``thread`` is what is
    inside, where the item is one loop over virtual threads.
    """

    first: Stage | None
    last: Stage | None
    head: _Node
    tail: _Node
    wants: _Token | None = None
    leaves: _Token | None = None
    thread: _Item | None = None


class _Edge:
    """The tokens between two neighbouring stages."""

    def __init__(self, stages: tuple[Stage, Stage], body: Stmt):
        self.stages = stages
        touched: dict[Stage, set[str]] = {stage: set() for stage in stages}
        for block in walk(body):
            if isinstance(block, Coproc) and block.stage in touched:
                touched[block.stage] |= names(accesses(block).touched, scratch=True)
        self.shared = frozenset.intersection(*(frozenset(t) for t in touched.values()))
        self.fresh = (Var(f"token.{stages[0].name.lower()}{i}") for i in count())

    def insert(self, body: Stmt) -> Stmt:
        root = _Node(body)
        item = self.visit(root)
        if item is not None:
            self.settle(item, root)
        return self.emit(root)

    # -- what each kind of statement is to its neighbours --------------------------------------

    def visit(self, node: _Node) -> _Item | None:
        """Tokens for everything inside ``node``; None where it is no concern of this edge."""
        match node.stmt:
            case Coproc(stage):
                if stage in self.stages and self.concerns(node.stmt):
                    return _Item(stage, stage, node, node)
                return None
            case Synchronize():
                return _Item(None, None, node, node)
            case Seq(stmts):
                node.parts = [_Node(s) for s in stmts]
                return self.sequence([i for part in node.parts if (i := self.visit(part))])
            case Alloc(_, body):
                node.parts = [_Node(body)]
                return self.visit(node.parts[0])
            case For(body=body):
                node.parts = [_Node(body)]
                inner = self.visit(node.parts[0])
                return None if inner is None else self.loop(node, inner)
            case If(_, then, orelse):
                return self.branch(node, [then] if orelse is None else [then, orelse])
        return None

    def concerns(self, stmt: Stmt) -> bool:
        return bool(names(accesses(stmt).touched, scratch=True) & self.shared)

    def sequence(self, items: list[_Item]) -> _Item | None:
        if len(items) < 2:
            return items[0] if items else None
        for x, y in pairwise(items):
            self.connect(x, y)
        start, end = items[0], items[-1]
        return _Item(start.first, end.last, start.head, end.tail, start.wants, end.leaves)

    def loop(self, node: _Node, body: _Item) -> _Item:
        assert isinstance(node.stmt, For)
        if node.stmt.kind is LoopKind.VTHREAD:
            n = node.stmt.extent
            wants, leaves = (t and _lifted(t, n) for t in (body.wants, body.leaves))
            return _Item(body.first, body.last, node, node, wants, leaves, body)
        if body.first is None or body.last is None or body.first is body.last:
            self.settle(body, node.parts[0])
            return _Item(body.first, body.last, node, node)
        carried = self.carry(body)
        return _Item(body.first, body.last, node, node, carried, carried)

    def carry(self, body: _Item) -> _Token:
        """The edge from the end of a loop's body to its start, as the token it circulates."""
        assert body.first is not None
        assert body.last is not None
        if body.thread is not None:
            return _lifted(self.carry(body.thread), _extent(body.head))
        if body.wants is None or body.wants.threads:
            self.supply(body.wants, body.head)
            self.pop(body.head, body.last, body.first)
        if body.leaves is None or body.leaves.threads:
            self.drain(body.leaves, body.tail)
            self.push(body.tail, body.last, body.first)
        return _Token(body.last, body.first)

    def branch(self, node: _Node, arms: list[Stmt]) -> _Item | None:
        """A branch is balanced inside; tokens around it order whatever arm is taken."""
        node.parts = [_Node(arm) for arm in arms]
        items = [self.visit(part) for part in node.parts]
        for part, item in zip(node.parts, items, strict=True):
            if item is not None:
                self.settle(item, part)
        stages = {
            s.stage
            for s in walk(node.stmt)
            if isinstance(s, Coproc) and s.stage in self.stages and self.concerns(s)
        }
        synchronizes = any(isinstance(s, Synchronize) for s in walk(node.stmt))
        if not stages and not synchronizes:
            return None
        if len(stages) == 1 and not synchronizes:
            (stage,) = stages
            return _Item(stage, stage, node, node)
        # Both stages are inside: a handshake before and one after, and no token across.
        a, b = self.stages
        node.opening = [_alone(DepPush(a, b)), _alone(DepPop(a, b))]
        node.closing = [_alone(DepPush(a, b)), _alone(DepPop(a, b))]
        return _Item(a, b, node, node)

    # -- placing tokens ------------------------------------------------------------------------

    def connect(self, x: _Item, y: _Item) -> None:
        """Order ``y`` after ``x``, its predecessor."""
        if x.last is None or y.first is None or x.last is y.first:
            self.drain(x.leaves, x.tail)
            self.supply(y.wants, y.head)
            return
        # Whatever x leaves and y wants is a token of this very edge: the only one towards y.first.
        if x.leaves is not None and x.leaves == y.wants:
            return
        given = x.leaves is not None and not x.leaves.threads and y.wants is None
        taken = y.wants is not None and not y.wants.threads and x.leaves is None
        if not given:
            self.drain(x.leaves, x.tail)
            self.push(x.tail, x.last, y.first)
        if not taken:
            self.supply(y.wants, y.head)
            self.pop(y.head, x.last, y.first)

    def settle(self, item: _Item, within: _Node) -> None:
        """Balance what ``item`` wants and leaves, at the two ends of ``within``."""
        self.supply(item.wants, within)
        self.drain(item.leaves, within)

    def supply(self, token: _Token | None, node: _Node) -> None:
        if token is not None:
            push = _alone(DepPush(token.producer, token.consumer))
            node.before.append(self.per_thread(push, token))

    def drain(self, token: _Token | None, node: _Node) -> None:
        if token is not None:
            pop = _alone(DepPop(token.producer, token.consumer))
            node.after.append(self.per_thread(pop, token))

    def per_thread(self, stmt: Stmt, token: _Token) -> Stmt:
        for extent in token.threads:
            stmt = For(next(self.fresh), extent, stmt, LoopKind.VTHREAD)
        return stmt

    def push(self, node: _Node, producer: Stage, consumer: Stage) -> None:
        if isinstance(node.stmt, Coproc):
            node.pushes = DepPush(producer, consumer)
        else:
            node.after.append(_alone(DepPush(producer, consumer)))

    def pop(self, node: _Node, producer: Stage, consumer: Stage) -> None:
        if isinstance(node.stmt, Coproc):
            node.pops = DepPop(producer, consumer)
        else:
            node.before.append(_alone(DepPop(producer, consumer)))

    # -- writing it down -----------------------------------------------------------------------

    def emit(self, node: _Node) -> Stmt:
        parts = [self.emit(part) for part in node.parts]
        stmt = node.stmt
        match stmt:
            case Coproc(stage, body) if node.pops or node.pushes:
                stmt = Coproc(stage, self.emit_block(body, node))
            case Seq() if parts:
                stmt = seq(parts)
            case Alloc() | For() if parts:
                stmt = replace(stmt, body=parts[0])
            case If(cond) if parts:
                stmt = If(cond, *parts)
        around = [*node.before, *node.opening, stmt, *node.closing, *node.after]
        return stmt if len(around) == 1 else seq(around)

    def emit_block(self, body: Stmt, node: _Node) -> Stmt:
        """The pop goes before the first statement concerned, the push after the last: what else
        the block holds need not wait, nor be waited for."""
        stmts = list(body.stmts) if isinstance(body, Seq) else [body]
        concerned = [i for i, s in enumerate(stmts) if self.concerns(s)]
        if node.pushes is not None:
            stmts.insert(concerned[-1] + 1, node.pushes)
        if node.pops is not None:
            stmts.insert(concerned[0], node.pops)
        return seq(stmts)


def _lifted(token: _Token, threads: int) -> _Token:
    return replace(token, threads=(*token.threads, threads))


def _extent(node: _Node) -> int:
    assert isinstance(node.stmt, For)
    return node.stmt.extent


def _alone(token: DepPush | DepPop) -> Stmt:
    """A block of nothing but a token, of the stage that handles it."""
    return Coproc(token.producer if isinstance(token, DepPush) else token.consumer, token)
