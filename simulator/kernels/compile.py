"""IR text to machine code: a short list of passes, code for exactly the features asked for."""

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import llvmlite
from llvmlite import binding as llvm

from vta_isa.enums import Buffer
from vta_isa.errors import VtaError
from vta_isa.machine import Machine

from .cache import cached
from .emit_run import CHECK, CHECK_PARAMS, RUN, RUN_PARAMS
from .module import emit_module
from .tiers import Tier, host_features

_CTYPES = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64}
_SPEED = 2  # of the code generator; passes are listed in _optimise


@dataclass(frozen=True)
class Code:
    """The entry points of a compiled module. ctypes lets go of the GIL while they run.

    ``engine`` owns the memory they lie in.
    """

    run: Any
    check: Any
    engine: Any


_compiled: dict[tuple[object, ...], Code] = {}  # by what the IR text depends on


def native_code(machine: Machine, tier: Tier) -> Code:
    """The kernels of ``machine`` under ``tier``, compiled at most once per process."""
    depths = (machine.depth(buffer) for buffer in Buffer)
    key = (tier.name, machine.gemm, machine.types, machine.extensions, *depths)
    if key not in _compiled:
        features = tier.features(host_features())
        if features is None:
            raise VtaError(f"simulator tier {tier.name!r} cannot run on this host")
        _compiled[key] = _link(_object_code(emit_module(machine, tier), features))
    return _compiled[key]


def assembly(text: str, triple: str, features: Iterable[str]) -> str:
    """Assembly of a module for any target whose code generator was initialised."""
    target = _target(triple, features)
    code: str = target.emit_assembly(_optimised(text, target))
    return code


def _object_code(text: str, features: Iterable[str]) -> bytes:
    """Object code for this host, from the cache where it is known."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    version = ".".join(map(str, llvm.llvm_version_info))

    def compile_text() -> bytes:
        target = _target(triple, features)
        code: bytes = target.emit_object(_optimised(text, target))
        return code

    key = "\n".join([triple, *sorted(features), version, llvmlite.__version__, text])
    return cached(key, compile_text)


def _target(triple: str, features: Iterable[str]) -> Any:
    """The CPU's name is left out on purpose: under a hypervisor it lies."""
    listed = ",".join(f"+{feature}" for feature in sorted(features))
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(features=listed, opt=_SPEED, jit=True)


def _optimised(text: str, target: Any) -> Any:
    """The module after the few passes that matter here.

    The kernels are vectorised and unrolled already; the standard pipeline would only take longer.
    """
    module = llvm.parse_assembly(text)
    module.verify()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(_SPEED))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_simplify_pass()
    passes.add_loop_rotate_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_strength_reduce_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module


def _link(code: bytes) -> Code:
    target = _target(llvm.get_process_triple(), ())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()

    def entry(name: str, params: dict[str, str]) -> Any:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *(_CTYPES[kind] for kind in params.values()))
        return prototype(engine.get_function_address(name))

    return Code(entry(RUN, RUN_PARAMS), entry(CHECK, CHECK_PARAMS), engine)
