"""The ``vta`` command: each file parses for one group of commands, calls the library and prints."""

from .main import main

__all__ = ["main"]
