"""The gradient of a convolution with respect to its source, out of our own convolutions.

    dst[y] = sum over i of src[s y + d i - p] w[i]            along each axis, so
    dsrc[h] = sum over i, y with s y + d i - p = h of dst[y] w[i]

With s = 1 that is a convolution of ddst with the flipped filter, channels exchanged, padded by
d (k - 1) - p. With s > 1 and d = 1, h + p = s q + r needs i = s t + r: each of the s phases r of
dsrc is a convolution of stride 1 with every s-th tap, dsrc[s q + r - p] = sum of
ddst[q - t] w[s t + r]. Of blocked tensors without groups that is one op.
"""

import tensorflow as tf

from ...layout import BLOCK, NCHW16C
from ...ops.conv.conv import conv
from ...ops.conv.conv_transpose import conv_transpose
from ...ops.movement.reorder import reorder
from .geometry import ConvGeometry


def backward_data(geometry: ConvGeometry, dz, weights, sizes):
    """The gradient of the source, in its layout; also the transposed convolution of `dz`.

    Args:
      dz: the gradient of the result, in its layout.
      weights: [kh, kw, channels / groups, output channels].
      sizes: height and width of the source, integers where they are known.
    """
    outs = plane_of(dz, geometry.dst_layout)
    static = all(isinstance(size, int) for size in (*sizes, *outs))
    if static and is_transposed(geometry):
        return _by_transposed(geometry, dz, weights, sizes, outs)
    flipped = _flipped(geometry, weights)
    if geometry.strides == (1, 1):
        paddings = _reflected(geometry)
        if paddings is not None:
            return _conv(geometry, dz, flipped, paddings, geometry.dilations)
    if static and geometry.dilations == (1, 1):
        before = [
            geometry.paddings(n, out, a)[0]
            for a, (n, out) in enumerate(zip(sizes, outs, strict=False))
        ]
        steps = [-(-(n + b) // s) for n, b, s in zip(sizes, before, geometry.strides, strict=False)]
        if all(q >= out for q, out in zip(steps, outs, strict=False)):
            return _by_phases(geometry, dz, flipped, sizes, outs, before, steps)
    return _by_insertion(geometry, dz, flipped, sizes, outs)


def _flipped(geometry: ConvGeometry, weights):
    """Taps in reverse, inputs and outputs of each group exchanged: [kh, kw, O / groups, C]."""
    kh, kw, inputs, outputs = geometry.weights_shape
    groups = geometry.groups
    if (kh, kw) != (1, 1):
        weights = tf.reverse(weights, [0, 1])
    if groups == 1:
        return tf.transpose(weights, [0, 1, 3, 2])
    if inputs == 1 and outputs == groups:
        return weights
    weights = tf.reshape(weights, [kh, kw, inputs, groups, outputs // groups])
    weights = tf.transpose(weights, [0, 1, 4, 3, 2])
    return tf.reshape(weights, [kh, kw, outputs // groups, groups * inputs])


def _conv(geometry: ConvGeometry, dz, weights, padding, dilations=(1, 1)):
    return conv(
        dz,
        weights,
        padding=padding,
        dilations=list(dilations),
        groups=geometry.groups,
        how=geometry.algorithm,
        src_layout=geometry.dst_layout,
        dst_layout=geometry.src_layout,
    )


def _reflected(geometry: ConvGeometry) -> "list | None":
    """d (k - 1) - p before and after both axes; None where padding is wider than the window."""
    paddings = []
    for axis in range(2):
        reach = geometry.reach(axis)
        before, after = (0, 0) if geometry.padding == "VALID" else geometry.paddings(0, 0, axis)
        paddings.append([reach - before, reach - after])
    return None if min(min(pair) for pair in paddings) < 0 else paddings


def _height_axis(layout: str) -> int:
    return 1 if layout == "nhwc" else 2


def plane_of(x, layout: str) -> list:
    """Height and width, integers where they are known."""
    axis, dynamic = _height_axis(layout), None
    sizes = list(x.shape[axis : axis + 2])
    if None in sizes:
        dynamic = tf.shape(x)
        sizes = [dynamic[axis + i] if size is None else size for i, size in enumerate(sizes)]
    return sizes


def is_transposed(geometry: ConvGeometry) -> bool:
    """Whether conv_transpose computes it, of planes whose sizes are known."""
    usual = geometry.strides != (1, 1) and geometry.groups == 1 and geometry.dilations == (1, 1)
    return usual and geometry.dst_layout == NCHW16C and max(geometry.strides) <= 16


def _by_transposed(geometry: ConvGeometry, dz, weights, sizes, outs):
    """Strided, sizes known, no groups: the transposed convolution, cut to `sizes`."""
    crops = []
    for axis, (size, out) in enumerate(zip(sizes, outs, strict=True)):
        reached = (out - 1) * geometry.strides[axis] + geometry.weights_shape[axis]
        before = geometry.paddings(size, out, axis)[0]
        crops.append([before, reached - before - size])
    blocked = geometry.src_layout == NCHW16C or geometry.channels >= BLOCK
    layout = NCHW16C if blocked else geometry.src_layout
    dsrc = conv_transpose(
        dz,
        weights,
        strides=geometry.strides,
        crops=crops,
        how=geometry.algorithm,
        dst_layout=layout,
    )
    if layout == geometry.src_layout:
        return dsrc
    return reorder(dsrc, layout, geometry.src_layout, channels=geometry.channels)


def _by_phases(geometry: ConvGeometry, dz, flipped, sizes, outs, before, steps):
    """Strided, sizes known: a convolution a phase, then all phases side by side."""
    axis = _height_axis(geometry.src_layout)
    (sh, sw), (kh, kw) = geometry.strides, geometry.weights_shape[:2]

    def phase(r, c):
        # Of the flipped filter the taps i = s t + r are those at k - 1 - i.
        taps = flipped[(kh - 1 - r) % sh :: sh, (kw - 1 - c) % sw :: sw]
        taps_h, taps_w = -(-(kh - r) // sh), -(-(kw - c) // sw)
        around = [[taps_h - 1, steps[0] - outs[0]], [taps_w - 1, steps[1] - outs[1]]]
        return _conv(geometry, dz, taps, around)

    if (kh, kw) == (1, 1):
        dsrc = _spread(phase(0, 0), axis, geometry.strides)
    else:
        phases = {(r, c): phase(r, c) for r in range(min(sh, kh)) for c in range(min(sw, kw))}
        zeros = tf.zeros_like(phases[0, 0])  # behind strides that no tap reaches
        rows = [[phases.get((r, c), zeros) for c in range(sw)] for r in range(sh)]
        dsrc = _interleaved([_interleaved(row, axis + 1) for row in rows], axis)
    begin, size = [0] * dsrc.shape.rank, [-1] * dsrc.shape.rank
    begin[axis : axis + 2], size[axis : axis + 2] = before, sizes
    if list(dsrc.shape[axis : axis + 2]) == list(sizes):
        return dsrc
    return tf.slice(dsrc, begin, size)


def _interleaved(parts: list, axis: int):
    """Element i of part p at index i * len(parts) + p of `axis`."""
    if len(parts) == 1:
        return parts[0]
    stacked = tf.stack(parts, axis + 1)
    shape = [-1, *parts[0].shape[1:]]
    shape[axis] *= len(parts)
    return tf.reshape(stacked, shape)


def _spread(x, axis: int, strides):
    """x with zeros behind each row and column, so that they are `strides` apart."""
    shape = tf.shape(x)
    height, width, rest = shape[axis], shape[axis + 1], shape[axis + 2 :]
    split = tf.concat([shape[:axis], [height, 1, width, 1], rest], 0)
    paddings = [[0, 0]] * (axis + 1)
    paddings += [[0, strides[0] - 1], [0, 0], [0, strides[1] - 1]]
    paddings += [[0, 0]] * (x.shape.rank - axis - 2)
    spread = tf.pad(tf.reshape(x, split), paddings)
    joined = tf.concat([shape[:axis], [height * strides[0], width * strides[1]], rest], 0)
    spread = tf.reshape(spread, joined)
    static = x.shape.as_list()
    for i, stride in enumerate(strides):
        static[axis + i] = None if static[axis + i] is None else static[axis + i] * stride
    spread.set_shape(static)
    return spread


def _by_insertion(geometry: ConvGeometry, dz, flipped, sizes, outs):
    """Anything: ddst with zeros between its pixels, padded or cut to d (k - 1) pixels more than
    dsrc has, then a convolution without padding."""
    axis = _height_axis(geometry.dst_layout)
    spread = _spread(dz, axis, geometry.strides)
    paddings, begin, end = [], [], []
    for i in range(2):
        reach = geometry.reach(i)
        before = reach - geometry.paddings(sizes[i], outs[i], i)[0]
        after = sizes[i] + reach - before - outs[i] * geometry.strides[i]
        paddings.append([tf.maximum(before, 0), tf.maximum(after, 0)])
        begin.append(tf.maximum(-before, 0))
        end.append(sizes[i] + reach)
    rank = dz.shape.rank
    around = [[0, 0]] * axis + paddings + [[0, 0]] * (rank - axis - 2)
    padded = tf.pad(spread, around)
    padded = tf.slice(
        padded,
        [0] * axis + begin + [0] * (rank - axis - 2),
        [-1] * axis + end + [-1] * (rank - axis - 2),
    )
    static = dz.shape.as_list()
    for i in range(2):
        known = isinstance(sizes[i], int)
        static[axis + i] = sizes[i] + geometry.reach(i) if known else None
    padded.set_shape(static)
    return _conv(geometry, padded, flipped, "VALID", geometry.dilations)
