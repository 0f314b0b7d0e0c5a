"""Gradients of convolutions, out of our own convolutions.

    dst[y] = sum over i of src[s y + d i - p] w[i]            along each axis, so
    dsrc[h] = sum over i, y with s y + d i - p = h of dst[y] w[i]
    dw[i] = sum over y of src[s y + d i - p]^T ddst[y]

Of the source, with s = 1, it is a convolution of ddst with the flipped filter, channels exchanged,
padded by d (k - 1) - p. With s > 1 and d = 1, h + p = s q + r needs i = s t + r: each of the s
phases r of dsrc is a convolution of stride 1 with every s-th tap, dsrc[s q + r - p] = sum of
ddst[q - t] w[s t + r]. Of blocked tensors without groups that is one op, the transposed
convolution.

Of the weights, an op of ours sums it where both tensors lie. Groups that are neither depthwise nor
of whole blocks of channels are convolutions of their own, of plain tensors.

A transposed convolution is linear in both inputs, and the adjoint, by its source, of the strided
convolution with the same filter: its own gradients are that convolution of ddst, and the gradient
of that convolution's weights with ddst for the source.

    dst[z] = sum over taps i of conv(src[s z + i - p], w[i])    along the depth, slices being images

so the gradient of w[i] of a 3-D convolution is that of a 2-D convolution's weights, of the slices
that tap i reads. With stride 1 the gradient of src is a 3-D convolution of ddst with the flipped
filter, channels exchanged; with others it is TensorFlow's.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace

import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC
from ..native import library
from ..ops.arguments import padding_attrs
from ..ops.conv.conv import conv
from ..ops.conv.conv_transpose import conv_transpose
from ..ops.conv.conv_volume import conv_volume
from ..ops.movement.reorder import reorder
from .blocked import elements, part_of, slices, volumes
from .chain import Chain, through_chain
from .node import gradient_of, vjp


@dataclass(frozen=True)
class ConvGeometry:
    """What a convolution without post-ops is, apart from its tensors.

    Attributes:
      weights_shape: [kh, kw, channels / groups, output channels].
      padding: "SAME", "VALID" or [[top, bottom], [left, right]].
      algorithm: of the convolution, and of the convolutions that compute its gradients.
    """

    weights_shape: tuple[int, ...]
    groups: int
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: "str | list"
    src_layout: str
    dst_layout: str
    algorithm: str = "auto"

    @classmethod
    def of(cls, called, **changes) -> "ConvGeometry":
        """That of a convolution or of the gradient by the weights, but for what `changes` say."""
        padding = changes.pop("padding", None) or called.padding_argument
        names = {field.name for field in fields(cls)} - {"padding", *changes}
        values = {name: getattr(called, name) for name in names} | changes
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(padding=padding, **values)

    @property
    def channels(self) -> int:
        return self.weights_shape[2] * self.groups

    @property
    def out_channels(self) -> int:
        return self.weights_shape[3]

    def reach(self, axis: int) -> int:
        """Pixels from the first tap of a window to the last one, along height (0) or width (1)."""
        return (self.weights_shape[axis] - 1) * self.dilations[axis]

    def paddings(self, size, out, axis: int) -> tuple:
        """Pixels of padding before and after an axis of `size` pixels and `out` results.

        With VALID padding, what a stride leaves over is negative padding after.
        """
        if self.strides[axis] == 1:
            need = self.reach(axis) if self.padding == "SAME" else 0
        else:
            need = (out - 1) * self.strides[axis] + self.reach(axis) + 1 - size
        if self.padding == "VALID":
            return 0, need
        if self.padding == "SAME":
            need = max(need, 0) if isinstance(need, int) else tf.maximum(need, 0)
            return need // 2, need - need // 2
        return tuple(self.padding[axis])

    def forward(self, src, weights, scratchpad_mode: str = "user"):
        """The convolution itself."""
        options = asdict(self)
        del options["weights_shape"]
        how = f"{options.pop('algorithm')} {scratchpad_mode}"
        return conv(src, weights, how=how, **options)


def _by_src_and_weights(called, of_src: Callable, of_weights: Callable) -> list:
    """The gradients of the inputs of those names, computed where they are wanted."""
    dsrc = of_src() if called.wants("src") else None
    if not called.wants("weights"):
        return [dsrc, None]
    return [dsrc, tf.reshape(of_weights(), called.weights.shape)]


@gradient_of("Conv", sources=(tf.bfloat16,))
def _conv(called, dy):
    """Of a source of bfloat16 the products of both gradients are of numbers rounded to bfloat16,
    too, added up as float32, and the gradient of the weights is float32 as they are."""
    geometry = ConvGeometry.of(called)
    channels, layout = geometry.out_channels, geometry.dst_layout

    def forward(src, weights, *_):
        return geometry.forward(src, weights, called.scratchpad_mode)

    def backward(dz) -> list:
        src, kind, rounded = called.src, called.src.dtype, dz
        if kind == tf.bfloat16:
            rounded = reorder(dz, layout, layout, channels=channels, dtype=kind)
            dz = tf.cast(rounded, tf.float32)

        def of_src():
            filters = tf.reshape(called.weights, geometry.weights_shape)
            y = dz if _is_transposed(geometry) else rounded
            plane = _plane_of(src, geometry.src_layout)
            return tf.cast(_backward_data(geometry, y, filters, plane), kind)

        return _by_src_and_weights(
            called, of_src, lambda: _backward_weights(geometry, tf.cast(src, tf.float32), dz)
        )

    chain = Chain.of(called.post_ops, channels, layout)
    return through_chain(called, dy, chain, forward, backward, geometry.channels)


# The gradient of the source.


def _backward_data(geometry: ConvGeometry, dz, weights, sizes):
    """The gradient of the source, in the source's layout; also the transposed convolution of `dz`.

    Args:
      dz: the gradient of the result, in the result's layout.
      weights: [kh, kw, channels / groups, output channels].
      sizes: height and width of the source, integers where they are known.
    """
    outs = _plane_of(dz, geometry.dst_layout)
    static = all(isinstance(size, int) for size in (*sizes, *outs))
    if static and _is_transposed(geometry):
        return _by_transposed(geometry, dz, weights, sizes, outs)
    flipped = _flipped(geometry, weights)
    if static and geometry.dilations == (1, 1) != geometry.strides:
        before = [geometry.paddings(sizes[a], outs[a], a)[0] for a in range(2)]
        steps = [-(-(sizes[a] + before[a]) // geometry.strides[a]) for a in range(2)]
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


def _convolve(geometry: ConvGeometry, dz, weights, padding, dilations=(1, 1)):
    """The convolution of stride 1 from the layout of the result to that of the source."""
    back = replace(
        geometry,
        strides=(1, 1),
        dilations=dilations,
        padding=padding,
        src_layout=geometry.dst_layout,
        dst_layout=geometry.src_layout,
    )
    return back.forward(dz, weights)


def _height_axis(layout: str) -> int:
    return 1 if layout == NHWC else 2


def _plane_of(x, layout: str) -> list:
    """Height and width, integers where they are known."""
    axis = _height_axis(layout)
    sizes = list(x.shape[axis : axis + 2])
    if None in sizes:
        dynamic = tf.shape(x)
        sizes = [dynamic[axis + i] if size is None else size for i, size in enumerate(sizes)]
    return sizes


def _is_transposed(geometry: ConvGeometry) -> bool:
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
    window = dict(strides=geometry.strides, crops=crops, how=geometry.algorithm)
    dsrc = conv_transpose(dz, weights, dst_layout=layout, **window)
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
        return _convolve(geometry, dz, taps, around)

    phases = {(r, c): phase(r, c) for r in range(min(sh, kh)) for c in range(min(sw, kw))}
    dsrc = _side_by_side(phases, axis, geometry.strides)
    if list(dsrc.shape[axis : axis + 2]) == list(sizes):
        return dsrc
    begin, size = [0] * dsrc.shape.rank, [-1] * dsrc.shape.rank
    begin[axis : axis + 2], size[axis : axis + 2] = before, sizes
    return tf.slice(dsrc, begin, size)


def _side_by_side(phases: dict, axis: int, strides):
    """Pixel (i, j) of phase (r, c) at (i s + r, j s + c); zeros where there is no such phase."""
    zeros = tf.zeros_like(phases[0, 0])
    rows = (
        _interleaved([phases.get((r, c), zeros) for c in range(strides[1])], axis + 1)
        for r in range(strides[0])
    )
    return _interleaved(list(rows), axis)


def _interleaved(parts: list, axis: int):
    """Element i of part p at index i * len(parts) + p of `axis`."""
    if len(parts) == 1:
        return parts[0]
    shape, static = tf.shape(parts[0]), parts[0].shape.as_list()
    static[axis] = None if static[axis] is None else static[axis] * len(parts)
    joined = tf.concat([shape[:axis], len(parts) * shape[axis : axis + 1], shape[axis + 1 :]], 0)
    y = tf.reshape(tf.stack(parts, axis + 1), joined if None in static else static)
    y.set_shape(static)
    return y


def _by_insertion(geometry: ConvGeometry, dz, flipped, sizes, outs):
    """Anything: ddst with zeros between pixels, padded or cut to d (k - 1) pixels more than
    dsrc has, then a convolution without other padding."""
    axis, rank = _height_axis(geometry.dst_layout), dz.shape.rank
    spread = _side_by_side({(0, 0): dz}, axis, geometry.strides)
    around = []
    for i in range(2):
        before, after = geometry.paddings(sizes[i], outs[i], i)
        end = geometry.reach(i) - after
        if geometry.strides[i] > 1:  # Windows may not reach the end of the padding.
            end = sizes[i] + before - outs[i] * geometry.strides[i]
        around.append([geometry.reach(i) - before, end])
    if all(isinstance(n, int) and n >= 0 for pair in around for n in pair):
        return _convolve(geometry, spread, flipped, around, geometry.dilations)
    begin, size, static = [0] * rank, [-1] * rank, dz.shape.as_list()
    paddings = [[0, 0]] * rank
    for i, (before, after) in enumerate(around, axis):
        paddings[i] = [tf.maximum(before, 0), tf.maximum(after, 0)]
        begin[i], size[i] = tf.maximum(-before, 0), sizes[i - axis] + geometry.reach(i - axis)
        static[i] = size[i] if isinstance(size[i], int) else None
    padded = tf.slice(tf.pad(spread, paddings), begin, size)
    padded.set_shape(static)
    return _convolve(geometry, padded, flipped, "VALID", geometry.dilations)


# The gradient of the weights.


def _backward_weights(geometry: ConvGeometry, src, dz):
    """The gradient of the weights, [kh, kw, channels / groups, output channels].

    Args:
      src, dz: the source and the gradient of the result, in their layouts.
    """
    if _has_kernel(geometry):
        attributes = asdict(geometry) | padding_attrs(geometry.padding)
        return library().blockdnn_conv_backward_weights(
            src, dz, channels=geometry.channels, **attributes
        )
    if geometry.src_layout == NCHW16C:
        src = reorder(src, NCHW16C, NHWC, channels=geometry.channels)
    if geometry.dst_layout == NCHW16C:
        dz = reorder(dz, NCHW16C, NHWC, channels=geometry.out_channels)
    usual = geometry.dilations == (1, 1) and geometry.strides[0] == geometry.strides[1]
    if usual and geometry.weights_shape[2] == 1:
        return _depthwise_weights(geometry, src, dz)
    groups = geometry.groups
    shape = (*geometry.weights_shape[:3], geometry.out_channels // groups)
    single = replace(geometry, weights_shape=shape, groups=1, src_layout=NHWC, dst_layout=NHWC)
    pairs = zip(tf.split(src, groups, 3), tf.split(dz, groups, 3), strict=True)
    return tf.concat([_backward_weights(single, *pair) for pair in pairs], 3)


def _has_kernel(geometry: ConvGeometry) -> bool:
    """What MakeBackwardWeightsPlan plans."""
    if geometry.groups == 1:
        return True
    if not geometry.src_layout == geometry.dst_layout == NCHW16C:
        return False
    inputs, groups = geometry.weights_shape[2], geometry.groups
    outputs = geometry.out_channels // groups
    return inputs == outputs == 1 or (inputs % BLOCK == 0 and outputs % BLOCK == 0)


@gradient_of("ConvBackwardWeights")
def _conv_backward_weights(called, ddweights):
    """Linear in both: the convolution's own formulas, with ddweights for the weights."""
    geometry = ConvGeometry.of(called)
    src, ddst = called.inputs
    dsrc = dddst = None
    if called.wants("src"):
        dsrc = _backward_data(geometry, ddst, ddweights, _plane_of(src, geometry.src_layout))
    if called.wants("ddst"):
        dddst = geometry.forward(src, ddweights)
    return [dsrc, dddst]


