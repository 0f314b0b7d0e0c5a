"""Planned primitives: what the passes decide about, before it becomes NodeDefs.

A node that carries one as payload will be emitted as the custom op of the same name. A primitive
says by itself which attributes its op has, in which layout it reads each input and writes its
result, whether it takes steps in, and how its inputs are ordered: a new op is one file here, one
pattern that makes it, and one row that says when.
"""

from ...layout import BLOCK, NHWC
from ...layout import NCHW16C as BLOCKED
from .bundle import Bundle
from .conv.conv import Conv
from .conv.conv_depthwise import ConvDepthwise
from .conv.conv_transpose import ConvTranspose
from .conv.conv_volume import ConvVolume
from .conv.convolution import Convolution
from .movement.concat import Concat
from .movement.reorder import Reorder
from .movement.reshape import Reshape
from .movement.shuffle import Shuffle
from .pixels.eltwise import Eltwise
from .pixels.layer_norm import LayerNorm
from .pixels.softmax import Softmax
from .pixels.squeeze_excite import SqueezeExcite
from .planes.global_pool import GlobalPool
from .planes.pad import Pad
from .planes.pool import Pool
from .planes.resize import Resize
from .primitive import Primitive
from .products.attention import MAX_BIASES, Attention
from .products.inner_product import InnerProduct
from .steps import MAX_STEPS, Step, binary, compose_affine, eltwise, sum_of

__all__ = [
    "BLOCK",
    "BLOCKED",
    "MAX_BIASES",
    "MAX_STEPS",
    "NHWC",
    "Attention",
    "Bundle",
    "Concat",
    "Conv",
    "ConvDepthwise",
    "ConvTranspose",
    "ConvVolume",
    "Convolution",
    "Eltwise",
    "GlobalPool",
    "InnerProduct",
    "LayerNorm",
    "Pad",
    "Pool",
    "Primitive",
    "Reorder",
    "Reshape",
    "Resize",
    "Shuffle",
    "Softmax",
    "SqueezeExcite",
    "Step",
    "binary",
    "compose_affine",
    "eltwise",
    "sum_of",
]
