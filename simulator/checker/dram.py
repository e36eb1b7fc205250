"""DRAM that is both stored and loaded in one stream, cut into cells."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import decode_stream
from vta_isa.enums import Buffer, Opcode
from vta_isa.machine import Machine

from .layout import DRAIN, FILL, HIGH, KIND, LOW, SHARED, UOPS


@dataclass(frozen=True)
class SharedDram:
    """Cells of DRAM, and which of them each instruction touches that touches any.

    ``edges (cells + 1,)``: byte address at which each cell begins, and where the last ends. An
    instruction whose SHARED is ``k`` touches the parts ``rows[k] .. rows[k + 1] - 1``; part ``p``
    is the cells ``cells[2 p] .. cells[2 p + 1] - 1``. What nothing stores is in no cell.
    """

    edges: NDArray[np.int64]
    rows: NDArray[np.int64]
    cells: NDArray[np.int64]


_NOTHING = np.zeros(0, dtype=np.int64)


def shared_dram(words: NDArray[np.uint64], info: NDArray[np.int64], machine: Machine) -> SharedDram:
    """Cut into cells what is stored and loaded, and fill in SHARED of ``info``.

    Streams seldom load what they store, and then nearly nothing is to be done.
    """
    kind, low, high = info[:, KIND], info[:, LOW], info[:, HIGH]
    moves = high > low
    stores = np.flatnonzero(moves & (kind == DRAIN))
    loads = np.flatnonzero(moves & ((kind == FILL) | (kind == UOPS)))
    loads = _overlapping(loads, stores, low, high)
    if not len(loads):
        return SharedDram(_NOTHING, _NOTHING, _NOTHING)
    stores = _overlapping(stores, loads, low, high)
    table = decode_stream(words[np.concatenate([loads, stores])], machine)
    starts, ends, owner = _rows(table, machine)
    first_store_row = int(np.searchsorted(owner, len(loads)))
    edges = _edges(starts, ends, first_store_row)
    # Every row as the cells it shares bytes with.
    last = len(edges) - 1
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, last)
    behind = np.maximum(np.clip(np.searchsorted(edges, ends, side="left"), 0, last), first)
    count = len(loads) + len(stores)
    info[loads, SHARED] = np.arange(len(loads))
    info[stores, SHARED] = np.arange(len(loads), count)
    rows = np.searchsorted(owner, np.arange(count + 1)).astype(np.int64)
    return SharedDram(edges, rows, np.stack([first, behind], axis=1).astype(np.int64).reshape(-1))


def _overlapping(
    chosen: NDArray[np.intp],
    others: NDArray[np.intp],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> NDArray[np.intp]:
    """Those of ``chosen`` whose bytes ``low .. high - 1`` meet the bytes of any of ``others``."""
    if not len(chosen) or not len(others):
        return chosen[:0]
    if low[others].min() >= high[chosen].max() or high[others].max() <= low[chosen].min():
        return chosen[:0]
    by_start = others[np.argsort(low[others])]
    begins, furthest = low[by_start], np.maximum.accumulate(high[by_start])
    starting_below = np.searchsorted(begins, high[chosen])
    reached = furthest[np.maximum(starting_below - 1, 0)]
    meets: NDArray[np.bool_] = (starting_below > 0) & (reached > low[chosen])
    return chosen[meets]


def _rows(
    table: NDArray[np.void], machine: Machine
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Every DRAM row of the LOADs and STOREs: its first byte, the one behind it, its owner.

    The owner is the place in ``table``.
    """
    unit_of = np.array([machine.entry_bytes(buffer) for buffer in Buffer], dtype=np.int64)
    count = table["y_size"]
    owner = np.repeat(np.arange(len(table)), count)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    is_store = table["opcode"][owner] == Opcode.STORE
    unit = unit_of[np.where(is_store, Buffer.OUT, table["buffer"][owner])]
    starts = (table["dram_base"][owner] + row * table["x_stride"][owner]) * unit
    return starts, starts + table["x_size"][owner] * unit, owner


def _edges(
    starts: NDArray[np.int64], ends: NDArray[np.int64], first_store: int
) -> NDArray[np.int64]:
    """Where cells begin: wherever stored bytes do or end, and loads of stored bytes do or end."""
    stored_from, stored_to = np.sort(starts[first_store:]), np.sort(ends[first_store:])
    edges = np.unique(np.concatenate([stored_from, stored_to]))
    open_rows = np.searchsorted(stored_from, edges, side="right") - np.searchsorted(
        stored_to, edges, side="right"
    )
    stored_before = np.concatenate([[0], np.cumsum(open_rows > 0)])  # cells stored, up to here
    load_from, load_to = starts[:first_store], ends[:first_store]
    last = len(edges) - 1
    first = np.clip(np.searchsorted(edges, load_from, side="right") - 1, 0, last)
    behind = np.maximum(np.clip(np.searchsorted(edges, load_to, side="left"), 0, last), first)
    shared = stored_before[behind] > stored_before[first]
    return np.unique(np.concatenate([edges, load_from[shared], load_to[shared]]))