def _depthwise_weights(geometry: ConvGeometry, src, dz):
    """TensorFlow's kernel, which has one stride for both axes and no dilations."""
    padding = geometry.padding
    if not isinstance(padding, str):
        src, padding = tf.pad(src, [[0, 0], *padding, [0, 0]]), "VALID"
    multiplier = geometry.out_channels // geometry.channels
    dw = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=src,
        filter_sizes=[*geometry.weights_shape[:2], geometry.channels, multiplier],
        out_backprop=dz,
        strides=[1, *geometry.strides, 1],
        padding=padding,
    )
    dw = tf.where(tf.equal(tf.size(dz), 0), tf.zeros_like(dw), dw)  # of nothing it is undefined
    return tf.reshape(dw, geometry.weights_shape)


@gradient_of("ConvDepthwise")
def _conv_depthwise(called, dy):
    """That of the two convolutions, one after the other."""
    shape, depthwise_shape = called.weights_shape, called.depthwise_weights_shape
    channels, num_args = shape[-1], len(called.args)
    algorithm = called.algorithm
    offset, depthwise_offset = called.weights_offset, called.depthwise_weights_offset
    chain = Chain.of(called.post_ops, channels, NCHW16C)
    depthwise_chain = Chain.of(called.depthwise_post_ops, channels, NCHW16C)

    def formula(src, weights, depthwise_weights, *args):
        src = part_of(src, called.src_part, shape[2], called.src_blocks)
        x = conv(src, elements(weights, offset, shape), padding="VALID", how=algorithm)
        x = chain.apply(x, args[:num_args])
        x = conv(
            x,
            elements(depthwise_weights, depthwise_offset, depthwise_shape),
            strides=called.strides,
            dilations=called.dilations,
            padding=called.padding_argument,
            groups=channels,
            how=algorithm,
        )
        return depthwise_chain.apply(x, args[num_args:])

    return vjp(formula, called.inputs, dy)


