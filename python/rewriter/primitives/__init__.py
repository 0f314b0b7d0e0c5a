"""Planned primitives: what the passes decide about, before it becomes NodeDefs.

A node that carries one as payload will be emitted as the custom op of the same name. A primitive
says by itself which attributes its op has, in which layout it reads each input and writes its
result, whether it takes steps in, and how its inputs are ordered: a new op is one file here, one
pattern that makes it, and one row that says when.
"""

from ...layout import BLOCK, NHWC
from ...layout import NCHW16C as BLOCKED
from .bundle import Bundle
from .concat import Concat
from .conv import Conv
from .conv_depthwise import ConvDepthwise
from .conv_transpose import ConvTranspose
from .conv_volume import ConvVolume
from .convolution import Convolution
from .eltwise import Eltwise
from .global_pool import GlobalPool
from .inner_product import InnerProduct
from .layer_norm import LayerNorm
from .pad import Pad
from .pool import Pool
from .primitive import Primitive
from .reorder import Reorder
from .reshape import Reshape
from .resize import Resize
from .shuffle import Shuffle
from .softmax import Softmax
from .squeeze_excite import SqueezeExcite
from .steps import MAX_STEPS, Step, binary, compose_affine, eltwise, sum_of

__all__ = [
    "BLOCK",
    "BLOCKED",
    "MAX_STEPS",
    "NHWC",
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
