"""The hooks of the documentation site, which MkDocs loads by path and not by import."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def hook(name: str) -> ModuleType:
    """``docs/hooks/NAME.py`` as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/hooks/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
