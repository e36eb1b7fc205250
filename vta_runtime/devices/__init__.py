"""Devices: each file adapts one kind of machine to the ``Device`` protocol."""
