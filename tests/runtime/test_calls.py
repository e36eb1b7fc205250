"""The table of entry points against the methods and the symbols made from it."""

import inspect

import pytest

from vta_runtime import CALLS, Runtime, symbols

# The contract, spelled out once more.
NAMES = """
VTABufferAlloc VTABufferFree VTABufferCopy VTATLSCommandHandle VTARuntimeShutdown VTABufferCPUPtr
VTAWriteBarrier VTAReadBarrier VTASetDebugMode VTALoadBuffer2D VTAStoreBuffer2D VTAUopPush
VTAUopLoopBegin VTAUopLoopEnd VTAPushGEMMOp VTAPushALUOp VTADepPush VTADepPop VTASynchronize
""".split()


def test_every_entry_point_of_the_contract_has_an_address_of_its_own():
    assert list(CALLS) == NAMES
    assert list(symbols()) == NAMES
    assert len(set(symbols().values())) == len(NAMES)


# Python pushes take a key and a function in the place of handle, finit and closure.
PUSHES = ("VTAPushGEMMOp", "VTAPushALUOp")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PUSHES])
def test_methods_take_the_arguments_of_the_table(name):
    call = CALLS[name]
    names = [argument for argument, _ in call.arguments if argument != "cmd"]
    assert list(inspect.signature(getattr(Runtime, call.method)).parameters) == ["self", *names]


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_point_says_what_it_does(name):
    assert CALLS[name].doc.endswith(".")
    assert "\n" not in CALLS[name].doc
    assert getattr(Runtime, CALLS[name].method).__doc__
