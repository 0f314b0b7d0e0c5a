"""Memory layouts in NumPy: by padding, cutting and transposing, never by offsets."""

import re

import numpy as np

LOGICAL_ORDER = "xngoicdhw"


def letters(layout):
    """The layout's dimensions in logical order: "nchw" for "nhwc"."""
    order = re.match("[A-Za-z]+", layout)[0].lower()
    return "".join(sorted(order, key=LOGICAL_ORDER.index))


def blocks(layout):
    """The size of a block of each dimension that is cut: {"i": 8, "o": 8} for "OIhw8i8o"."""
    return {letter: int(size) for size, letter in re.findall(r"(\d+)([a-z])", layout)}


def pack(x, layout):
    """The tensor in `layout` of the logical array `x`; tails are zero."""
    names, cut = letters(layout), blocks(layout)
    x = np.pad(
        x, [(0, -size % cut.get(name, 1)) for name, size in zip(names, x.shape, strict=True)]
    )
    axes = []  # of the cut array: (name, "outer"), (name, "inner")
    shape = []
    for name, size in zip(names, x.shape, strict=True):
        axes.append((name, "outer"))
        shape.append(size // cut.get(name, 1))
        if name in cut:
            axes.append((name, "inner"))
            shape.append(cut[name])
    outer = re.match("[A-Za-z]+", layout)[0].lower()
    order = [axes.index((name, "outer")) for name in outer]
    order += [axes.index((name, "inner")) for name in cut]
    return np.ascontiguousarray(x.reshape(shape).transpose(order))


def convert(x, dtype):
    """`x`, float32, rounded to nearest, ties to even, and saturated."""
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        rounded = np.nan_to_num(np.rint(x.astype(np.float64)), nan=0, posinf=2e9, neginf=-3e9)
        rounded = np.where(np.isposinf(x), limits.max, rounded)
        return np.clip(rounded, limits.min, limits.max).astype(dtype)
    with np.errstate(over="ignore"):
        return x.astype(dtype)
