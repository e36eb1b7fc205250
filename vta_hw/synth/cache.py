"""Results on disk: synthesis takes minutes, and the same text gives the same netlist."""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CACHE_VARIABLE = "VTA_CACHE_DIR"


def cache_folder() -> Path:
    """``VTA_CACHE_DIR``, or ``vta-sdk`` in the platform's place for caches: as the simulator's."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        base = Path(chosen)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local") / "vta-sdk"
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches/vta-sdk")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "vta-sdk"
    return base.expanduser() / "synth"


def cached(key: tuple[str, ...], produce: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The JSON stored under ``key``, else that of ``produce``, stored for the next time.

    ``key`` is everything the result depends on. Trouble with the folder costs the time, no more.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    try:
        path = cache_folder() / f"{digest}.json"
        return json.loads(path.read_text())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: there is no home folder
        made = produce()
    try:
        _write(cache_folder() / f"{digest}.json", json.dumps(made))
    except (OSError, RuntimeError):
        pass
    return made


def _write(path: Path, text: str) -> None:
    """Whole or not at all: another process may write the same file at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
