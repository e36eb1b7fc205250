"""``manifest.json``: what the other files are, for programs."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from amaranth.lib import data

from vta_isa.faults import Fault
from vta_isa.machine import Machine
from vta_isa.register_formats import registers_as_json
from vta_isa.registers import ADDRESS_BITS
from vta_isa.version import __version__

from ..counts import counts_layout
from ..insn_check import fault_layout
from .ports import Ports

FORMAT = 1  # goes up when the meaning of a key changes


def manifest(machine: Machine, ports: Ports, files: Mapping[str, str]) -> str:
    """As JSON. ``files`` are the texts of the other files by name."""
    description: dict[str, Any] = {
        "format": FORMAT,
        "kit": __version__,
        "machine": {"hash": machine.hash, **machine.model_dump(mode="json")},
        "module": ports.module,
        "ports": {
            "clock": ports.clock,
            "reset": {"name": ports.reset, "active": ports.reset_level},
            "data": {
                "name": ports.data,
                "kind": "AXI4 master",
                "data_bits": machine.axi.data_bits,
                "addr_bits": machine.axi.addr_bits,
                "id_bits": 0,
            },
        },
        "files": {name: digest(text) for name, text in files.items()},
    }
    if ports.control:
        description["ports"] |= {
            "control": {
                "name": ports.control,
                "kind": "AXI4-Lite slave",
                "data_bits": 32,
                "addr_bits": ADDRESS_BITS,
            },
            "interrupt": ports.interrupt,
        }
        description["registers"] = registers_as_json(machine)
    else:
        description["ports"] |= {
            "bases": _places(ports.bases),
            "fault": _places(fault_layout()),
            "counts": _places(counts_layout()),
        }
    description["faults"] = {each.name: int(each) for each in Fault}
    return json.dumps(description, indent=2) + "\n"


def digest(text: str) -> dict[str, Any]:
    """Size and hash of a file."""
    raw = text.encode()
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _places(layout: data.StructLayout) -> dict[str, Any]:
    """Where the members of a packed port lie."""
    return {name: {"low": field.offset, "width": field.width} for name, field in layout}
