"""Small tensor expressions that read tensors in every way a schedule has to cope with."""

from collections.abc import Callable

from compiler import te


def chain() -> list[te.Tensor]:
    """Element-wise stages, one of them read twice."""
    x = te.placeholder((5, 6), "int32", "x", axes=("i", "j"))
    a = te.compute((5, 6), lambda i, j: x[i, j] + 3, "a")
    b = te.compute((5, 6), lambda i, j: a[i, j] * a[i, j], "b")
    y = te.compute((5, 6), lambda i, j: b[i, j] - a[i, j], "y")
    return [y]


def matmul() -> list[te.Tensor]:
    x = te.placeholder((5, 7), "int8", "x", axes=("m", "k"))
    w = te.placeholder((6, 7), "int8", "w", axes=("n", "k"))
    k = te.reduce_axis(7, "k")
    acc = te.compute(
        (5, 6),
        lambda m, n: te.sum(x[m, k].astype("int32") * w[n, k].astype("int32"), axis=k),
        "acc",
    )
    low = te.compute((5, 6), lambda m, n: te.maximum(acc[m, n] >> 4, -128), "low")
    y = te.compute((5, 6), lambda m, n: te.minimum(low[m, n], 127).astype("int8"), "y")
    return [y]


def padded_convolution(stride: int = 1) -> list[te.Tensor]:
    size, kernel, channels, filters = 5, 3, 2, 3
    x = te.placeholder((channels, size, size), "int8", "x", axes=("c", "y", "x"))
    w = te.placeholder((filters, channels, kernel, kernel), "int8", "w", axes=("o", "c", "r", "s"))
    pad = te.compute(
        (channels, size + 2, size + 2),
        lambda c, i, j: te.select(
            (i >= 1) & (i <= size) & (j >= 1) & (j <= size), x[c, i - 1, j - 1], 0
        ),
        "pad",
    )
    c, r, s = (
        te.reduce_axis(n, name) for n, name in ((channels, "c"), (kernel, "r"), (kernel, "s"))
    )
    out = (size + 2 - kernel) // stride + 1
    conv = te.compute(
        (filters, out, out),
        lambda o, i, j: te.sum(
            pad[c, i * stride + r, j * stride + s].astype("int32") * w[o, c, r, s].astype("int32"),
            axis=[c, r, s],
        ),
        "conv",
    )
    y = te.compute((filters, out, out), lambda o, i, j: (conv[o, i, j] >> 3).astype("int8"), "y")
    return [y]


def strided_convolution() -> list[te.Tensor]:
    return padded_convolution(stride=2)


def pooling_and_upsampling() -> list[te.Tensor]:
    """Max over windows, then every element twice: reads through multiples and quotients."""
    x = te.placeholder((8, 9), "int16", "x", axes=("i", "j"))
    half = te.compute((8, 9), lambda i, j: x[i, j] // 2, "half")
    r = te.reduce_axis(2, "r")
    pool = te.compute((4, 9), lambda i, j: te.max(half[i * 2 + r, j], axis=r), "pool")
    y = te.compute((8, 18), lambda i, j: pool[i // 2, j // 2] + 1, "y")
    return [y]


def wrapped_and_clamped() -> list[te.Tensor]:
    """Reads through remainders, minima, maxima, selections and both directions of an axis."""
    x = te.placeholder((6, 7), "int32", "x", axes=("i", "j"))
    a = te.compute((6, 7), lambda i, j: x[i, j] * 5, "a")
    b = te.compute((6, 7), lambda i, j: a[(i + 2) % 6, 6 - j], "b")
    y = te.compute(
        (6, 7),
        lambda i, j: (
            b[te.maximum(i - 1, 0), te.minimum(j + 2, 6)] + te.select(i < 5, b[i + 1, j], a[i, j])
        ),
        "y",
    )
    return [y]


def transposed_with_two_outputs() -> list[te.Tensor]:
    x = te.placeholder((4, 5, 3), "int32", "x", axes=("i", "j", "k"))
    a = te.compute((5, 4, 3), lambda j, i, k: x[i, j, k] + 1, "a")
    k = te.reduce_axis(3, "k")
    lowest = te.compute((4, 5), lambda i, j: te.min(a[j, i, k], axis=k), "lowest")
    y = te.compute((4, 5), lambda i, j: lowest[i, j] + a[j, i, 0], "y")
    z = te.compute((4, 5), lambda i, j: lowest[i, j] * 2, "z")
    return [y, z]


def gathered() -> list[te.Tensor]:
    """Indices read from memory: nothing is known of what is needed."""
    x = te.placeholder((6,), "int32", "x", axes=("i",))
    table = te.compute((6,), lambda i: x[i] * 7, "table")
    where = te.compute((4,), lambda i: (x[i] % 6).astype("int64"), "where")
    y = te.compute((4,), lambda i: table[where[i]] + 1, "y")
    return [y]


def chained_reductions() -> list[te.Tensor]:
    """A reduction of a reduction, read at an offset."""
    x = te.placeholder((6, 5, 4), "int32", "x", axes=("i", "j", "k"))
    k, j = te.reduce_axis(4, "k"), te.reduce_axis(3, "j")
    rows = te.compute((6, 5), lambda i, m: te.sum(x[i, m, k], axis=k), "rows")
    windows = te.compute((6, 3), lambda i, m: te.max(rows[i, m + j], axis=j), "windows")
    y = te.compute((5, 3), lambda i, m: windows[i + 1, m] - windows[i, m], "y")
    return [y]


ALL: list[Callable[[], list[te.Tensor]]] = [
    chain,
    matmul,
    padded_convolution,
    strided_convolution,
    pooling_and_upsampling,
    wrapped_and_clamped,
    transposed_with_two_outputs,
    gathered,
    chained_reductions,
]
