"""Results on disk: synthesis takes minutes, and the same text gives the same netlist."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vta_isa.cache import cache_folder, prune, used, write_whole


def cached(key: tuple[str, ...], produce: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The JSON stored under ``key``, else that of ``produce``, stored for the next time.

    ``key`` is everything the result depends on. Trouble with the folder costs the time, no more.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    try:
        path = _folder() / f"{digest}.json"
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: there is no home folder
        made = produce()
    else:
        used(path)
        return found
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{digest}.json", json.dumps(made).encode())
    except (OSError, RuntimeError):
        pass
    else:
        prune()
    return made


def _folder() -> Path:
    return cache_folder() / "synth"
