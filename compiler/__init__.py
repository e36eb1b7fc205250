"""Tensor expressions, schedules and loop IR: from what to compute to native code that computes it."""
