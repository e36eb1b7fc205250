"""An operator ready to be built: its schedule, and how host tensors become its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schedule import Schedule
from ..te import Tensor

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Operator:
    """A scheduled tensor expression with the layout of its arguments.

    ``pack`` turns plain tensors by name into packed ones by parameter name; ``unpack`` turns
    the packed output into the plain one. ``output_shape`` and ``output_dtype`` are the packed
    output's. ``plan`` says in words how the operator was mapped (tile, threads).
    """

    name: str
    schedule: Schedule
    result: Tensor
    pack: Callable[[Arrays], dict[str, NDArray[np.generic]]]
    unpack: Callable[[NDArray[np.generic]], NDArray[np.generic]]
    output_shape: tuple[int, ...]
    output_dtype: str
    plan: str
