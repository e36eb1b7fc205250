"""The C symbols compiled code links against, as pointers to functions written in Python.

Every pointer serves every runtime: a call goes to the one that is current on the calling thread.
An exception cannot cross native code. The first one is kept, further calls return at once, and
``Runtime.check`` raises it when the native code has returned.
"""

import ctypes
import itertools
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from vta_isa.errors import RuntimeCallError

from .calls import CALLS, INT, Call
from .current import current_runtime, keep_error
from .runtime import Runtime

_FINIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_SLOT_NUMBERS = itertools.count(1)  # what a call site's static handle is set to; never reused
_KEY_LIMIT = 100  # kernels per call site that the published runtime accepts
_CLOSURE_BYTES = 4  # the only closure size but 0 in the contract: one 32-bit integer
_FAILED = -1


@cache
def symbols() -> Mapping[str, int]:
    """C name -> address of a C-callable function, for every entry of ``calls.CALLS``."""
    return MappingProxyType(
        {
            name: _value(ctypes.cast(function, ctypes.c_void_p))
            for name, function in functions().items()
        }
    )


@cache
def functions() -> Mapping[str, Any]:
    """C name -> ctypes function pointer; kept for the life of the process."""
    pointers = {}
    for call in CALLS.values():
        prototype = ctypes.CFUNCTYPE(call.result, *(ctype for _, ctype in call.arguments))
        pointers[call.c_name] = prototype(_entry(call))
    return MappingProxyType(pointers)


def _value(pointer: ctypes.c_void_p) -> int:
    assert pointer.value is not None, "a function has an address"
    return pointer.value


def _entry(call: Call) -> Callable[..., int | None]:
    """The Python function behind one C symbol."""
    act = _ACTIONS.get(call.c_name) or _method(call)
    failed = _FAILED if call.result is INT else None if call.result is None else 0

    def entry(*arguments: Any) -> int | None:
        runtime = current_runtime()
        try:
            if runtime is None:
                raise RuntimeCallError(
                    f"{call.c_name}: no runtime is current on this thread; run compiled code "
                    f"inside `with runtime:`"
                )
            if runtime.failed:
                return failed
            result = act(runtime, *arguments)
        except BaseException as error:  # nothing may pass into native code; check() raises it
            (runtime.keep_error if runtime is not None else keep_error)(error)
            return failed
        return None if call.result is None else int(result)

    return entry


def _method(call: Call) -> Callable[..., Any]:
    method = getattr(Runtime, call.method)
    if not call.takes_command:
        return method  # type: ignore[no-any-return]

    def act(runtime: Runtime, command: int | None, *arguments: Any) -> Any:
        if command != runtime.tls_command_handle():
            raise RuntimeCallError(
                f"{call.c_name}: cmd = {command} is not this thread's command handle "
                f"{runtime.tls_command_handle()}; pass what VTATLSCommandHandle returned"
            )
        return method(runtime, *arguments)

    return act


def _buffer_cpu_ptr(runtime: Runtime, command: int | None, buffer: int | None) -> int:
    return runtime.buffer_cpu_ptr(buffer or 0)


def _push_op(c_name: str, push: Callable[..., None]) -> Callable[..., int]:
    """VTAPushGEMMOp and VTAPushALUOp: kernels are known by call site and closure value."""

    def act(
        runtime: Runtime, handle: int | None, finit: int | None, signature: int | None, nbytes: int
    ) -> int:
        if not handle or not finit:
            raise RuntimeCallError(
                f"{c_name}: null {'finit' if handle else 'handle'}; pass the address of a static "
                f"pointer that starts as null, and a function int finit(void *signature)"
            )
        slot = ctypes.c_size_t.from_address(handle)
        if slot.value == 0:
            slot.value = next(_SLOT_NUMBERS)
        key = _closure_key(c_name, runtime, signature, nbytes)

        def record(_: Runtime) -> None:
            status = _FINIT(finit)(signature)
            runtime.check()  # what the calls that finit made ran into
            if status != 0:
                raise RuntimeCallError(f"{c_name}: finit returned {status}; 0 means success")

        push(runtime, (slot.value, key), record)
        return 0

    return act


def _closure_key(c_name: str, runtime: Runtime, signature: int | None, nbytes: int) -> int:
    """0 without a closure, otherwise its 32-bit value + 1."""
    if nbytes == 0:
        return 0
    if nbytes != _CLOSURE_BYTES or not signature:
        raise RuntimeCallError(
            f"{c_name}: nbytes = {nbytes} with signature {signature or 0:#x}; a closure is nothing "
            f"(0 bytes) or one 32-bit integer (4 bytes at signature)"
        )
    key = ctypes.c_int32.from_address(signature).value + 1
    if key < 1 or (runtime.portable and key >= _KEY_LIMIT):
        allowed = f"0..{_KEY_LIMIT - 2}" if runtime.portable else "0 or more"
        raise RuntimeCallError(
            f"{c_name}: closure value {key - 1}; it must be {allowed}, since it numbers the "
            f"kernels of a call site"
        )
    return key


_ACTIONS: dict[str, Callable[..., Any]] = {
    "VTABufferCPUPtr": _buffer_cpu_ptr,
    "VTAPushGEMMOp": _push_op("VTAPushGEMMOp", Runtime.push_gemm_op),
    "VTAPushALUOp": _push_op("VTAPushALUOp", Runtime.push_alu_op),
}
