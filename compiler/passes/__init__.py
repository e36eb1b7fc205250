"""Passes that lower a scheduled program, one per file; ``compiler.pipeline`` orders them.

A pass is a function from a program (and, where it matters, the machine) to a program. Its
docstring draws what changes as before → after.
"""