@gradient_of("ConvTranspose")
def _conv_transpose(called, dy):
    (top, bottom, left, right), layout = called.crops, called.dst_layout
    shape, axis = called.weights_shape, _height_axis(layout)
    inside = max(top, bottom) < shape[0] and max(left, right) < shape[1]

    def forward(src, filters, *_):
        """Crops beyond the filter's reach cut the result of the op."""
        crops = [[top, bottom], [left, right]]
        if not inside:
            crops = [[0, min(bottom, 0)], [0, min(right, 0)]]
        options = dict(strides=called.strides, dst_layout=layout, how=called.algorithm)
        z = conv_transpose(src, filters, crops=crops, **options)
        if inside:
            return z
        cuts = [slice(a, -b if b > 0 else None) for a, b in ((top, bottom), (left, right))]
        return z[(*[slice(None)] * axis, *cuts)]

    def backward(dz) -> list:
        # Pixels that no source pixel reaches, and that the convolution therefore does not read.
        ends = [slice(None)] * axis + [slice(None, min(n, 0) or None) for n in (bottom, right)]
        dz = dz[tuple(ends)] if min(bottom, right) < 0 else dz
        geometry = ConvGeometry.of(
            called,
            groups=1,
            dilations=(1, 1),
            padding=[[top, max(bottom, 0)], [left, max(right, 0)]],
            src_layout=layout,
            dst_layout=NCHW16C,
        )
        return _by_src_and_weights(
            called,
            lambda: geometry.forward(dz, tf.reshape(called.weights, shape)),
            lambda: _backward_weights(geometry, dz, called.src),
        )

    chain = Chain.of(called.post_ops, shape[2], layout)
    return through_chain(called, dy, chain, forward, backward, shape[3], inside)


