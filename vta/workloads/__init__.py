"""What to run: layers with their shapes, described in YAML."""

from .layers import Add, Clip, ConcreteEpilogue, Conv2d, Dense, Epilogue, Layer, Relu, Shift
from .load import load_workload
from .workload import Workload, about_layer

__all__ = [
    "Add",
    "Clip",
    "ConcreteEpilogue",
    "Conv2d",
    "Dense",
    "Epilogue",
    "Layer",
    "Relu",
    "Shift",
    "Workload",
    "about_layer",
    "load_workload",
]
