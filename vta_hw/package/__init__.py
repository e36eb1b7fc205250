"""Everything `vta rtl` writes: the machine as files for other tools."""

from .files import Kind, package
from .manifest import digest

__all__ = ["Kind", "digest", "package"]
