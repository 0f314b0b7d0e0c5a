"""Convolutions as Keras has them, on our kernels."""

import keras
import tensorflow as tf

from ..gradients.conv_data import backward_data, plane_of
from ..gradients.geometry import ConvGeometry
from ..layout import NCHW16C, NHWC
from ..ops.conv import conv
from ..ops.eltwise import eltwise
from ..ops.post_ops import PostOps
from . import functions
from .blocked_layer import BlockedLayer

_registered = keras.saving.register_keras_serializable(package="tf_blockdnn")


class ConvolutionLayer(BlockedLayer):
    """What convolutions share: one dimension is two of height 1; three are TensorFlow's."""

    @property
    def computes_itself(self) -> bool:
        return self.rank <= 2 and self.data_format == "channels_last" and self.is_float32

    def lifted(self, x):
        """x with a height of 1, if it has none."""
        if self.rank == 2:
            return x
        return tf.expand_dims(x, 2 if self.reads_blocked else 1)

    def lowered(self, y):
        """The inverse, of a result."""
        if self.rank == 2:
            return y
        return tf.squeeze(y, 2 if self.writes_blocked else 1)

    def convolved(self, x, kernel, groups, chain, dst_blocked, src_blocked=None, **window):
        """bd.ops.conv of a lifted tensor with a kernel of any rank, HWIO or depthwise."""
        shape = kernel.shape.as_list()
        shape = [1] * (self.rank == 1) + shape
        if len(window) == 0:
            window = self.window()
        if groups > 1 and shape[2] == groups:  # a depthwise kernel [.., C, m]
            shape = [*shape[:2], 1, shape[2] * shape[3]]
        src_blocked = self.reads_blocked if src_blocked is None else src_blocked
        return conv(
            x,
            kernel,
            weights_shape=shape,
            groups=groups,
            post_ops=chain,
            src_layout=NCHW16C if src_blocked else NHWC,
            dst_layout=NCHW16C if dst_blocked else NHWC,
            **window,
        )

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

    def with_bias(self, training) -> PostOps:
        """The chain of bias and activation, as far as it belongs into the convolution."""
        chain = PostOps()
        if self.use_bias:
            chain = chain.binary("add", tf.convert_to_tensor(self.bias), "channel")
        if functions.fuses(self.activation, training):
            chain = functions.append(chain, self.activation)
        return chain

    def activated(self, y, training, channels: int):
        """The activation, if `with_bias` left it out, and the type of the result."""
        if not functions.fuses(self.activation, training):
            chain = functions.append(PostOps(), self.activation)
            if not self.writes_blocked:
                y = self.activation(y)
            elif chain is None:
                y = functions.on_plain(self.activation, y, channels)
            else:
                y = self.lowered(eltwise(self.lifted_result(y), chain, channels=channels))
        return y if self.writes_blocked else tf.cast(y, self._policy_dtype)

    def lifted_result(self, y):
        return tf.expand_dims(y, 2) if self.rank == 1 else y

    def _is_ours(self, inputs) -> bool:
        rank = len(inputs.shape) - self.reads_blocked
        return self.computes_itself and rank == self.rank + 2


class _Conv(ConvolutionLayer):
    def call(self, inputs, training=None):
        self.refuse_xla()
        if not self._is_ours(inputs):
            return self.by_tensorflow(super().call, inputs)
        kernel = tf.convert_to_tensor(self.kernel)
        y = self.convolved(
            self.lifted(inputs), kernel, self.groups, self.with_bias(training), self.writes_blocked
        )
        return self.activated(self.lowered(y), training, self.filters)


@_registered
class Conv1D(_Conv, keras.layers.Conv1D):
    """keras.layers.Conv1D on our kernels; blocked, it reads and writes nCw16c.

    Example:
      >>> bd.layers.Conv1D(6, 3)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 6, 6])
    """


@_registered
class Conv2D(_Conv, keras.layers.Conv2D):
    """keras.layers.Conv2D on our kernels; blocked, it reads and writes nChw16c.

    Example:
      >>> bd.layers.Conv2D(6, 3)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 6, 6, 6])
    """


@_registered
class Conv3D(_Conv, keras.layers.Conv3D):
    """keras.layers.Conv3D; blocked (nCdhw16c), with reorders around TensorFlow's kernel.

    Example:
      >>> bd.layers.Conv3D(6, 3)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 2, 2, 2, 6])
    """


class _DepthwiseConv(ConvolutionLayer):
    def call(self, inputs, training=None):
        self.refuse_xla()
        if not self._is_ours(inputs):
            return self.by_tensorflow(super().call, inputs)
        kernel = tf.convert_to_tensor(self.kernel)
        channels, multiplier = kernel.shape[-2:]
        y = self.convolved(
            self.lifted(inputs), kernel, channels, self.with_bias(training), self.writes_blocked
        )
        return self.activated(self.lowered(y), training, channels * multiplier)


