"""How a host reads and writes single words."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vta_isa.registers import WORD_BITS


class WordAccess(wiring.Signature):
    """One 32-bit word is read or written at a time.

    ``request`` and what belongs to it stay until ``done``, which is high for one cycle and brings
    ``value`` of a read, and ``failed`` where there is no such word. ``address`` is in bytes, a
    multiple of 4. ``request`` of the next access may be high in the following cycle.
    """

    def __init__(self):
        super().__init__(
            {
                "request": Out(1),
                "write": Out(1),
                "address": Out(32),
                "data": Out(WORD_BITS),
                "done": In(1),
                "value": In(WORD_BITS),
                "failed": In(1),
            }
        )
