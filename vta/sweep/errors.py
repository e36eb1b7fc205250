"""What can go wrong with a sweep as a whole; a point that fails is a row, not an error."""

from vta_isa.errors import VtaError


class SweepError(VtaError):
    """A sweep file, a results folder or a cluster that cannot be used."""
