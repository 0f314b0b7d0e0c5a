"""Layers that move values: in and out of blocks, shuffled, upsampled, padded."""

import keras

from ..layout import NCHW16C
from ..ops.movement.shuffle import shuffle
from ..ops.planes.pad import pad
from ..ops.planes.resize import resize
from .blocked_layer import BlockedLayer, on_images, to_blocked
from .classes import register

_INTERPOLATIONS = ("nearest", "bilinear")  # of our kernel


class _Identity(keras.layers.Layer):
    """A layer without effect, for the mixin to stand before."""

    def build(self, input_shape):
        self.built = True

    def compute_output_shape(self, input_shape):
        return input_shape

    def call(self, inputs):
        return inputs


class _Reorder(BlockedLayer, _Identity):
    """A change of the layout, which says of itself whether the result is blocked."""

    _to_blocks: bool

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.blocked_output = self._to_blocks

    def get_config(self):
        config = super().get_config()
        config.pop("blocked_output")
        return config


@register
class ToBlocked(_Reorder):
    """Cuts the channels of [N, .., C] into blocks of 16: [N, ceil(C / 16), .., 16], those of a
    volume [N, D, H, W, C] slice by slice: [N, D, ceil(C / 16), H, W, 16].

    Layers of bd.layers after it stay blocked, up to `FromBlocked`. float32; one to three spatial
    dimensions.

    Raises:
      ValueError: when it is called: another rank, channels that are not known, or a function that
        XLA compiles.

    Example:
      >>> bd.layers.ToBlocked()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 2, 8, 8, 16])
    """

    _to_blocks = True

    def call(self, inputs):
        self.refuse_xla()
        return to_blocked(inputs)

    def build(self, input_shape):
        if len(input_shape) not in (3, 4, 5):
            raise ValueError(
                f'Layer "{self.name}" needs [N, .., C] with one to three dimensions between; got '
                f"shape {tuple(input_shape)}"
            )
        if input_shape[-1] is None:
            raise ValueError(
                f'Layer "{self.name}" needs to know the number of channels; got shape '
                f"{tuple(input_shape)}: give the input a shape with C"
            )
        super().build(input_shape)


@register
class FromBlocked(_Reorder):
    """Brings a blocked tensor back to [N, .., C].

    Its channels are known from the layer before it; otherwise `blocked_channels` has to be given.

    Args:
      blocked_channels: C.

    Raises:
      ValueError: when it is called: channels that are not known, a tensor that is not blocked, or
        a function that XLA compiles.

    Example:
      >>> x = bd.layers.ToBlocked()(tf.ones((1, 8, 8, 20)))
      >>> bd.layers.FromBlocked()(x).shape
      TensorShape([1, 8, 8, 20])
    """

    _to_blocks = False

    def call(self, inputs):
        self.refuse_xla()
        return self.finish(inputs, self.blocked_channels)

    def _settle(self, inputs) -> None:
        super()._settle(inputs)
        if self.blocked_channels is None:
            raise ValueError(
                f'Layer "{self.name}" got a tensor that no blocked layer made: put '
                "bd.layers.ToBlocked() somewhere before it, or give it blocked_channels=C"
            )


@register(example="4")
class ChannelShuffle(BlockedLayer, _Identity):
    """ShuffleNet's channel shuffle: [.., C] seen as [.., groups, C / groups], transposed.

    Source: X. Zhang, X. Zhou, M. Lin, J. Sun, "ShuffleNet", 2017.
    """

    def __init__(self, groups, **kwargs):
        """Adds to the arguments of `BlockedLayer`:

        Args:
          groups: divides C.

        Raises:
          ValueError: groups is no integer of at least 1; when it is called: it does not divide C.
        """
        super().__init__(**kwargs)
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"groups must be an integer of at least 1; got {groups!r}")
        self.groups = groups

    def build(self, input_shape):
        channels = self.blocked_channels or input_shape[-1]
        if channels is None or channels % self.groups:
            raise ValueError(
                f'Layer "{self.name}": groups = {self.groups} must divide the {channels} channels'
            )
        super().build(input_shape)

    def call(self, inputs):
        self.refuse_xla()
        channels = self.blocked_channels
        if not self.reads_blocked:
            channels = inputs.shape[-1]
            return self.finish(shuffle(inputs, -1, channels // self.groups))
        options = dict(layout=NCHW16C, channels=channels)
        y = on_images(lambda x: shuffle(x, 1, channels // self.groups, **options), inputs)
        return self.finish(y, channels)

    def get_config(self):
        return super().get_config() | {"groups": self.groups}


@register
class UpSampling2D(BlockedLayer, keras.layers.UpSampling2D):
    """keras.layers.UpSampling2D; blocked, on our kernel.

    Interpolations other than nearest and bilinear are computed by Keras on plain tensors.

    Example:
      >>> bd.layers.UpSampling2D(2)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 16, 16, 20])
    """

    def is_ours(self, inputs) -> bool:
        return super().is_ours(inputs) and self.interpolation in _INTERPOLATIONS

    def compute(self, inputs, training):
        options = dict(channels=self.blocked_channels, scales=list(self.size))
        return self.finish(resize(inputs, self.interpolation, **options), self.blocked_channels)


@register
class ZeroPadding2D(BlockedLayer, keras.layers.ZeroPadding2D):
    """keras.layers.ZeroPadding2D; blocked, height and width are padded where they lie.

    Example:
      >>> bd.layers.ZeroPadding2D(1)(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 10, 10, 20])
    """

    def compute(self, inputs, training):
        y = pad(inputs, self.padding, channels=self.blocked_channels)
        return self.finish(y, self.blocked_channels)
