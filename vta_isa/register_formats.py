"""The register map as JSON and as a C header."""

from typing import Any

from .faults import Fault
from .machine import Machine
from .registers import ADDRESS_BITS, BitField, register_map


def registers_as_json(machine: Machine) -> list[dict[str, Any]]:
    """The table as plain values; numbers are numbers."""
    return [
        {
            "name": register.name,
            "offset": register.offset,
            "words": register.words,
            "access": register.access,
            "reset": register.reset,
            "description": register.sentence,
            "fields": [_field_as_json(field) for field in register.fields],
        }
        for register in register_map(machine)
    ]


def _field_as_json(field: BitField) -> dict[str, Any]:
    values = {each.name: int(each) for each in field.values} if field.values else None
    return {
        "name": field.name,
        "low": field.low,
        "width": field.width,
        "access": str(field.access),
        "reset": field.reset,
        "description": field.sentence,
        **({"values": values} if values else {}),
    }


def c_header(machine: Machine) -> str:
    """Offsets, masks, shifts and reset values as macros; compiles as C99 and as C++."""
    lines = [
        f"/* Registers of the VTA machine {_comment_safe(machine.name)}, hash {machine.hash}.",
        " *",
        " * Offsets are bytes from the base of the AXI4-Lite slave. Registers are 32-bit words;",
        " * those of 64 bits are two, the low word at VTA_x and the high one at VTA_x_HIGH. */",
        "#ifndef VTA_REGISTERS_H",
        "#define VTA_REGISTERS_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define VTA_REGISTERS_BYTES {1 << ADDRESS_BITS}u",
    ]
    for register in register_map(machine):
        name = f"VTA_{register.name.upper()}"
        lines += ["", f"/* {register.sentence} ({register.access}) */"]
        lines.append(f"#define {name} 0x{register.offset:03x}u")
        if register.words == 2:
            lines.append(f"#define {name}_HIGH 0x{register.offsets[1]:03x}u")
        if register.reset:
            suffix = "ull" if register.words == 2 else "u"
            lines.append(f"#define {name}_RESET 0x{register.reset:x}{suffix}")
        for field in register.fields:
            if field.name == register.name:
                continue
            lines += [
                f"#define {name}_{field.name.upper()} 0x{field.mask:08x}u"
                f" /* {field.sentence} ({field.access}) */",
                f"#define {name}_{field.name.upper()}_SHIFT {field.low}",
            ]
    lines += ["", "/* values of VTA_ERROR_CAUSE */", "enum vta_fault {"]
    lines += [f"    VTA_FAULT_{each.name} = {int(each)}, /* {each.sentence} */" for each in Fault]
    lines += ["};", "", "#endif", ""]
    return "\n".join(lines)


def _comment_safe(text: str) -> str:
    """A machine's name is free text; it must not end the comment or the line."""
    plain = text.replace("*/", "* /").replace("/*", "/ *").encode("ascii", "replace").decode()
    return " ".join(plain.split())
