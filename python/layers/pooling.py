"""Pooling as Keras has it, on our kernels where it is blocked."""

import keras
import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC
from ..ops.planes.pool import global_pool, pool
from .blocked_layer import BlockedLayer, images, on_images
from .fusing import is_clamped, pooled, without_pad

_registered = keras.saving.register_keras_serializable(package="tf_blockdnn")
_KINDS = {"max": "max", "average": "avg"}


class _Pooling(BlockedLayer):
    def call(self, inputs):
        self.refuse_xla()
        ours = self.reads_blocked and self.data_format == "channels_last"
        if not ours or min(self.strides) < 1:
            return self.by_tensorflow(super().call, inputs)
        ksize, strides = [1, *self.pool_size][-2:], [1, *self.strides][-2:]
        y = self._from_producer(inputs)
        if y is None:
            y = on_images(lambda x: self._pooled(x, ksize, strides, self.blocked_channels), inputs)
        if len(self.pool_size) == 3:
            y = self._across_slices(y)
        return self.finish(y, self.blocked_channels)

    def _from_producer(self, x):
        """Maxima that the op before stores as well as its result; None where it does not."""
        if self.pool_mode != "max" or self.pool_size != (2, 2) or self.strides != (2, 2):
            return None
        fits = self.padding == "valid" or all(n is not None and n % 2 == 0 for n in x.shape[2:4])
        return pooled(x) if fits else None

    def _pooled(self, x, ksize, strides, channels):
        window = dict(strides=strides, padding=self.padding.upper())
        if self.pool_mode == "max":
            source, padded = without_pad(x, window)
            if is_clamped(source):
                x, window = source, padded
        return pool(x, _KINDS[self.pool_mode], ksize, channels=channels, **window)

    def _across_slices(self, x):
        """Maximum and mean of a box are those, along the depth, of what they are in its slices:
        with everything else of a volume for a row, its slices are rows of one image."""
        shape = tf.shape(x)
        rows = tf.reshape(x, [shape[0], 1, shape[1], -1, BLOCK])
        y = self._pooled(rows, [self.pool_size[0], 1], [self.strides[0], 1], BLOCK)
        z = tf.reshape(y, tf.concat([shape[:1], [-1], shape[2:]], 0))
        z.set_shape([x.shape[0], y.shape[2], *x.shape[2:]])
        return z


class _GlobalPooling(BlockedLayer):
    _kind = "avg"

    @property
    def writes_blocked(self) -> bool:
        return super().writes_blocked and self.keepdims

    def call(self, inputs):
        self.refuse_xla()
        if not self.reads_blocked or self.data_format != "channels_last":
            return self.by_tensorflow(super().call, inputs)
        rank, channels = len(inputs.shape) - 3, self.blocked_channels
        layout = "nc" if not self.keepdims else NCHW16C if self.writes_blocked else NHWC
        x = images(inputs, 2)
        if rank == 3:  # all of a volume is what its slices are
            x = global_pool(x, self._kind, channels=channels, dst_layout=NCHW16C)
            x = tf.reshape(x, [-1, tf.shape(inputs)[1], x.shape[1], BLOCK])
            x = tf.transpose(x, [0, 2, 1, 3])[:, :, None]
        y = global_pool(x, self._kind, channels=channels, dst_layout=layout)
        if self.keepdims and rank == 1:
            y = tf.squeeze(y, 2 if self.writes_blocked else 1)
        if self.keepdims and rank == 3:
            y = y[:, None]
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
    """keras.layers.MaxPooling3D; blocked (slices of nChw16c), on our kernel.

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
    """keras.layers.AveragePooling3D; blocked (slices of nChw16c), on our kernel.

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
            return self.by_tensorflow(super(_GlobalPooling, self).call, inputs, mask=mask)
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
