"""When each instruction of a stream starts and ends, to the cycle (docs/microarchitecture.md)."""

from .simulation import Timing, simulate

__all__ = ["Timing", "simulate"]
