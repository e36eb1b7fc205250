"""The RTL, compiled by Verilator into a library and driven from Python at full speed."""

from .core import VerilatedCore, run_rtl
from .waves import Waves

__all__ = ["VerilatedCore", "Waves", "run_rtl"]
