"""Softmax along the last axis."""

from ...layout import NHWC
from ..call import OpCall, function_of
from ..record import InPlace, Layout


class Softmax(InPlace, title="softmax", titles="softmaxes"):
    """Along the channels, of a plain tensor of any rank."""

    layout: Layout = NHWC


@function_of(Softmax)
def softmax(src):
    """Computes exp(src) divided by its sum along the last axis.

    Args:
      src: float32, plain, of rank 1 or more: [N, C], [N, H, W, C], ...

    Returns:
      float32, of the shape of src; each row sums to 1. The result may take the memory of src
      if nobody else holds it. As the formula says, a row is all NaN if it has a NaN or +inf,
      or nothing but -inf (TensorFlow with oneDNN gives some zeros there). Elsewhere -inf
      gives 0.

    Raises:
      ValueError: src is a scalar, while a graph is built.
      InvalidArgumentError: the same, when it runs; or src is not float32.

    Source: the softmax primitive of oneDNN; tf.nn.softmax.

    Example:
      >>> bd.ops.softmax(np.array([[0.0, 0.0], [0.0, np.log(3.0)]], np.float32)).numpy().round(6)
      array([[0.5 , 0.5 ],
             [0.25, 0.75]], dtype=float32)
    """
    return OpCall((src,))
