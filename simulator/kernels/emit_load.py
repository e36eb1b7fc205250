"""LOAD: one function per buffer, which copies a padded 2-D tile into the image's layout."""

from collections.abc import Iterator

from vta_isa.enums import Buffer

from .emit_dot import dot, dot_intrinsic_type
from .ir import Function, constant
from .layouts import Layout
from .scalars import read_scalars
from .transpose import transpose_steps

LOADED = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC_8BIT)
LINEAR_LANES = 64  # scalars converted at a time where order is kept: four 512-bit vectors of int32
TRANSPOSE_UNITS = 256  # larger weight tiles are transposed by a loop, to bound the code size

LOAD_PARAMS = {
    "image": "ptr",
    "dram": "ptr",
    **dict.fromkeys(
        ("sram_base", "dram_base", "y_size", "x_size", "x_stride", "y_pad_before", "y_pad_after",
         "x_pad_before", "x_pad_after"), "i64"
    ),
}  # fmt: skip


def load_name(buffer: Buffer) -> str:
    return f"load_{buffer.name.lower()}"


def image_of(buffer: Buffer) -> Buffer:
    """The image a LOAD of ``buffer`` fills."""
    return Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer


def emit_loads(layout: Layout) -> Iterator[Function]:
    """For every loadable buffer: the copy of a run of entries, and the padded tile around it."""
    for buffer in LOADED:
        yield _emit_copy(layout, buffer)
        yield _emit_tile(layout, buffer)


def _emit_tile(layout: Layout, buffer: Buffer) -> Function:
    """Dense SRAM rows: padding, then the core rows between their own padding, then padding."""
    fn = Function(load_name(buffer), LOAD_PARAMS)
    size = layout.entry_bytes(image_of(buffer))
    padding = layout.padding(image_of(buffer))
    unit = layout.machine.entry_bytes(buffer)
    to = fn.slot("ptr", fn.entry("%image", "%sram_base", size))

    def pad(entries: str) -> None:
        into, count = fn.get(to, "ptr"), fn.mul(entries, size)
        fn.do(f"call void @llvm.memset.p0.i64(ptr {into}, i8 {padding}, i64 {count}, i1 false)")
        fn.set(to, fn.at(into, count), "ptr")

    pitch = fn.add(fn.add("%x_pad_before", "%x_size"), "%x_pad_after")
    pad(fn.mul("%y_pad_before", pitch))
    with fn.loop("%y_size") as row:
        pad("%x_pad_before")
        source = fn.entry("%dram", fn.add("%dram_base", fn.mul(row, "%x_stride")), unit)
        into = fn.get(to, "ptr")
        fn.do(f"call void @{_copy_name(buffer)}(ptr {into}, ptr {source}, i64 %x_size)")
        fn.set(to, fn.entry(into, "%x_size", size), "ptr")
        pad("%x_pad_after")
    pad(fn.mul("%y_pad_after", pitch))
    fn.do("ret void")
    return fn


def _copy_name(buffer: Buffer) -> str:
    return f"copy_{buffer.name.lower()}"


def _emit_copy(layout: Layout, buffer: Buffer) -> Function:
    """``copy(to, from, count)``: ``count`` consecutive entries from DRAM into the image."""
    fn = Function(_copy_name(buffer), {"to": "ptr", "from": "ptr", "count": "i64"})
    machine = layout.machine
    if buffer == Buffer.UOP:
        _copy_bytes(fn, 4)
    elif buffer == Buffer.WGT:
        _copy_tiles(fn, layout)
    else:
        scalars = layout.batch * (layout.block_in if buffer == Buffer.INP else layout.block_out)
        bits = 8 if buffer == Buffer.ACC_8BIT else machine.bits(buffer)
        to_bits = layout.scalar_bits if buffer == Buffer.INP else 32
        flip = buffer == Buffer.INP and layout.flipped
        if bits == to_bits and not flip:
            _copy_bytes(fn, machine.entry_bytes(buffer))
        else:
            _copy_converted(fn, scalars, bits, to_bits, flip)
    fn.do("ret void")
    return fn


def _copy_bytes(fn: Function, entry_bytes: int) -> None:
    size = fn.mul("%count", entry_bytes)
    fn.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {size}, i1 false)")


