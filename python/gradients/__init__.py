"""Gradients of the ops; importing this registers them, one file a family.

Each is made of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them.
"""

# ruff: noqa: F401
from . import region
from .conv import conv, conv_depthwise, conv_transpose, conv_volume
from .movement import concat, reorder, shuffle
from .pixels import batch_norm, eltwise, layer_norm, softmax, squeeze_excite
from .planes import pad, pool, resize
from .products import attention, inner_product, packed_matmul
