"""What computed a result: a digest of our sources, and the versions of what they stand on."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from vta_isa.version import __version__

_ROOT = Path(__file__).parent.parent.parent
# Where figures come from. Commands and reports only show them.
_SOURCES = ("vta_isa", "simulator", "vta_runtime", "compiler", "vta")
_SHOWS = ("vta/cli", "vta/report")
_LIBRARIES = ("numpy", "llvmlite", "numba")


@cache
def code_digest() -> str:
    """16 hex digits over every source file that has a part in a point's figures."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for path in sorted((_ROOT / package).rglob("*")):
            name = path.relative_to(_ROOT).as_posix()
            if path.suffix in (".py", ".json", ".csv") and not name.startswith(_SHOWS):
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Of the kit, its sources and the libraries that compute."""
    return {
        "vta": __version__,
        "code": code_digest(),
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }
