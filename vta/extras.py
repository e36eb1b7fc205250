"""Packages that an extra installs, where it is left out."""

from collections.abc import Iterator
from contextlib import contextmanager

from vta_isa.errors import VtaError


@contextmanager
def needs_amaranth(extra: str) -> Iterator[None]:
    """Around imports of ``vta_hw``: a VtaError that names the extra where Amaranth is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "amaranth":
            raise
        raise VtaError(
            f"amaranth is not installed; it comes with `pip install 'vta-sdk[{extra}]'`"
        ) from None
