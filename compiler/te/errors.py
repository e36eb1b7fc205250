"""The error of a tensor expression that means nothing."""

from vta_isa.errors import VtaError


class TensorError(VtaError):
    """A tensor expression that is malformed: types, ranks, names or where a reduction stands."""
