"""Concatenation along the channels."""

from .._native import library


def concat(values, *, channels, name=None):
    """Joins blocked activations along their channels, whatever their numbers.

    Args:
      values: float32 tensors [N, ceil(channels[i] / 16), H, W, 16].
      channels: logical channels, one integer for each value.
      name: of the op.

    Returns:
      [N, ceil(sum(channels) / 16), H, W, 16]; channels follow each other without
      gaps, lanes beyond the last one are zero.

    Raises:
      ValueError: an argument is malformed or, while a graph is built, batch,
        height or width differ.
      InvalidArgumentError: they differ when it runs.

    Source: tf.concat along the channels.
    """
    return library().blockdnn_concat(list(values), channels=list(channels), name=name)
