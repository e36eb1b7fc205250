"""Writes the text of LLVM functions: fresh names, basic blocks, loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count


class ModuleWriter:
    """The text of a module: functions, globals and metadata, in any order."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.declared: dict[str, str] = {}
        self._metadata: list[str] = []
        self._names = count()

    def unique(self, stem: str) -> str:
        """A global name that no other has."""
        return f"{stem}.{next(self._names)}"

    def declare(self, name: str, result: str, params: list[str]) -> str:
        """A function defined elsewhere; returns its operand."""
        self.declared[name] = f"declare {result} @{name}({', '.join(params)})"
        return f"@{name}"

    def loop_metadata(self, *properties: str) -> str:
        """What a loop's backward branch carries; the first operand must be the node itself."""
        own = len(self._metadata)
        self._metadata.append("")
        refs = [f"!{own}"]
        for text in properties:
            refs.append(f"!{len(self._metadata)}")
            self._metadata.append(f"!{len(self._metadata)} = !{{{text}}}")
        self._metadata[own] = f"!{own} = distinct !{{{', '.join(refs)}}}"
        return f"!llvm.loop !{own}"

    def access_group(self) -> str:
        """A name for the memory accesses of one loop."""
        own = len(self._metadata)
        self._metadata.append(f"!{own} = distinct !{{}}")
        return f"!{own}"

    def text(self) -> str:
        return "\n\n".join([*self.parts, *self.declared.values(), "\n".join(self._metadata)]) + "\n"


class FunctionWriter:
    """The body of one function, one instruction at a time."""

    def __init__(self, module: ModuleWriter, header: str):
        self.module = module
        self.header = header
        self.lines: list[str] = []
        self.entry: list[str] = []  # stack slots, which belong into the first block
        self.block = "entry"
        self.access = ""  # what loads and stores of buffers carry: the access group of their loop
        self._numbers = count()

    def let(self, text: str) -> str:
        """The result of an instruction."""
        name = f"%v{next(self._numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def slot(self, kind: str, align: int = 8) -> str:
        """A place on the stack that lives as long as the call."""
        name = f"%s{next(self._numbers)}"
        self.entry.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def label(self) -> str:
        return f"b{next(self._numbers)}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, cond: str, yes: str, no: str, metadata: str = "") -> None:
        suffix = f", {metadata}" if metadata else ""
        self.do(f"br i1 {cond}, label %{yes}, label %{no}{suffix}")

    def loop(self, first: str, stop: str, body: Callable[[str], None], metadata: str = "") -> None:
        """``body(i)`` for i from ``first`` to ``stop - 1``, at least once; both are i64."""
        before, head, after = self.block, self.label(), self.label()
        index, following = f"%i{next(self._numbers)}", f"%n{next(self._numbers)}"
        self.jump(head)
        self.start(head)
        hole = len(self.lines)  # the phi names the block the body ends in
        self.lines.append("")
        body(index)
        phi = f"phi i64 [ {first}, %{before} ], [ {following}, %{self.block} ]"
        self.lines[hole] = f"  {index} = {phi}"
        self.do(f"{following} = add nuw nsw i64 {index}, 1")
        done = self.let(f"icmp eq i64 {following}, {stop}")
        self.branch(done, after, head, metadata)
        self.start(after)

    def choose(self, cond: str, kind: str, yes: Callable[[], str], no: Callable[[], str]) -> str:
        """``yes()`` or ``no()``, of which only one is computed."""
        then, other, after = self.label(), self.label(), self.label()
        self.branch(cond, then, other)
        arms: list[str] = []
        for label, compute in ((then, yes), (other, no)):
            self.start(label)
            result = compute()
            arms.append(f"[ {result}, %{self.block} ]")
            self.jump(after)
        self.start(after)
        return self.let(f"phi {kind} {', '.join(arms)}")

    def finish(self, result: str) -> None:
        """Return, and add the function to the module."""
        self.do(f"ret {result}")
        text = "\n".join([f"{self.header} {{", "entry:", *self.entry, *self.lines, "}"])
        self.module.parts.append(text)
