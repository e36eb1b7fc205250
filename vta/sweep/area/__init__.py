"""The area of a machine without synthesising it: a model fitted on machines that were."""

from .model import RESOURCES, estimate, held_out

__all__ = ["RESOURCES", "estimate", "held_out"]
