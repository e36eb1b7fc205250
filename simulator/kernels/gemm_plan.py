"""How the NumPy engine turns one GEMM instruction into few, large matrix products."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Product:
    """``acc[dst[g, r]] += sum over t of inp[src[r, t]] x wgt[wgt[g, t]]``; no destination twice.

    ``src (r, t)``, ``wgt (g, t)``, ``dst (g, r)``: rows, taps and groups of destinations that
    multiply the same inputs by other weights.
    """

    src: Indices
    wgt: Indices
    dst: Indices


def plan_products(dst: Indices, src: Indices, wgt: Indices, most_taps: int) -> list[Product]:
    """Products that together are the iterations ``(dst, src, wgt)``, each of shape ``(n,)``.

    GEMM only adds to what it writes, so iterations may be put in any order. No product has more
    than ``most_taps`` taps.
    """
    return [
        Product(src[:, first : first + most_taps], wgt[:, first : first + most_taps], dst)
        for src, wgt, dst in _merged(_by_weights(dst, src, wgt))
        for first in range(0, src.shape[1], most_taps)
    ]


def _by_weights(
    dst: Indices, src: Indices, wgt: Indices
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Destinations with the same list of weights: ``dst (r,)``, ``src (r, t)``, ``wgt (t,)``."""
    order = np.argsort(dst, kind="stable")
    entries, starts, counts = np.unique(dst[order], return_index=True, return_counts=True)
    for taps in np.unique(counts):
        chosen = counts == taps
        iterations = order[starts[chosen][:, None] + np.arange(taps)]
        lists, member = np.unique(wgt[iterations], axis=0, return_inverse=True)
        member = member.reshape(-1)
        for number, weights in enumerate(lists):
            rows = np.flatnonzero(member == number)
            yield entries[chosen][rows], src[iterations[rows]], weights


def _merged(
    parts: Iterator[tuple[Indices, Indices, Indices]],
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Parts that read the same inputs in one: ``src (r, t)``, ``wgt (g, t)``, ``dst (g, r)``."""
    same: dict[tuple[tuple[int, ...], bytes], list[tuple[Indices, Indices, Indices]]] = {}
    for dst, src, weights in parts:
        same.setdefault((src.shape, src.tobytes()), []).append((dst, src, weights))
    for group in same.values():
        weights, dsts = (np.stack([part[place] for part in group]) for place in (2, 0))
        yield group[0][1], weights, dsts
