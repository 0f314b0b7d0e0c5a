"""Convolutions as Keras has them, on our kernels."""

import keras
import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC
from ..native import multiplies
from ..ops.conv.conv import conv
from ..ops.conv.conv_transpose import conv_transpose
from ..ops.conv.conv_volume import conv_volume
from ..ops.movement.reorder import reorder
from ..ops.pixels.eltwise import eltwise
from ..ops.post_ops import PostOps
from .activation import append, chain_of, fuses, on_plain
from .blocked_layer import (
    BlockedLayer,
    check_algorithm,
    from_blocked,
    from_images,
    images,
    on_images,
    to_blocked,
)
from .classes import by_rank, register
from .fusing import fuse_1x1, without_pad


class ConvolutionLayer(BlockedLayer):
    """What convolutions share: a line is an image of height 1, a volume the images that are its
    slices."""

    def __init__(self, *args, algorithm: str = "auto", **kwargs):
        """Adds to the arguments of `BlockedLayer`:

        Args:
          algorithm: "auto", or "direct": docs/algorithms.md. Gradients have the same.

        Raises:
          ValueError: another algorithm.
        """
        super().__init__(*args, **kwargs)
        self.algorithm = check_algorithm(algorithm)

    def get_config(self):
        chosen = {} if self.algorithm == "auto" else {"algorithm": self.algorithm}
        return super().get_config() | chosen

    @property
    def computes_itself(self) -> bool:
        return self.has_kernel() and self.data_format == "channels_last" and self.is_float32

    def has_kernel(self) -> bool:
        """Whether we have a kernel for these arguments."""
        return True

    def images(self, x):
        """x as images."""
        return images(x, 2 if self.reads_blocked else 1)

    def convolve(self, x, kernel, groups, chain, dst_blocked, src_blocked=None, **window):
        """bd.ops.conv of images with a kernel of any rank.

        Args:
          groups: None: the kernel is depthwise, [.., C, m]; otherwise it is [.., C / groups, O].
        """
        shape = kernel.shape.as_list()
        shape = [1] * (self.rank == 1) + shape
        if len(window) == 0:
            x, window = without_pad(x, self.window())
        if groups is None:
            groups, shape = shape[2], [*shape[:2], 1, shape[2] * shape[3]]
        src_blocked = self.reads_blocked if src_blocked is None else src_blocked
        layout = NCHW16C if src_blocked else NHWC
        if self._multiplies_bfloat16(shape, groups, window):
            x = reorder(x, layout, layout, channels=shape[2], dtype=tf.bfloat16)
        return conv(
            x,
            kernel,
            weights_shape=shape,
            groups=groups,
            post_ops=chain,
            how=self.algorithm,
            src_layout=layout,
            dst_layout=NCHW16C if dst_blocked else NHWC,
            **window,
        )

    def _multiplies_bfloat16(self, shape, groups: int, window: dict) -> bool:
        """Whether the products are those of bfloat16: under mixed_bfloat16, where the CPU has them
        and they are faster. Where Winograd's algorithm applies, and channel by channel, float32 is.
        """
        wanted = self._policy_dtype == "bfloat16" and groups == 1 and shape[2] >= BLOCK
        direct = shape[:2] == [1, 1] or max(window.get("strides", (1,))) > 1
        return wanted and direct and multiplies("bf16")

    def window(self) -> dict:
        """Strides, dilations and padding as bd.ops.conv takes them."""
        strides, dilations = list(self.strides), list(self.dilation_rate)
        padding = self.padding.upper()
        if padding == "CAUSAL":
            reach = dilations[0] * (self.kernel_size[0] - 1)
            padding = [[0, 0], [reach, 0]]
        if self.rank == 1:
            strides, dilations = [1, *strides], [1, *dilations]
        return dict(strides=strides, dilations=dilations, padding=padding)

    def activate(self, y, training, channels: int):
        """The activation, if `chain_of` left it out, and the type of the result."""
        if not fuses(self.activation, training):
            chain = append(PostOps(), self.activation)
            if not self.writes_blocked:
                y = self.activation(y)
            elif chain is None:
                y = on_plain(self.activation, y, channels)
            else:
                y = on_images(lambda y: eltwise(y, chain, channels=channels), y)
        return y if self.writes_blocked else tf.cast(y, self._policy_dtype)

    def is_ours(self, inputs) -> bool:
        rank = len(inputs.shape) - self.reads_blocked
        return self.computes_itself and rank == self.rank + 2


