"""Memory layouts of activations; mirrors cc/layout/layout.h.

nhwc is TensorFlow's own [N, H, W, C]. nChw16c is blocked: C is cut into blocks
of 16 channels that lie together, [N, ceil(C / 16), H, W, 16]; the lanes beyond
the last channel are zero.
"""

NHWC = "nhwc"
NCHW16C = "nChw16c"
BLOCK = 16


def num_blocks(channels: int) -> int:
    """Blocks that `channels` channels fill, the last one perhaps partly."""
    return -(-channels // BLOCK)


def blocked_shape(n, channels: int, h, w) -> tuple:
    """Shape of the nChw16c tensor of a logical [n, h, w, channels]."""
    return (n, num_blocks(channels), h, w, BLOCK)
