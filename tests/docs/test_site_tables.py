"""The tables of the site say what the code says."""

import re

from site_hooks import ROOT, hook

from vta_isa import Machine, layouts, load_machine

isa_tables = hook("isa_tables")
machine_keys = hook("machine_keys")


def rows(table: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_every_bit_of_every_word_is_in_its_table_once() -> None:
    for name in ("default", "tiny"):
        machine = load_machine(name)
        for layout in layouts(machine):
            covered = []
            for bits, width, *_ in rows(isa_tables.tables(machine)[layout.name.lower()]):
                first, _, last = bits.partition("..")
                covered += range(int(first), int(last or first) + 1)
                assert int(width) == int(last or first) - int(first) + 1
            assert sorted(covered) == list(range(layout.bits))


def test_the_pages_show_every_table() -> None:
    pages = (ROOT / f"docs/{name}.md" for name in ("isa", "extensions"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    shown = re.findall(r"<!-- isa: (\S+) -->", text)

    assert sorted(shown) == sorted(isa_tables.tables(load_machine("default")))


def test_every_key_of_a_machine_has_its_meaning_and_its_range() -> None:
    keys = {}
    for section in machine_keys._sections():
        name, _, table = section.removeprefix("### ").partition("\n")
        keys |= {(name, key): rest for key, *rest in rows(table[table.index("|") :])}

    for name, field in Machine.model_fields.items():
        inner = getattr(field.annotation, "model_fields", {None: field})
        for key in inner:
            heading, shown = (name, key) if key else ("Outside of sections", name)
            meaning, allowed, *_ = keys[heading, f"`{shown}`"]
            assert meaning
            assert allowed or shown == "name"


def test_ranges_and_defaults_are_written_with_their_units() -> None:
    text = "\n".join(machine_keys._sections())

    assert "| 1 B to 1 GiB, powers of two | 256 KiB |" in text
    assert "| 1 Hz to 100 GHz | 100 MHz |" in text
    assert "| int16, int32 | int32 |" in text
