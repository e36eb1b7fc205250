"""What can go wrong on the way to an FPGA."""

from vta_isa.errors import VtaError


class SynthesisError(VtaError):
    """A tool that is missing, or that gave up; the message has its last words."""
