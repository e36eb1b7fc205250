"""Operators: what they compute and how they are scheduled, side by side."""

from .conv2d import Conv2d, conv2d, tile_conv2d
from .dense import Dense, dense, tile_dense
from .elementwise import Elementwise, ElementwiseTile, elementwise, tile_elementwise
from .epilogue import Epilogue
from .operator import Operator
from .tiles import Tile

__all__ = [
    "Conv2d",
    "Dense",
    "Elementwise",
    "ElementwiseTile",
    "Epilogue",
    "Operator",
    "Tile",
    "conv2d",
    "dense",
    "elementwise",
    "tile_conv2d",
    "tile_dense",
    "tile_elementwise",
]
