"""Operators: what they compute and how they are scheduled, side by side."""

from .conv2d import Conv2d, conv2d
from .dense import Dense, dense
from .elementwise import Elementwise, elementwise
from .epilogue import Epilogue
from .operator import Operator

__all__ = [
    "Conv2d",
    "Dense",
    "Elementwise",
    "Epilogue",
    "Operator",
    "conv2d",
    "dense",
    "elementwise",
]
