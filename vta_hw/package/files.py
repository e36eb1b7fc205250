"""The files of a package, from templates beside this module and from the machine."""

import re
from enum import StrEnum
from fractions import Fraction
from importlib.resources import files

from vta_isa.machine import Machine
from vta_isa.register_formats import c_header
from vta_isa.registers import ADDRESS_BITS
from vta_isa.version import __version__

from ..top import top_verilog
from ..verilog import core_verilog
from .manifest import manifest
from .ports import Ports, axi_ports, core_ports

PART = "xc7z020clg400-1"  # of the examples: the Zynq on most boards that people try first
HP_BITS = (32, 64)  # widths of a Zynq-7000's ports to DRAM


class Kind(StrEnum):
    """Which top: with registers and interrupt, or the bare core."""

    AXI = "axi"
    CORE = "core"


def package(machine: Machine, kind: Kind = Kind.AXI) -> dict[str, str]:
    """File name -> text, ``manifest.json`` last. The same for the same machine and kit."""
    axi = kind is Kind.AXI
    ports = (axi_ports if axi else core_ports)(machine)
    words = _words(machine, ports)
    made = {words["FILE"]: _title(words) + (top_verilog if axi else core_verilog)(machine)}
    if axi:
        made["vta_registers.h"] = c_header(machine)
    templates = ["constraints.xdc", "lint.vlt"]
    if axi:
        templates += ["package_ip.tcl", "zynq_example.tcl"]
    for name in templates:
        made[name] = _filled(name, words)
    made["README.md"] = _filled(f"README_{kind}.md", words)
    made["manifest.json"] = manifest(machine, ports, made)
    return made


def _words(machine: Machine, ports: Ports) -> dict[str, str]:
    """What stands for @WORD@ in the templates."""
    period_ns = Fraction(10**9, machine.clock)
    return {
        "NAME": _plain(machine.name),
        "HASH": machine.hash,
        "SHAPE": machine.shape,
        "KIT": __version__,
        "VERSION": ".".join(__version__.split(".")[:2]),  # Vivado takes two numbers
        "FILE": f"{ports.module}.v",
        "MODULE": ports.module,
        "CLOCK": ports.clock,
        "RESET": ports.reset,
        "INTERRUPT": ports.interrupt,
        "CONTROL": ports.control,
        "DATA": ports.data,
        "RANGE": str(1 << ADDRESS_BITS),
        "DATA_BITS": str(machine.axi.data_bits),
        "ADDR_BITS": str(machine.axi.addr_bits),
        "BURST_BEATS": str(machine.axi.burst_beats),
        "OUTSTANDING": str(machine.axi.outstanding_reads),
        "BASES": ", ".join(ports.bases.members),
        "HP_BITS": str(min(max(machine.axi.data_bits, HP_BITS[0]), HP_BITS[1])),
        "MHZ": f"{machine.clock / 1e6:g}",
        "PERIOD": f"{float(period_ns):.3f}",
        "HALF": f"{float(period_ns / 2):.3f}",
        "PART": PART,
    }


def _title(words: dict[str, str]) -> str:
    return (
        f"// VTA machine {words['NAME']}, {words['SHAPE']}, hash {words['HASH']}.\n"
        f"// Written by vta-sdk {words['KIT']}; do not edit.\n"
    )


def _filled(name: str, words: dict[str, str]) -> str:
    text = (files(__package__) / "templates" / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: words[found[1]], text)


def _plain(text: str) -> str:
    """A machine's name is free text; here it stands in comments and in Tcl braces, in one line."""
    return re.sub(r"[^A-Za-z0-9_.+ -]", "_", text)
