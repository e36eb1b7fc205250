"""What AXI demands of whoever sends on a channel."""

from collections.abc import Iterable

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Signal, Value

ADDRESS = ("addr", "len", "size", "burst", "cache", "prot")  # the payload of AR and AW
ALWAYS = Const(1)


def sender_is_stable(m: Module, name: str, valid: Value, ready: Value, payload: Iterable) -> None:
    """Asserts that what is offered stays, unchanged, until it is taken."""
    _stable(m, Assert, name, valid, ready, payload, ALWAYS)


def assume_sender_is_stable(
    m: Module, name: str, valid: Value, ready: Value, payload: Iterable, while_: Value = ALWAYS
) -> None:
    """The same of a sender outside of what is proven, in cycles with ``while_``."""
    _stable(m, Assume, name, valid, ready, payload, while_)


def _stable(
    m: Module, check, name: str, valid: Value, ready: Value, payload: Iterable, while_: Value
) -> None:
    now = Cat(payload)
    stalled, before = Signal(name=f"{name}_stalled"), Signal(len(now), name=f"{name}_before")
    m.d.sync += [stalled.eq(valid & ~ready), before.eq(now)]
    with m.If(stalled & while_):
        m.d.comb += check(valid & (now == before))