def _copy_converted(fn: Function, scalars: int, bits: int, to_bits: int, flip: bool) -> None:
    lanes = min(scalars, LINEAR_LANES)
    with fn.loop(fn.mul("%count", scalars // lanes)) as step:
        source = fn.entry("%from", step, lanes * bits // 8)
        _convert(
            fn, source, fn.entry("%to", step, lanes * to_bits // 8), lanes, bits, to_bits, flip
        )


def _convert(
    fn: Function, source: str, to: str, lanes: int, bits: int, to_bits: int, flip: bool = False
) -> None:
    vector = f"<{lanes} x i{to_bits}>"
    values = read_scalars(fn, source, lanes, bits, to_bits)
    if flip:
        values = fn.op(f"xor {vector} {values}, {constant(f'i{to_bits}', [-128] * lanes)}")
    fn.store(vector, values, to)


def _copy_tiles(fn: Function, layout: Layout) -> None:
    """Weights: widen each tile if need be, transpose it in units of one 32-bit lane, correct it."""
    machine = layout.machine
    bits, tile = machine.bits(Buffer.WGT), layout.wgt_tile_bytes
    widened = fn.scratch(f"[{tile} x i8]", align=64) if bits != layout.scalar_bits else ""
    with fn.loop("%count") as number:
        source = fn.entry("%from", number, machine.entry_bytes(Buffer.WGT))
        to = fn.entry("%to", number, layout.wgt_bytes)
        if widened:
            scalars = layout.block_in * layout.block_out
            lanes = min(scalars, LINEAR_LANES)
            with fn.loop(scalars // lanes) as step:
                _convert(
                    fn,
                    fn.entry(source, step, lanes * bits // 8),
                    fn.entry(widened, step, lanes * layout.scalar_bits // 8),
                    lanes,
                    bits,
                    layout.scalar_bits,
                )
            source = widened
        _transpose(fn, layout, source, to)
        if layout.flipped:
            _correct(fn, layout, to)


def _transpose(fn: Function, layout: Layout, source: str, to: str) -> None:
    """``[block_out][groups]`` units at ``source`` become ``[groups][block_out]`` at ``to``."""
    outputs, groups, bits = layout.block_out, layout.groups, layout.unit_bits
    if outputs * groups <= TRANSPOSE_UNITS:
        lanes = min(outputs * groups, layout.tier.vector_bits // bits)
        vector, size = f"<{lanes} x i{bits}>", lanes * bits // 8
        values = [
            fn.load(vector, fn.at(source, number * size))
            for number in range(outputs * groups // lanes)
        ]
        for step in transpose_steps(outputs, groups, lanes):
            values = [fn.shuffle(vector, values[s.a], values[s.b], s.lanes) for s in step]
        for number, value in enumerate(values):
            fn.store(vector, value, fn.at(to, number * size))
        return
    with fn.loop(outputs) as output, fn.loop(groups) as group:
        unit = fn.load(
            f"i{bits}", fn.entry(source, fn.add(fn.mul(output, groups), group), bits // 8)
        )
        fn.store(f"i{bits}", unit, fn.entry(to, fn.add(fn.mul(group, outputs), output), bits // 8))


def _correct(fn: Function, layout: Layout, tile: str) -> None:
    """Per chunk of groups: -128 * (sum of the weights of each output), after the tile.

    The dot product of the weights with inputs of 128 is what storing x + 128 adds too much.
    """
    lanes, outputs = layout.lanes, layout.block_out
    vector = dot_intrinsic_type(layout)
    too_much = fn.splat(lanes, "i32", str(0x80808080 - (1 << 32)))
    chunks = layout.groups // layout.chunk_groups
    with fn.loop(chunks) as chunk, fn.loop(outputs // lanes) as part:
        first = fn.mul(chunk, layout.chunk_groups)
        total = "zeroinitializer"
        for group in range(layout.chunk_groups):
            unit = fn.add(fn.mul(fn.add(first, group), outputs), fn.mul(part, lanes))
            total = dot(fn, layout, total, too_much, fn.load(vector, fn.entry(tile, unit, 4)))
        place = fn.add(fn.mul(chunk, outputs), fn.mul(part, lanes))
        correction = fn.op(f"sub {vector} zeroinitializer, {total}")
        fn.store(vector, correction, fn.entry(fn.at(tile, layout.wgt_tile_bytes), place, 4))
