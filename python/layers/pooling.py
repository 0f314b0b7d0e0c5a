"""Pooling as Keras has it, on our kernels where it is blocked."""

import keras
import tensorflow as tf

from ..layout import NCHW16C, NHWC
from ..ops.pool import global_pool, pool
from .blocked_layer import BlockedLayer

_registered = keras.saving.register_keras_serializable(package="tf_blockdnn")
_KINDS = {"max": "max", "average": "avg"}


class _Pooling(BlockedLayer):
    def call(self, inputs):
        self.refuse_xla()
        rank = len(self.pool_size)
        ours = self.reads_blocked and rank <= 2 and self.data_format == "channels_last"
        if not ours or min(self.strides) < 1:
            return self.by_tensorflow(super().call, inputs)
        ksize, strides = list(self.pool_size), list(self.strides)
        if rank == 1:
            inputs, ksize, strides = tf.expand_dims(inputs, 2), [1, *ksize], [1, *strides]
        y = pool(
            inputs,
            _KINDS[self.pool_mode],
            ksize,
            strides=strides,
            padding=self.padding.upper(),
            channels=self.blocked_channels,
        )
        return self.finish(tf.squeeze(y, 2) if rank == 1 else y, self.blocked_channels)


class _GlobalPooling(BlockedLayer):
    _kind = "avg"

    @property
    def writes_blocked(self) -> bool:
        return super().writes_blocked and self.keepdims

    def call(self, inputs):
        self.refuse_xla()
        if not self.reads_blocked or self.data_format != "channels_last":
            return self.by_tensorflow(super().call, inputs)
        shape = tf.shape(inputs) if None in inputs.shape[2:] else inputs.shape
        rank = len(inputs.shape) - 3
        plane = {1: [1, shape[2]], 2: list(shape[2:4])}.get(rank)
        if rank == 3:
            plane = [shape[2] * shape[3], shape[4]]
        if rank != 2:
            inputs = tf.reshape(inputs, [-1, inputs.shape[1], *plane, inputs.shape[-1]])
        layout = "nc" if not self.keepdims else NCHW16C if self.writes_blocked else NHWC
        y = global_pool(inputs, self._kind, channels=self.blocked_channels, dst_layout=layout)
        if self.keepdims and rank != 2:
            ones = [1] * rank
            blocked = self.writes_blocked
            y = tf.reshape(y, [-1, y.shape[1], *ones, 16] if blocked else [-1, *ones, y.shape[-1]])
        return y if self.writes_blocked else tf.cast(y, self._policy_dtype)


class _GlobalMax(_GlobalPooling):
    _kind = "max"

    def call(self, inputs):
        return super().call(inputs)


@_registered
class MaxPooling1D(_Pooling, keras.layers.MaxPooling1D):
    """keras.layers.MaxPooling1D; blocked (nCw16c), on our kernel.

    Example:
      >>> bd.layers.MaxPooling1D(2)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 4, 20])
    """


@_registered
class MaxPooling2D(_Pooling, keras.layers.MaxPooling2D):
    """keras.layers.MaxPooling2D; blocked (nChw16c), on our kernel.

    Example:
      >>> bd.layers.MaxPooling2D(2)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 4, 4, 20])
    """


@_registered
class MaxPooling3D(_Pooling, keras.layers.MaxPooling3D):
    """keras.layers.MaxPooling3D; blocked (nCdhw16c), with reorders around TensorFlow's kernel.

    Example:
      >>> bd.layers.MaxPooling3D(2)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 2, 2, 2, 20])
    """


@_registered
class AveragePooling1D(_Pooling, keras.layers.AveragePooling1D):
    """keras.layers.AveragePooling1D; blocked (nCw16c), on our kernel.

    Example:
      >>> bd.layers.AveragePooling1D(2)(tf.ones((1, 8, 20))).shape
      TensorShape([1, 4, 20])
    """


@_registered
class AveragePooling2D(_Pooling, keras.layers.AveragePooling2D):
    """keras.layers.AveragePooling2D; blocked (nChw16c), on our kernel.

    Example:
      >>> bd.layers.AveragePooling2D(2)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 4, 4, 20])
    """


@_registered
class AveragePooling3D(_Pooling, keras.layers.AveragePooling3D):
    """keras.layers.AveragePooling3D; blocked (nCdhw16c), with reorders around TensorFlow's.

    Example:
      >>> bd.layers.AveragePooling3D(2)(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 2, 2, 2, 20])
    """


@_registered
class GlobalMaxPooling1D(_GlobalMax, keras.layers.GlobalMaxPooling1D):
    """keras.layers.GlobalMaxPooling1D; of a blocked tensor the result is plain, [N, C], unless
    keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalMaxPooling1D()(tf.ones((1, 8, 20))).shape
      TensorShape([1, 20])
    """


@_registered
class GlobalMaxPooling2D(_GlobalMax, keras.layers.GlobalMaxPooling2D):
    """keras.layers.GlobalMaxPooling2D; of a blocked tensor the result is plain, [N, C], unless
    keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalMaxPooling2D()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 20])
    """


@_registered
class GlobalMaxPooling3D(_GlobalMax, keras.layers.GlobalMaxPooling3D):
    """keras.layers.GlobalMaxPooling3D; of a blocked tensor the result is plain, [N, C], unless
    keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalMaxPooling3D()(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 20])
    """


@_registered
class GlobalAveragePooling1D(_GlobalPooling, keras.layers.GlobalAveragePooling1D):
    """keras.layers.GlobalAveragePooling1D; of a blocked tensor the result is plain, [N, C],
    unless keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalAveragePooling1D()(tf.ones((1, 8, 20))).shape
      TensorShape([1, 20])
    """

    def call(self, inputs, mask=None):
        if mask is not None:
            return self.by_tensorflow(
                keras.layers.GlobalAveragePooling1D.call.__get__(self), inputs, mask=mask
            )
        return super().call(inputs)


@_registered
class GlobalAveragePooling2D(_GlobalPooling, keras.layers.GlobalAveragePooling2D):
    """keras.layers.GlobalAveragePooling2D; of a blocked tensor the result is plain, [N, C],
    unless keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalAveragePooling2D()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 20])
    """


@_registered
class GlobalAveragePooling3D(_GlobalPooling, keras.layers.GlobalAveragePooling3D):
    """keras.layers.GlobalAveragePooling3D; of a blocked tensor the result is plain, [N, C],
    unless keepdims keeps it blocked.

    Example:
      >>> bd.layers.GlobalAveragePooling3D()(tf.ones((1, 4, 4, 4, 20))).shape
      TensorShape([1, 20])
    """
