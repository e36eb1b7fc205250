"""Schedules: how to compute. A program that primitives rewrite, one file per primitive."""

from .schedule import Schedule, Step, create_schedule, replay

__all__ = ["Schedule", "Step", "create_schedule", "replay"]
