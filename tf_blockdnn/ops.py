"""The ops, one function each: `bd.ops.conv(...)`."""

from .python.ops.conv.conv import conv
from .python.ops.conv.conv_depthwise import conv_depthwise
from .python.ops.conv.conv_transpose import conv_transpose
from .python.ops.conv.conv_volume import conv_volume
from .python.ops.memory import memory_plan
from .python.ops.movement.concat import concat, join
from .python.ops.movement.reorder import reorder
from .python.ops.movement.shuffle import shuffle
from .python.ops.movement.update_slice import update_slice
from .python.ops.pixels.eltwise import eltwise
from .python.ops.pixels.layer_norm import layer_norm
from .python.ops.pixels.softmax import softmax
from .python.ops.pixels.squeeze_excite import squeeze_excite
from .python.ops.planes.pad import pad
from .python.ops.planes.pool import global_pool, pool
from .python.ops.planes.resize import resize
from .python.ops.products.attention import attention
from .python.ops.products.inner_product import inner_product
from .python.ops.products.packed_matmul import packed_matmul
from .python.ops.products.rnn import rnn

__all__ = [
    "attention",
    "concat",
    "conv",
    "conv_depthwise",
    "conv_transpose",
    "conv_volume",
    "eltwise",
    "global_pool",
    "inner_product",
    "join",
    "layer_norm",
    "memory_plan",
    "packed_matmul",
    "pad",
    "pool",
    "reorder",
    "resize",
    "rnn",
    "shuffle",
    "softmax",
    "squeeze_excite",
    "update_slice",
]
