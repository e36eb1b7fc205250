"""The register map: complete, without overlaps, the same in every format."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vta_isa import load_machine
from vta_isa.counters import COUNTERS
from vta_isa.faults import Fault
from vta_isa.presets import preset_names
from vta_isa.register_formats import c_header, registers_as_json
from vta_isa.register_page import registers_page
from vta_isa.registers import (
    ADDRESS_BITS,
    BASED,
    COUNTERS_OFFSET,
    Access,
    Source,
    by_name,
    register_map,
)
from vta_isa.version import __version__

MACHINE = load_machine("default")
PAGE = Path(__file__).parents[2] / "docs" / "registers.md"


@pytest.mark.parametrize("preset", preset_names("machines"))
def test_words_and_fields_do_not_overlap(preset: str) -> None:
    registers = register_map(load_machine(preset))
    offsets = [offset for register in registers for offset in register.offsets]
    assert offsets == sorted(set(offsets))
    assert all(offset % 4 == 0 for offset in offsets)
    assert offsets[-1] < 1 << ADDRESS_BITS
    assert len({register.name for register in registers}) == len(registers)
    for register in registers:
        taken = 0
        for field in register.fields:
            assert field.width > 0
            assert field.low + field.width <= register.bits, register.name
            assert not taken & field.mask, register.name
            assert field.reset >> field.width == 0, register.name
            taken |= field.mask


def test_places_that_drivers_know_stay_where_they_are() -> None:
    places = {register.name: register.offset for register in register_map(MACHINE)}
    named = {name: offset for name, offset in places.items() if offset < COUNTERS_OFFSET}
    assert named == {
        "magic": 0x000,
        "version": 0x004,
        "machine_hash": 0x008,
        "control": 0x010,
        "status": 0x014,
        "interrupt_status": 0x018,
        "interrupt_enable": 0x01C,
        "insn_address": 0x020,
        "insn_count": 0x028,
        "error_cause": 0x02C,
        "error_insn": 0x030,
        "uop_base": 0x040,
        "wgt_base": 0x048,
        "inp_base": 0x050,
        "acc_base": 0x058,
        "out_base": 0x060,
    }
    assert places["cycles"] == COUNTERS_OFFSET


def test_every_counter_has_a_register_of_its_name() -> None:
    counters = [each for each in register_map(MACHINE) if each.offset >= COUNTERS_OFFSET]
    assert [register.name for register in counters] == [counter.name for counter in COUNTERS]
    assert all(register.words == 2 for register in counters)
    assert all(register.fields[0].source is Source.COUNTER for register in counters)


def test_identification() -> None:
    registers = by_name(register_map(MACHINE))
    assert registers["magic"].reset.to_bytes(4, "big") == b"VTA1"
    assert f"{registers['machine_hash'].reset:016x}" == MACHINE.hash
    version = registers["version"].reset
    assert f"{version >> 16 & 255}.{version >> 8 & 255}.{version & 255}" == __version__
    other = by_name(register_map(load_machine("tiny")))
    assert other["machine_hash"].reset != registers["machine_hash"].reset


def test_the_layout_is_the_same_for_every_machine_but_for_addresses() -> None:
    wide = by_name(register_map(MACHINE.replace(axi={"addr_bits": 64})))
    for register in register_map(MACHINE):
        other = wide[register.name]
        assert (other.offset, other.words) == (register.offset, register.words)
        for field in register.fields:
            if field.name.endswith(("_base", "_address")):
                assert other.field(field.name).mask >> 32 == 0xFFFF_FFFF
                assert field.mask >> 32 == 0
            else:
                assert other.field(field.name).mask == field.mask


def test_bases_are_whole_pages() -> None:
    registers = by_name(register_map(MACHINE))
    for buffer in BASED:
        (field,) = registers[f"{buffer.name.lower()}_base"].fields
        assert field.mask & 4095 == 0


def test_access_of_registers_with_several_kinds_of_fields() -> None:
    registers = by_name(register_map(MACHINE))
    assert registers["status"].access == "ro w1c"
    assert registers["insn_count"].access == "rw"
    assert registers["control"].field("start").access is Access.SELF_CLEARING


def test_json_holds_the_whole_table() -> None:
    described = json.loads(json.dumps(registers_as_json(MACHINE)))
    registers = register_map(MACHINE)
    assert [each["name"] for each in described] == [register.name for register in registers]
    for each, register in zip(described, registers, strict=True):
        assert each["offset"] == register.offset
        assert each["reset"] == register.reset
        assert [f["low"] for f in each["fields"]] == [f.low for f in register.fields]
    causes = next(each for each in described if each["name"] == "error_cause")
    assert causes["fields"][0]["values"] == {fault.name: int(fault) for fault in Fault}


def test_header_defines_every_word_once() -> None:
    macros = re.findall(r"#define (\w+) ", c_header(MACHINE))
    assert len(macros) == len(set(macros))
    for register in register_map(MACHINE):
        name = f"VTA_{register.name.upper()}"
        assert f"#define {name} 0x{register.offset:03x}u\n" in c_header(MACHINE)
        assert (f"{name}_HIGH" in macros) == (register.words == 2)


@pytest.mark.parametrize("name", ["default", "end of comment */ int x; /*", "two\nlines", "a\\"])
def test_header_compiles(name: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc to check the C header")
    header = tmp_path / "vta.h"
    header.write_text(c_header(MACHINE.replace(name=name)))
    source = tmp_path / "use.c"
    source.write_text('#include "vta.h"\nint x[VTA_MAGIC_RESET == 0x56544131u ? 1 : -1];\n')
    subprocess.run(
        [compiler, "-std=c99", "-pedantic", "-Wall", "-Werror", "-fsyntax-only", source], check=True
    )


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == registers_page(MACHINE), (
        "run: python -m vta_isa.register_page > docs/registers.md"
    )