@_registered
class DepthwiseConv1D(_DepthwiseConv, keras.layers.DepthwiseConv1D):
    """keras.layers.DepthwiseConv1D on our kernels; blocked, it reads and writes nCw16c.

    Example:
      >>> bd.layers.DepthwiseConv1D(3)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 6, 20])
    """


@_registered
class DepthwiseConv2D(_DepthwiseConv, keras.layers.DepthwiseConv2D):
    """keras.layers.DepthwiseConv2D on our kernels; blocked, it reads and writes nChw16c.

    Example:
      >>> bd.layers.DepthwiseConv2D(3)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 6, 6, 20])
    """


class _SeparableConv(ConvolutionLayer):
    def call(self, inputs, training=None):
        self.refuse_xla()
        if not self._is_ours(inputs):
            return self.by_tensorflow(super().call, inputs)
        depthwise = tf.convert_to_tensor(self.depthwise_kernel)
        pointwise = tf.convert_to_tensor(self.pointwise_kernel)
        x = self.convolved(self.lifted(inputs), depthwise, depthwise.shape[-2], PostOps(), True)
        chain = self.with_bias(training)
        y = self.convolved(
            x, pointwise, 1, chain, self.writes_blocked, src_blocked=True, padding="VALID"
        )
        return self.activated(self.lowered(y), training, self.filters)


@_registered
class SeparableConv1D(_SeparableConv, keras.layers.SeparableConv1D):
    """keras.layers.SeparableConv1D on our kernels; blocked, it reads and writes nCw16c.

    Example:
      >>> bd.layers.SeparableConv1D(6, 3)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 6, 6])
    """


@_registered
class SeparableConv2D(_SeparableConv, keras.layers.SeparableConv2D):
    """keras.layers.SeparableConv2D on our kernels; blocked, it reads and writes nChw16c.

    Example:
      >>> bd.layers.SeparableConv2D(6, 3)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 6, 6, 6])
    """


class _ConvTranspose(ConvolutionLayer):
    """The gradient of a convolution with respect to its source, as convolutions of stride 1.

    Keras's kernel [.., filters, channels] is that convolution's, from filters to channels.
    """

    @property
    def computes_itself(self) -> bool:
        # Sizes that Keras lets differ from those of the convolution are left to TensorFlow.
        usual = self.output_padding is None and max(self.dilation_rate) == 1
        return usual and super().computes_itself

    def call(self, inputs, training=None):
        self.refuse_xla()
        if not self._is_ours(inputs):
            return self.by_tensorflow(super().call, inputs)
        kernel = tf.convert_to_tensor(self.kernel)
        kernel = kernel[None] if self.rank == 1 else kernel
        x, window = self.lifted(inputs), self.window()
        geometry = ConvGeometry(
            weights_shape=tuple(kernel.shape),
            groups=1,
            strides=tuple(window["strides"]),
            dilations=(1, 1),
            padding=window["padding"],
            src_layout=NCHW16C if self.writes_blocked else NHWC,
            dst_layout=NCHW16C if self.reads_blocked else NHWC,
        )
        sizes = [
            n * s if geometry.padding == "SAME" else n * s + max(k - s, 0)
            for n, s, k in zip(
                plane_of(x, geometry.dst_layout), geometry.strides, kernel.shape, strict=False
            )
        ]
        y = backward_data(geometry, x, kernel, sizes)
        chain = self.with_bias(training)
        if chain:
            layout = geometry.src_layout
            y = eltwise(y, chain, layout=layout, channels=self.filters)
        return self.activated(self.lowered(y), training, self.filters)


@_registered
class Conv1DTranspose(_ConvTranspose, keras.layers.Conv1DTranspose):
    """keras.layers.Conv1DTranspose on our convolutions; blocked, it reads and writes nCw16c.

    Example:
      >>> bd.layers.Conv1DTranspose(6, 2, strides=2)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 16, 6])
    """


@_registered
class Conv2DTranspose(_ConvTranspose, keras.layers.Conv2DTranspose):
    """keras.layers.Conv2DTranspose on our convolutions; blocked, it reads and writes nChw16c.

    Example:
      >>> bd.layers.Conv2DTranspose(6, 2, strides=2)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 16, 16, 6])
    """


@_registered
class Conv3DTranspose(_ConvTranspose, keras.layers.Conv3DTranspose):
    """keras.layers.Conv3DTranspose; blocked, with reorders around TensorFlow's kernel.

    Example:
      >>> bd.layers.Conv3DTranspose(6, 2, strides=2)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 8, 8, 8, 6])
    """
