"""``docs/registers.md``: the register map as a page of documentation."""

from collections.abc import Iterable

from .faults import Fault
from .machine import Machine
from .registers import COUNTERS_OFFSET, Access, BitField, Register, register_map

_MEANINGS = {
    Access.READ_ONLY: "read only",
    Access.READ_WRITE: "read and write",
    Access.WRITE_ONE_TO_CLEAR: "read; writing 1 to a bit clears it, writing 0 leaves it",
    Access.SELF_CLEARING: "writing 1 does something once; reads as 0",
}

_PAGE = """\
# Registers

What a host sees of the machine behind its AXI4-Lite slave. The table is `register_map` in
[`vta_isa/registers.py`](../vta_isa/registers.py), and this page is made from it:
`python -m vta_isa.register_page > docs/registers.md`. `vta rtl` writes the same map as a C header
and as JSON. Values that depend on the machine are those of `default`.

## Access

- Registers are 32-bit words, little-endian, in 4096 bytes of addresses. A register of 64 bits is
  two words, the low one first.
- Only whole words are accessed. A write without all four byte strobes, an address that is not a
  multiple of 4, an address without a register, and a write to a register of which nothing can be
  written are answered with SLVERR: a read gives 0, a write changes nothing. Nothing hangs.
- A counter is read when its turn comes, some 50 cycles later at most. Its two words are read one
  after the other; while the machine is busy a carry may pass between them.

| access | |
|---|---|
{meanings}

## A launch

1. Read `magic` and `machine_hash`: is it the machine the stream was made for?
2. Write `insn_address` and `insn_count`. Write the bases if the DRAM addresses in the stream do
   not count from 0.
3. Write 1 to `control`. This clears `done` and `error` of `status`, and all counters. Address
   and count may be written again at once, bases only when the machine is no longer busy.
4. Poll `status` until `done` or `error` is set, or enable the interrupt and wait for it. The line
   stays high until its reasons are cleared in `interrupt_status`.
5. After `error`, `error_cause` and `error_insn` say why. The machine has stopped; its queues and
   tokens are empty as after a soft reset, and it can be started again. What was written to DRAM
   until then stays; what the memories on the chip hold is not defined.
6. A stream that waits for itself never ends. Write 2 to `control` (soft reset) and poll until
   `busy` is 0: transfers under way are completed first, as AXI demands.

## Map

| offset | register | bits | field | access | reset | |
|---|---|---|---|---|---|---|
{registers}

## Errors

| `error_cause` | name | |
|---|---|---|
{faults}

## Counters

64 bits each, read only. They are zero when a launch starts and stay when it ends. What the causes
mean cycle by cycle: [microarchitecture](microarchitecture.md), section 11.

| offset | counter | |
|---|---|---|
{counters}
"""


def registers_page(machine: Machine) -> str:
    """The whole page; reset values and address widths are those of `machine`."""
    registers = register_map(machine)
    rows = [
        row
        for register in registers
        if register.offset < COUNTERS_OFFSET
        for row in _register_rows(register)
    ]
    return _PAGE.format(
        meanings=_table((access, meaning) for access, meaning in _MEANINGS.items()),
        registers=_table(rows),
        faults=_table((str(int(each)), f"`{each.name}`", each.sentence) for each in Fault),
        counters=_table(
            (f"0x{register.offset:03x}", f"`{register.name}`", register.sentence)
            for register in registers
            if register.offset >= COUNTERS_OFFSET
        ),
    )


def _register_rows(register: Register) -> list[tuple[str, ...]]:
    """A row per field; the register itself is named in the first."""
    rows: list[tuple[str, ...]] = []
    for number, field in enumerate(register.fields):
        place = (f"0x{register.offset:03x}", f"`{register.name}`") if not number else ("", "")
        inner = "" if field.name == register.name else f"`{field.name}`"
        reset = _reset(field)
        rows.append((*place, field.bits, inner, str(field.access), reset, field.sentence))
    return rows


def _reset(field: BitField) -> str:
    return f"0x{field.reset:x}" if field.reset > 9 else str(field.reset)


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    from .machine import load_machine

    print(registers_page(load_machine("default")), end="")