@gradient_of("ConvVolume")
def _conv_volume(called, dy):
    def forward(src, filters, *_):
        return _volume_by_tensorflow(called, src, filters)

    def backward(dz) -> list:
        return _by_src_and_weights(
            called, lambda: _volume_of_src(called, dz), lambda: _volume_of_weights(called, dz)
        )

    chain = Chain.of(called.post_ops, called.weights_shape[-1], called.dst_layout)
    return through_chain(called, dy, chain, forward, backward, may=called.depth > 0)


def _volume_by_tensorflow(called, src, filters):
    """The convolution itself in TensorFlow's ops."""
    x = src
    if called.src_layout == NCHW16C:
        x = reorder(x, NCHW16C, NHWC, channels=filters.shape[3])
    x = volumes(x, called.depth or _open_depth(called))
    y = slices(tf.nn.conv3d(x, filters, [1, *called.strides, 1], called.padding))
    return reorder(y, NHWC, NCHW16C) if called.dst_layout == NCHW16C else y


def _open_depth(called):
    """Slices of a volume; without a volume any number that the kernel fits in."""
    count, slices = (tf.shape(tensor)[0] for tensor in (called.volumes[0], called.src))
    return tf.where(count > 0, slices // tf.maximum(count, 1), called.weights_shape[0])


def _out_depth(called) -> int:
    kernel, stride = called.weights_shape[0], called.strides[0]
    reach = 0 if called.padding == "SAME" else kernel - 1
    return -(-(called.depth - reach) // stride)


def _volume_of_src(called, dz):
    src_layout, dst_layout, padding = called.src_layout, called.dst_layout, called.padding
    kernel, filters = called.weights_shape[:3], tf.reshape(called.weights, called.weights_shape)
    odd = all(k % 2 for k in kernel)
    if list(called.strides) != [1, 1, 1] or (padding == "SAME" and not odd):
        return vjp(lambda x: _volume_by_tensorflow(called, x, filters), [called.src], dz)[0]
    flipped = tf.transpose(tf.reverse(filters, [0, 1, 2]), [0, 1, 2, 4, 3])
    depth = _out_depth(called)
    if padding == "VALID" and max(kernel) > 1:
        plane = [[k - 1, k - 1] for k in kernel[1:]]
        plane = [*plane, [0, 0]] if dst_layout == NHWC else [[0, 0], *plane, [0, 0]]
        around = [[0, 0], [kernel[0] - 1] * 2, *plane]
        dz = slices(tf.pad(volumes(dz, depth), around))
        depth += 2 * (kernel[0] - 1)
    layouts = dict(src_layout=dst_layout, dst_layout=src_layout)
    return conv_volume(dz, flipped, depth=depth, padding=padding, how=called.algorithm, **layouts)


def _volume_of_weights(called, dz):
    shape, strides = called.weights_shape, called.strides
    depth, outs, stride = called.depth, _out_depth(called), strides[0]
    plane = dict(weights_shape=shape[1:], strides=strides[1:], padding=called.padding)
    geometry = ConvGeometry.of(called, groups=1, dilations=(1, 1), **plane)
    before = 0
    if geometry.padding == "SAME":
        before = max((outs - 1) * stride + shape[0] - depth, 0) // 2
    x, y = volumes(called.src, depth), volumes(dz, outs)
    taps = []
    for tap in range(shape[0]):
        shift = tap - before  # tap reads slice stride * z + shift
        first = max(0, -(shift // stride))
        last = min(outs - 1, (depth - 1 - shift) // stride)
        if last < first:
            taps.append(tf.zeros(shape[1:], x.dtype))
            continue
        begin = stride * first + shift
        read = x[:, begin : stride * last + shift + 1 : stride]
        taps.append(_backward_weights(geometry, slices(read), slices(y[:, first : last + 1])))
    return tf.stack(taps)
