"""Gradients of the ops; importing this registers them, one file a family.

Each is made of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them.
"""

from . import (
    batch_norm,  # noqa: F401
    concat,  # noqa: F401
    conv,  # noqa: F401
    conv_depthwise,  # noqa: F401
    conv_transpose,  # noqa: F401
    conv_volume,  # noqa: F401
    eltwise,  # noqa: F401
    inner_product,  # noqa: F401
    layer_norm,  # noqa: F401
    packed_matmul,  # noqa: F401
    pad,  # noqa: F401
    pool,  # noqa: F401
    reorder,  # noqa: F401
    resize,  # noqa: F401
    shuffle,  # noqa: F401
    softmax,  # noqa: F401
    squeeze_excite,  # noqa: F401
)
