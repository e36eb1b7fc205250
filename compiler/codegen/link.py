"""LLVM IR to machine code of this process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from llvmlite import binding as llvm

from vta_runtime import symbols

from .module import ENTRY
from .parallel import parallel_for_address
from .statements import PARALLEL_FOR

_SPEED = 3  # of host loops
_PLAIN = 0  # of code that only calls the runtime: optimising it takes longer than running it


@dataclass(frozen=True)
class NativeCode:
    """A compiled function; ``engine`` owns the memory it lies in."""

    function: Any
    engine: Any


def optimised(text: str) -> str:
    """The module after the optimiser, as text."""
    return str(_optimised(text, _target(_SPEED), _SPEED))


def link(text: str, params: int, *, computes: bool = True) -> NativeCode:
    """Compile a module and bind what it calls: the runtime's entry points and the thread pool.

    ``computes``: whether it holds loops over data, worth optimising.
    """
    speed = _SPEED if computes else _PLAIN
    target = _target(speed)
    module = _optimised(text, target, speed)
    engine = llvm.create_mcjit_compiler(module, target)
    addresses = {**symbols(), PARALLEL_FOR: parallel_for_address()}
    for function in module.functions:
        if function.is_declaration and function.name in addresses:
            engine.add_global_mapping(function, addresses[function.name])
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * params)
    return NativeCode(prototype(engine.get_function_address(ENTRY)), engine)


def _target(speed: int) -> Any:
    """This host, by its features: the name of its CPU may lie under a hypervisor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(features=features, opt=speed, jit=True)


def _optimised(text: str, target: Any, speed: int) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed)
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    return module