class _Conv(ConvolutionLayer):
    def compute(self, inputs, training):
        kernel = tf.convert_to_tensor(self.kernel)
        y = self.convolve(
            self.images(inputs), kernel, self.groups, chain_of(self, training), self.writes_blocked
        )
        return self.activate(from_images(y, self.rank, inputs), training, self.filters)


_BLOCKED = " on our kernels; blocked, it reads and writes {}."
_SHRUNK = {1: [1, 6, 6], 2: [1, 6, 6, 6]}
Conv1D, Conv2D = by_rank(_Conv, "Conv{}D", _BLOCKED, "6, 3", _SHRUNK)


@register
class Conv3D(ConvolutionLayer, keras.layers.Conv3D):
    """keras.layers.Conv3D on our kernels; blocked, it reads and writes slices of nChw16c.

    Groups and dilations are computed by TensorFlow on plain tensors.

    Example:
      >>> bd.layers.Conv3D(6, 3)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 2, 2, 2, 6])
    """

    def has_kernel(self) -> bool:
        return self.groups == 1 and max(self.dilation_rate) == 1

    def is_ours(self, inputs) -> bool:
        return super().is_ours(inputs) and inputs.shape[1] is not None

    def compute(self, inputs, training):
        y = conv_volume(
            self.images(inputs),
            tf.convert_to_tensor(self.kernel),
            depth=inputs.shape[1],
            strides=self.strides,
            padding=self.padding,
            post_ops=chain_of(self, training),
            how=self.algorithm,
            src_layout=NCHW16C if self.reads_blocked else NHWC,
            dst_layout=NCHW16C if self.writes_blocked else NHWC,
        )
        reach = 0 if self.padding == "same" else self.kernel_size[0] - 1
        depth = -(-(inputs.shape[1] - reach) // self.strides[0])
        return self.activate(from_images(y, self.rank, inputs, depth), training, self.filters)


class _DepthwiseConv(ConvolutionLayer):
    def compute(self, inputs, training):
        kernel = tf.convert_to_tensor(self.kernel)
        channels, multiplier = kernel.shape[-2:]
        chain, y = chain_of(self, training), None
        if self.rank == 2 and self.writes_blocked and multiplier == 1 and not training:
            y = fuse_1x1(inputs, kernel, chain, self.window())
        if y is None:
            y = self.convolve(self.images(inputs), kernel, None, chain, self.writes_blocked)
        return self.activate(from_images(y, self.rank, inputs), training, channels * multiplier)


DepthwiseConv1D, DepthwiseConv2D = by_rank(
    _DepthwiseConv, "DepthwiseConv{}D", _BLOCKED, "3", {1: [1, 6, 20], 2: [1, 6, 6, 20]}
)


class _SeparableConv(ConvolutionLayer):
    def compute(self, inputs, training):
        depthwise = tf.convert_to_tensor(self.depthwise_kernel)
        pointwise = tf.convert_to_tensor(self.pointwise_kernel)
        x = self.convolve(self.images(inputs), depthwise, None, PostOps(), True)
        chain = chain_of(self, training)
        y = self.convolve(
            x, pointwise, 1, chain, self.writes_blocked, src_blocked=True, padding="VALID"
        )
        return self.activate(from_images(y, self.rank, inputs), training, self.filters)


SeparableConv1D, SeparableConv2D = by_rank(
    _SeparableConv, "SeparableConv{}D", _BLOCKED, "6, 3", _SHRUNK
)


class _ConvTranspose(ConvolutionLayer):
    """Keras's kernel is [.., filters, channels], as bd.ops.conv_transpose has it."""

    def has_kernel(self) -> bool:
        if max(self.dilation_rate) > 1 or max(self.strides) > 16:
            return False
        if self.output_padding is None:
            return True
        # Other sizes are an error of TensorFlow's.
        odd = [k % 2 - 1 if self.padding == "same" else 0 for k in self.kernel_size]
        each = zip(odd, self.output_padding, self.strides, strict=True)
        return all(0 <= o + extra < s for o, extra, s in each)

    def _crops(self) -> list:
        """[before, after] of each axis: pixels that source pixels reach beyond the result."""
        extras = self.output_padding or [None] * self.rank
        crops = []
        for k, s, extra in zip(self.kernel_size, self.strides, extras, strict=True):
            if self.padding == "same":
                total = k - s if extra is None else 2 * (k // 2) - extra
                before = max(total, 0) // 2
            else:
                total = min(k - s, 0) if extra is None else -extra
                before = 0
            crops.append([before, total - before])
        return crops

    def compute(self, inputs, training):
        kernel = tf.convert_to_tensor(self.kernel)
        kernel = kernel[None] if self.rank == 1 else kernel
        x = self.images(inputs)
        x = x if self.reads_blocked else to_blocked(x)
        y = self._transpose(x, kernel, chain_of(self, training), inputs)
        return self.activate(y, training, self.filters)

    def _transpose(self, x, kernel, chain, inputs):
        """The result in the layout that `writes_blocked` says."""
        strides, crops = [1, *self.strides][-2:], [[0, 0], *self._crops()][-2:]
        blocked = self.writes_blocked or self.filters >= BLOCK
        y = conv_transpose(
            x,
            kernel,
            strides=strides,
            crops=crops,
            post_ops=chain,
            how=self.algorithm,
            dst_layout=NCHW16C if blocked else NHWC,
        )
        if blocked and not self.writes_blocked:
            y = from_blocked(y, self.filters)
        return from_images(y, self.rank, inputs)


Conv1DTranspose, Conv2DTranspose = by_rank(
    _ConvTranspose,
    "Conv{}DTranspose",
    " on our convolutions; blocked, it reads and writes {}.",
    "6, 2, strides=2",
    {1: [1, 16, 6], 2: [1, 16, 16, 6]},
)


@register
class Conv3DTranspose(_ConvTranspose, keras.layers.Conv3DTranspose):
    """keras.layers.Conv3DTranspose on our transposed convolutions, one for each slice of the
    kernel; blocked, it reads and writes slices of nChw16c.

    Example:
      >>> bd.layers.Conv3DTranspose(6, 2, strides=2)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 8, 8, 8, 6])
    """

    def _transpose(self, x, kernel, chain, inputs):
        """Along the depth D, slice s t + r of the kernel adds what it makes of slice q - t to slice
        s q + r."""
        depth, stride = self.kernel_size[0], self.strides[0]
        options = dict(strides=self.strides[1:], crops=self._crops()[1:])
        options["how"] = self.algorithm
        if depth == stride and self._crops()[0] == [0, 0]:  # nothing is added up
            options, chain = options | {"post_ops": chain}, None
        last = (depth - 1) // stride
        each = []
        for r in range(stride):
            parts = []
            for k in range(r, depth, stride):
                y = from_images(conv_transpose(x, kernel[k], **options), 3, inputs)
                shift = k // stride
                around = [[0, 0], [shift, last - shift]] + [[0, 0]] * 4
                parts.append(tf.pad(y, around) if last else y)
            each.append(tf.add_n(parts) if parts else tf.zeros_like(each[0]))
        y = each[0] if stride == 1 else tf.stack(each, 2)
        shape = tf.shape(each[0])
        y = tf.reshape(y, tf.concat([shape[:1], [-1], shape[2:]], 0))
        before, after = self._crops()[0]
        size = None
        if inputs.shape[1] is not None:
            size = (inputs.shape[1] - 1) * stride + depth - before - after
        end = after + (last + 1) * stride - depth  # slices too many, or that nothing reaches
        y = y[:, before : -max(end, 0) or None]
        if end < 0:
            y = tf.pad(y, [[0, 0], [0, -end]] + [[0, 0]] * 4)
        y.set_shape([inputs.shape[0], size, *each[0].shape[2:]])
        if chain:
            y = on_images(lambda y: eltwise(y, chain, channels=self.filters), y)
        return y if self.writes_blocked else from_blocked(y, self.filters)
