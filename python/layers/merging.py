"""Layers of several inputs."""

import functools

import keras
import tensorflow as tf
from keras import tree

from ..layout import BLOCK
from ..ops.movement.concat import concat
from ..ops.post_ops import PostOps
from .activation import apply_chain
from .blocked_layer import BlockedLayer, blocks_axis, from_images, images
from .classes import register
from .fusing import can_extend


class _Merge(BlockedLayer):
    @property
    def _takes_many(self) -> bool:
        return True

    def _settle(self, inputs) -> None:
        super()._settle(inputs)
        channels = self.blocked_channels
        if isinstance(channels, int):
            self.blocked_channels = (channels,) * len(tree.flatten(inputs))


class _Elementwise(_Merge):
    def compute(self, inputs, training):
        return self.finish(self._merge(self.blocked(inputs), training), self._channels)

    def _merge(self, inputs, training):
        if any(x.shape.rank != 5 or x.shape[1:] != inputs[0].shape[1:] for x in inputs):
            return functools.reduce(self._tensorflow, inputs)
        ours = next((x for x in inputs if can_extend(x)), inputs[0])
        chain = PostOps()
        for x in inputs:
            if x is not ours:
                chain = self._append(chain, x)
        return apply_chain(ours, chain, self._channels, training)

    def is_ours(self, inputs) -> bool:
        """Whether all have the same channels and rank, and one is blocked; pixels may be
        broadcast."""
        if not self.reads_blocked:
            return False
        each = list(zip(inputs, self._channels_each(len(inputs)), strict=True))
        channels = {x.shape[-1] if c is None else c for x, c in each}
        return len(channels) == len({x.shape.rank + (c is None) for x, c in each}) == 1


@register
class Add(_Elementwise, keras.layers.Add):
    """keras.layers.Add; blocked where an input is and all have the same channels.

    Example:
      >>> x = tf.ones((1, 8, 8, 20))
      >>> bd.layers.Add()([x, x]).shape
      TensorShape([1, 8, 8, 20])
    """

    _tensorflow = staticmethod(tf.add)

    @staticmethod
    def _append(chain: PostOps, x) -> PostOps:
        return chain.sum(operand=x)


@register
class Multiply(_Elementwise, keras.layers.Multiply):
    """keras.layers.Multiply; blocked where an input is and all have the same channels.

    Example:
      >>> x = tf.ones((1, 8, 8, 20))
      >>> bd.layers.Multiply()([x, x]).shape
      TensorShape([1, 8, 8, 20])
    """

    _tensorflow = staticmethod(tf.multiply)

    @staticmethod
    def _append(chain: PostOps, x) -> PostOps:
        return chain.binary("mul", x, "tensor")


@register
class Concatenate(_Merge, keras.layers.Concatenate):
    """keras.layers.Concatenate; blocked, along the channels or a spatial axis.

    Example:
      >>> x = tf.ones((1, 8, 8, 20))
      >>> bd.layers.Concatenate()([x, x]).shape
      TensorShape([1, 8, 8, 40])
    """

    def compute(self, inputs, training):
        each = self._channels_each(len(inputs))
        channels = [x.shape[-1] if c is None else c for x, c in zip(inputs, each, strict=True)]
        values = self.blocked(inputs)
        rank = values[0].shape.rank - 1
        axis, blocks = self.axis % rank, blocks_axis(rank + 1)
        if axis < rank - 1:
            y = tf.concat(values, axis if axis < blocks else axis + 1)
        elif all(c % BLOCK == 0 for c in channels[:-1]):
            y = tf.concat(values, blocks)
        else:
            y = concat([images(x, 2) for x in values], channels=channels)
            y = from_images(y, rank - 2, values[0])
        return self.finish(y, self._channels)
