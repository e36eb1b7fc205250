"""A thin writer of LLVM IR text: enough to emit loops, branches and vector operations readably.

Text rather than objects because the kernels are a couple of thousand lines and text is an order of
magnitude quicker to produce. Loop counters live in stack slots; the first optimisation pass (SROA)
turns them into registers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Function:
    """The body of one LLVM function while it is being written.

    ``params`` maps names to LLVM types; the parameter ``n`` is the value ``%n``. Values are
    strings: SSA names or literals.
    """

    def __init__(
        self, name: str, params: dict[str, str], result: str = "void", export: bool = False
    ):
        self.name = name
        self.params = params
        self.result = result
        self.export = export
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def text(self) -> str:
        """The definition, ready to be part of a module. Attribute group #0 is the module's."""
        arguments = ", ".join(f"{kind} %{name}" for name, kind in self.params.items())
        linkage = "" if self.export else "internal "
        body = "\n".join(["entry:", *self._slots, *self._lines])
        return f"define {linkage}{self.result} @{self.name}({arguments}) #0 {{\n{body}\n}}\n"

    def fresh(self, stem: str = "t") -> str:
        """A name no other value or label of this function has, without its ``%``."""
        self._count += 1
        return f"{stem}{self._count}"

    def do(self, text: str) -> None:
        """An instruction without result."""
        self._lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """An instruction with a result; returns the value's name."""
        name = f"%{self.fresh()}"
        self._lines.append(f"  {name} = {text}")
        return name

    def slot(self, kind: str, value: str) -> str:
        """A variable: a pointer to a stack slot that holds ``value`` now."""
        name = self.scratch(kind)
        self.do(f"store {kind} {value}, ptr {name}")
        return name

    def scratch(self, kind: str, align: int = 8) -> str:
        """Uninitialised stack memory of type ``kind``, allocated once per call."""
        name = f"%{self.fresh('s')}"
        self._slots.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def get(self, slot: str, kind: str = "i64") -> str:
        return self.op(f"load {kind}, ptr {slot}")

    def set(self, slot: str, value: str, kind: str = "i64") -> None:
        self.do(f"store {kind} {value}, ptr {slot}")

    def binary(self, name: str, a: str | int, b: str | int, kind: str = "i64") -> str:
        return self.op(f"{name} {kind} {a}, {b}")

    def add(self, a: str | int, b: str | int) -> str:
        return self.binary("add", a, b)

    def sub(self, a: str | int, b: str | int) -> str:
        return self.binary("sub", a, b)

    def mul(self, a: str | int, b: str | int) -> str:
        return self.binary("mul", a, b)

    def compare(self, how: str, a: str | int, b: str | int, kind: str = "i64") -> str:
        """``how`` is eq, ne, slt, sgt, ...; the result is an i1."""
        return self.op(f"icmp {how} {kind} {a}, {b}")

    def select(self, condition: str, a: str | int, b: str | int, kind: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def at(self, base: str, offset: str | int) -> str:
        """The pointer ``offset`` bytes past ``base``."""
        return base if offset == 0 else self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def entry(self, base: str, index: str | int, size: int) -> str:
        """The pointer to entry ``index`` of an array at ``base`` with entries of ``size`` bytes."""
        return self.op(f"getelementptr [{size} x i8], ptr {base}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int = 1) -> str:
        return self.op(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int = 1) -> None:
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def splat(self, lanes: int, kind: str, value: str) -> str:
        """A vector of ``lanes`` copies of the scalar ``value``."""
        vector = f"<{lanes} x {kind}>"
        first = self.op(f"insertelement {vector} poison, {kind} {value}, i32 0")
        return self.op(
            f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )

    def shuffle(self, vector: str, a: str, b: str, lanes: Sequence[int]) -> str:
        """The lanes of ``a`` and ``b`` (both of type ``vector``), picked by number."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.op(f"shufflevector {vector} {a}, {vector} {b}, <{len(lanes)} x i32> <{mask}>")

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{other}")

    @contextmanager
    def loop(self, count: str | int, start: str | int = 0) -> Iterator[str]:
        """``for index in range(start, count)``; yields the index, an i64. Once is no loop."""
        if (start, count) == (0, 1):
            yield "0"
            return
        counter = self.slot("i64", str(start))
        with self.while_below(counter, count) as index:
            yield index
            self.set(counter, self.add(index, 1))

    @contextmanager
    def while_below(self, slot: str, limit: str | int) -> Iterator[str]:
        """``while slot < limit``; yields the value. The body must move the slot, an i64, itself."""
        stem = self.fresh("while")
        self.jump(f"{stem}.test")
        self.label(f"{stem}.test")
        value = self.get(slot)
        self.branch(self.compare("slt", value, limit), f"{stem}.body", f"{stem}.end")
        self.label(f"{stem}.body")
        yield value
        self.jump(f"{stem}.test")
        self.label(f"{stem}.end")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """``if condition:`` (an i1)."""
        stem = self.fresh("when")
        self.branch(condition, f"{stem}.then", f"{stem}.end")
        self.label(f"{stem}.then")
        yield
        self.jump(f"{stem}.end")
        self.label(f"{stem}.end")


def constant(kind: str, values: Sequence[int]) -> str:
    """A literal vector of ``kind`` lanes."""
    return "<" + ", ".join(f"{kind} {value}" for value in values) + ">"
