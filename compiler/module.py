"""A compiled program: what it was at every stage, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vta_isa import Buffer as Memory
from vta_isa import CompileError, Machine, VtaError, pack_entries, unpack_entries
from vta_runtime import DEVICE_TO_HOST, HOST_TO_DEVICE, Runtime

from .codegen.module import emit_llvm
from .codegen.statements import device_buffers, host_buffers
from .ir.nodes import Buffer, DmaLoad, DmaStore, Program
from .ir.printer import to_text
from .ir.visit import walk
from .passes.accesses import MEMORY_OF, accesses
from .pipeline import lower

if TYPE_CHECKING:
    from .codegen.link import NativeCode
    from .schedule import Schedule

_FORMS = {"loops": "uops"}  # a form that is the program after a pass of another name
_ERRORS = {1: "an integer division by zero", 2: "a shift by less than 0 or by the width or more"}

Array = NDArray[np.generic]
"""An argument of a program."""


def build(source: Program | Schedule, machine: Machine) -> Module:
    """Lower a program, or the program of a schedule, for ``machine``."""
    program = source if isinstance(source, Program) else source.program
    return Module(program, machine)


class Module:
    """A program lowered for one machine.

    It can run any number of times, on any number of runtimes; each runtime records the micro-op
    kernels anew, since call sites and kernels are told apart per runtime.
    """

    def __init__(self, program: Program, machine: Machine):
        self.program = program
        self.machine = machine
        self.stages = {"schedule": program, **dict(lower(program, machine))}
        self._memories = _memories(self.stages["dma"], machine)
        body = self.stages["calls"].body
        self._on_device = device_buffers(body)
        self.llvm = emit_llvm(self.stages["calls"])

    @property
    def uses_accelerator(self) -> bool:
        """Whether running it needs a runtime."""
        return bool(self._on_device)

    def forms(self) -> tuple[str, ...]:
        """What ``text`` shows: the schedule, the program after each pass, LLVM IR."""
        return (*self.stages, *_FORMS, "llvm")

    def text(self, form: str) -> str:
        """The program as ``schedule``, ``loops``, ``calls``, ``llvm`` or after a pass."""
        if form == "llvm":
            return self.llvm
        stage = _FORMS.get(form, form)
        if stage not in self.stages:
            raise CompileError(f"there is no form {form!r}; there are {', '.join(self.forms())}")
        return to_text(self.stages[stage])

    def run(
        self, arrays: Sequence[Array] | Mapping[str, Array], runtime: Runtime | None = None
    ) -> None:
        """Execute on ``arrays``: by name, or in the order of the program's parameters.

        Outputs are written in place. A program that uses the accelerator needs ``runtime``, whose
        launches tell cycles afterwards.
        """
        if isinstance(arrays, Mapping):
            arrays = self._by_name(arrays)
        self._check(arrays)
        if not self.uses_accelerator:
            self._run_on_host(arrays)
            return
        if runtime is None:
            raise VtaError(f"{self.program.name} uses the accelerator: run it with a Runtime")
        if runtime.machine.hash != self.machine.hash:
            raise VtaError(
                f"{self.program.name} is compiled for {self.machine.name} ({self.machine.hash}), "
                f"the runtime serves {runtime.machine.name} ({runtime.machine.hash})"
            )
        self._run_on(runtime, arrays)

    # -----------------------------------------------------------------------------------------

    def _by_name(self, arrays: Mapping[str, Array]) -> list[Array]:
        names = [b.name for b in self.program.params]
        if sorted(arrays) != sorted(names):
            raise VtaError(
                f"{self.program.name} takes arrays named {', '.join(names)}, "
                f"got {', '.join(arrays)}"
            )
        return [arrays[name] for name in names]

    def _check(self, arrays: Sequence[Array]) -> None:
        params = self.program.params
        if len(arrays) != len(params):
            names = ", ".join(b.name for b in params)
            raise VtaError(
                f"{self.program.name} takes {len(params)} arrays ({names}), got {len(arrays)}"
            )
        for buffer, array in zip(params, arrays, strict=True):
            if array.shape != buffer.shape or array.dtype != np.dtype(buffer.dtype):
                raise VtaError(
                    f"{self.program.name}: {buffer.name} is {array.dtype}{list(array.shape)}, "
                    f"expected {buffer.dtype}{list(buffer.shape)}"
                )

    @cached_property
    def _native(self) -> NativeCode:
        from .codegen.link import link

        computes = bool(host_buffers(self.stages["calls"].body))
        return link(self.llvm, len(self.program.params), computes=computes)

    @cached_property
    def _written(self) -> set[str]:
        written = {*self.program.outputs, *accesses(self.stages["dma"].body).writes}
        return {b.name for b in written}

    def _run_on_host(self, arrays: Sequence[Array]) -> None:
        # Native code may assume that parameters do not overlap: work on copies where they could.
        work = [np.array(a, order="C", copy=True) for a in arrays]
        self._call([w.ctypes.data for w in work])
        self._copy_outputs(work, arrays)

    def _copy_outputs(self, work: Sequence[Array], arrays: Sequence[Array]) -> None:
        for buffer, done, array in zip(self.program.params, work, arrays, strict=True):
            if buffer.name in self._written:
                array[...] = done

    def _run_on(self, runtime: Runtime, arrays: Sequence[Array]) -> None:
        images = [self._packed(b, a) for b, a in zip(self.program.params, arrays, strict=True)]
        on_device = [b.name in self._on_device for b in self.program.params]
        handles: list[int] = []
        try:
            with runtime:
                arguments = []
                for image, device in zip(images, on_device, strict=True):
                    if device:
                        handles.append(runtime.buffer_alloc(max(1, image.nbytes)))
                        runtime.buffer_copy(image, 0, handles[-1], 0, image.nbytes, HOST_TO_DEVICE)
                    arguments.append(handles[-1] if device else image.ctypes.data)
                self._call(arguments)
                runtime.check()
            for argument, image, device in zip(arguments, images, on_device, strict=True):
                if device:
                    runtime.buffer_copy(argument, 0, image, 0, image.nbytes, DEVICE_TO_HOST)
        finally:
            for handle in handles:
                runtime.buffer_free(handle)
        work = [self._unpacked(b, i) for b, i in zip(self.program.params, images, strict=True)]
        self._copy_outputs(work, arrays)

    def _call(self, arguments: list[int]) -> None:
        error = self._native.function(*arguments)
        if error:
            raise VtaError(f"{self.program.name}: {_ERRORS[error]} while it ran")

    def _packed(self, buffer: Buffer, array: Array) -> NDArray[Any]:
        """The bytes of an argument in DRAM; scalars below a byte are packed."""
        memory = self._memories.get(buffer.name)
        if memory is None:
            return np.array(array, order="C", copy=True)
        entries = np.ascontiguousarray(array).reshape(-1, *self.machine.entry_shape(memory))
        return pack_entries(entries, memory, self.machine)

    def _unpacked(self, buffer: Buffer, image: NDArray[Any]) -> Array:
        memory = self._memories.get(buffer.name)
        if memory is None:
            return image
        return unpack_entries(image, memory, self.machine).reshape(buffer.shape)


def _memories(program: Program, machine: Machine) -> dict[str, Memory]:
    """DRAM buffers whose scalars are narrower than a byte, and the memory they feed or drain."""
    found: dict[str, Memory] = {}
    for stmt in walk(program.body):
        match stmt:
            case DmaLoad(sram, _, dram):
                memory = MEMORY_OF[sram.scope]
            case DmaStore(_, _, dram):
                memory = Memory.OUT
            case _:
                continue
        if machine.bits(memory) >= 8:
            continue
        other = found.setdefault(dram.name, memory)
        if machine.bits(other) != machine.bits(memory):
            raise CompileError(
                f"{dram.name} holds scalars of {machine.bits(other)} bits for {other.name} and of "
                f"{machine.bits(memory)} for {memory.name}; use two buffers"
            )
    for name in found.keys() & host_buffers(program.body):
        raise CompileError(
            f"{name} holds scalars of {machine.bits(found[name])} bits packed for the accelerator; "
            f"the host cannot index it"
        )
    return found
