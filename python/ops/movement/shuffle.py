"""Channel shuffle, along any axis of any tensor."""

from ..call import OpCall, function_of
from ..record import Record


class Shuffle(Record, title="channel shuffle"):
    """The channels as a (channels / group) x group matrix, transposed."""

    keeps = True
    group: int
    axis: int = 1

    @property
    def layout(self) -> str:
        return self.dst_layout

    def _kind(self) -> str:
        return f"{self.channels} channels, group {self.group}"


@function_of(Shuffle, "src_quantization")
def shuffle(x, axis: int, group: int, *, layout=None, channels=None):
    """Shuffles the entries along one axis, as ShuffleNet shuffles channels.

    The C entries are seen as a (C / group) x group matrix, which is transposed:

        dst[u + v * C / group] = src[u * group + v],  0 <= u < C / group,  0 <= v < group

    The number of groups g of ShuffleNet and of torch.nn.ChannelShuffle is C / group.

    Args:
      x: a plain tensor of rank 1 to 6, or a blocked activation: [N, ceil(C / b), (D),
        (H), W, b]. float32, float64, bfloat16, float16, int8, uint8, int16, uint16,
        int32, int64 or bool.
      axis: of x if it is plain; of the logical tensor [N, C, (D), (H), W] if it is
        blocked. Negative counts from the end.
      group: G, which divides the entries of the axis.
      layout: "nCw8c", "nCw16c", "nChw8c", "nChw16c", "nCdhw8c" or "nCdhw16c" for a
        blocked x. None for a plain one; or the name of its layout, like "nhwc", whose
        rank is then checked.
      channels: C of a blocked x; None otherwise.
      src_quantization: (scale, zero_point) of a uint8 x, which lanes beyond C then stand for:
        they are the zero point.

    Returns:
      A tensor of the shape, type and layout of x. Lanes of a blocked result beyond C
      are zero. Differentiable for the float types. The shuffle with
      C / group in the place of group undoes it.

    Raises:
      ValueError: while a graph is built: group is below 1 or does not divide the axis,
        axis is out of range, layout is unknown, or x has another rank than it says.
      InvalidArgumentError: the same, when it runs.

    Source: the shuffle primitive of MKL-DNN 1.0.

    Example:
      >>> bd.ops.shuffle(np.arange(6), axis=0, group=3).numpy()
      array([0, 3, 1, 4, 2, 5])
    """
    return OpCall((x,))
