"""STORE: dense accumulator rows, cut to the bits of OUT, to strided DRAM rows."""

from vta_isa.enums import Buffer

from .ir import Function
from .layouts import Layout
from .scalars import write_scalars

STORE_PARAMS = {
    "acc": "ptr",
    "dram": "ptr",
    **dict.fromkeys(("sram_base", "dram_base", "y_size", "x_size", "x_stride"), "i64"),
}
MAX_LANES = 64  # scalars narrowed at a time


def emit_store(layout: Layout) -> Function:
    """Rows in order, so that where they overlap in DRAM the later one stays."""
    fn = Function("store_out", STORE_PARAMS)
    machine = layout.machine
    bits, unit = machine.bits(Buffer.OUT), machine.entry_bytes(Buffer.OUT)
    scalars = layout.batch * layout.block_out
    lanes = min(scalars, MAX_LANES)
    steps = fn.mul("%x_size", scalars // lanes)
    with fn.loop("%y_size") as row:
        source = fn.add("%sram_base", fn.mul(row, "%x_size"))
        from_row = fn.entry("%acc", source, layout.acc_bytes)
        to_row = fn.entry("%dram", fn.add("%dram_base", fn.mul(row, "%x_stride")), unit)
        with fn.loop(steps) as step:
            values = fn.load(f"<{lanes} x i32>", fn.entry(from_row, step, lanes * 4))
            to = fn.entry(to_row, step, lanes * bits // 8)
            write_scalars(fn, to, values, lanes, 32, bits)
    fn.do("ret void")
    return fn
