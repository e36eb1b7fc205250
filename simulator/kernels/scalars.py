"""Reading packed DRAM scalars into vectors, and writing vectors back packed.

Scalars narrower than a byte are packed lowest lane first, as everywhere in VTA's DRAM layout.
"""

from .ir import Function, constant


def read_scalars(fn: Function, pointer: str, count: int, bits: int, to_bits: int) -> str:
    """``count`` signed scalars of ``bits`` bits at ``pointer``, as ``<count x i{to_bits}>``."""
    if bits < 8:
        values, bits = _unpack(fn, pointer, count, bits), 8
    else:
        values = fn.load(f"<{count} x i{bits}>", pointer)
    return resize(fn, values, count, bits, to_bits)


def write_scalars(
    fn: Function, pointer: str, values: str, count: int, from_bits: int, bits: int
) -> None:
    """Store the low ``bits`` of each lane of ``<count x i{from_bits}> values`` at ``pointer``."""
    if bits < 8:
        _pack(fn, pointer, resize(fn, values, count, from_bits, 8), count, bits)
    else:
        narrow = resize(fn, values, count, from_bits, bits)
        fn.store(f"<{count} x i{bits}>", narrow, pointer)


def resize(fn: Function, values: str, count: int, bits: int, to_bits: int) -> str:
    """Sign-extend or truncate every lane."""
    if bits == to_bits:
        return values
    how = "sext" if bits < to_bits else "trunc"
    return fn.op(f"{how} <{count} x i{bits}> {values} to <{count} x i{to_bits}>")


def _unpack(fn: Function, pointer: str, count: int, bits: int) -> str:
    """Every byte repeated once per scalar in it, then shifted so that its own bits remain."""
    per_byte = 8 // bits
    packed, full = f"<{count // per_byte} x i8>", f"<{count} x i8>"
    held = fn.load(packed, pointer)
    repeated = fn.shuffle(packed, held, "poison", [lane // per_byte for lane in range(count)])
    to_top = [8 - bits * (lane % per_byte + 1) for lane in range(count)]
    top = fn.op(f"shl {full} {repeated}, {constant('i8', to_top)}")
    return fn.op(f"ashr {full} {top}, {constant('i8', [8 - bits] * count)}")


def _pack(fn: Function, pointer: str, values: str, count: int, bits: int) -> None:
    """The scalars of one byte picked apart by place, cut, moved to their place and joined."""
    per_byte = 8 // bits
    size = count // per_byte
    packed = f"<{size} x i8>"
    joined = "zeroinitializer"
    for place in range(per_byte):
        lanes = range(place, count, per_byte)
        part = fn.shuffle(f"<{count} x i8>", values, "poison", list(lanes))
        cut = fn.op(f"and {packed} {part}, {constant('i8', [(1 << bits) - 1] * size)}")
        moved = fn.op(f"shl {packed} {cut}, {constant('i8', [bits * place] * size)}")
        joined = fn.op(f"or {packed} {joined}, {moved}")
    fn.store(packed, joined, pointer)
