"""Element-wise work on activations."""

import tensorflow as tf

from .._native import library
from .arguments import static_channels
from .bind_post_ops import Destination, bind_post_ops


def eltwise(
    src,
    post_ops,
    *,
    args=(),
    dst=None,
    layout="nChw16c",
    channels: int | None = None,
    name=None,
):
    """Applies a chain of post-ops to every element of `src`.

    The sum of two activations is `eltwise(a, PostOps().binary("add", b))`.

    Args:
      src: float32 activation, [N, H, W, C] ("nhwc") or [N, ceil(C / 16), H, W, 16]
        ("nChw16c").
      post_ops: `PostOps`, or its text.
      args: float32 operands that the chain calls #0, #1, ... Operands that `PostOps`
        holds need not be here.
      dst: what sums without operand add; float32, of the shape of src, plain or in its
        layout.
      layout: "nhwc" or "nChw16c".
      channels: C; may be left out when layout is "nhwc" and C is static.
      name: of the op.

    Returns:
      The result, in the shape and layout of src. Lanes of a blocked result beyond
      C are zero, also where f(0) is not.

    Raises:
      ValueError: an argument is malformed here or while a graph is built.
      InvalidArgumentError: shapes do not fit each other when it runs.

    Source: eltwise and binary primitives of oneDNN.
    """
    src = tf.convert_to_tensor(src)
    channels = static_channels(src, layout, channels)
    post_ops, args = bind_post_ops(post_ops, args, dst, Destination(channels, layout=layout))
    return library().blockdnn_eltwise(
        src,
        args,
        layout=layout,
        channels=channels,
        post_ops=post_ops,
        name=name,
    )
