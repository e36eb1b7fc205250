"""Descriptions that come with the kit: machines, and workloads for the rooms above."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def preset_folder(kind: str) -> Path:
    """The folder of ``machines`` or ``workloads``: inside the wheel, else in the checkout.

    An editable install has no ``presets`` in the package folder.
    """
    installed = _PACKAGE / "presets" / kind
    return installed if installed.is_dir() else _PACKAGE.parent / "configs" / kind


def preset_names(kind: str) -> list[str]:
    """The presets of a kind, ``machines`` or ``workloads``, sorted."""
    return sorted(path.stem for path in preset_folder(kind).glob("*.yaml"))


def preset_path(kind: str, name: str) -> Path:
    """The file of a preset, whether there is one or not."""
    return preset_folder(kind) / f"{name}.yaml"
