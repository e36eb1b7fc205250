"""Figures of a run as tables and pictures."""
