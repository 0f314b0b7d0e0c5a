"""Softmax along the last axis."""

from ..native import library


def softmax(src, *, name=None):
    """exp(src) over its sum along the last axis.

    Args:
      src: float32, plain, of rank 1 or more: [N, C], [N, H, W, C], ...
      name: of the op.

    Returns:
      float32, of the shape of src; each row sums to 1. It may take the memory of src where
      nobody else holds that. As the formula says, a row with a NaN or +inf, or of nothing
      but -inf, is all NaN (TensorFlow with oneDNN has some zeros there); elsewhere -inf
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
    return library().blockdnn_softmax(src, name=name)
