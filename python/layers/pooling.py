"""Pooling as Keras has it, on our kernels where it is blocked."""

import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC
from ..ops.planes.pool import global_pool, pool
from .blocked_layer import BlockedLayer, images, on_images
from .classes import by_rank
from .fusing import is_clamped, pool_by_producer, without_pad

_KINDS = {"max": "max", "average": "avg"}


class _Pooling(BlockedLayer):
    def is_ours(self, inputs) -> bool:
        return super().is_ours(inputs) and min(self.strides) > 0

    def compute(self, inputs, training):
        ksize, strides = [1, *self.pool_size][-2:], [1, *self.strides][-2:]
        y = self._from_producer(inputs)
        if y is None:
            y = on_images(lambda x: self._pool(x, ksize, strides, self.blocked_channels), inputs)
        if len(self.pool_size) == 3:
            y = self._across_slices(y)
        return self.finish(y, self.blocked_channels)

    def _from_producer(self, x):
        """Maxima that the op before stores beside the result; None where it does not."""
        if self.pool_mode != "max" or self.pool_size != (2, 2) or self.strides != (2, 2):
            return None
        fits = self.padding == "valid" or all(n is not None and n % 2 == 0 for n in x.shape[2:4])
        return pool_by_producer(x) if fits else None

    def _pool(self, x, ksize, strides, channels):
        window = dict(strides=strides, padding=self.padding.upper())
        if self.pool_mode == "max":
            source, padded = without_pad(x, window)
            if is_clamped(source):
                x, window = source, padded
        return pool(x, _KINDS[self.pool_mode], ksize, channels=channels, **window)

    def _across_slices(self, x):
        """Maximum and mean of a box are those, along the depth, of what they are in the slices:
        with everything else of a volume for a row, slices are rows of one image."""
        shape = tf.shape(x)
        rows = tf.reshape(x, [shape[0], 1, shape[1], -1, BLOCK])
        y = self._pool(rows, [self.pool_size[0], 1], [self.strides[0], 1], BLOCK)
        z = tf.reshape(y, tf.concat([shape[:1], [-1], shape[2:]], 0))
        z.set_shape([x.shape[0], y.shape[2], *x.shape[2:]])
        return z


class _GlobalPooling(BlockedLayer):
    _kind = "avg"

    @property
    def writes_blocked(self) -> bool:
        return super().writes_blocked and self.keepdims

    def compute(self, inputs, training):
        rank, channels = len(inputs.shape) - 3, self.blocked_channels
        layout = "nc" if not self.keepdims else NCHW16C if self.writes_blocked else NHWC
        x = images(inputs, 2)
        if rank == 3:  # over a volume is over slices, then over the depth
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


class _GlobalAverageOfSteps(_GlobalPooling):
    def call(self, inputs, mask=None):
        if mask is not None:
            return self.by_keras(inputs, mask=mask)
        return super().call(inputs)


_BLOCKED = "; blocked ({}), on our kernel."
_HALVES = {1: [1, 4, 20], 2: [1, 4, 4, 20], 3: [1, 2, 2, 2, 20]}
MaxPooling1D, MaxPooling2D, MaxPooling3D = by_rank(
    _Pooling, "MaxPooling{}D", _BLOCKED, "2", _HALVES
)
AveragePooling1D, AveragePooling2D, AveragePooling3D = by_rank(
    _Pooling, "AveragePooling{}D", _BLOCKED, "2", _HALVES
)
_PLAIN = "; of a blocked tensor the result is plain, [N, C],\nunless keepdims keeps it blocked."
_STEPS, _PLANES = {1: [1, 20]}, {2: [1, 20], 3: [1, 20]}
GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D = by_rank(
    _GlobalMax, "GlobalMaxPooling{}D", _PLAIN, "", _STEPS | _PLANES
)
_AVERAGE = "GlobalAveragePooling{}D"
(GlobalAveragePooling1D,) = by_rank(_GlobalAverageOfSteps, _AVERAGE, _PLAIN, "", _STEPS)
GlobalAveragePooling2D, GlobalAveragePooling3D = by_rank(
    _GlobalPooling, _AVERAGE, _PLAIN, "", _PLANES
)
