"""The ops, one function each: `bd.ops.conv(...)`."""

from .python.ops.concat import concat
from .python.ops.conv import conv
from .python.ops.conv_depthwise import conv_depthwise
from .python.ops.conv_transpose import conv_transpose
from .python.ops.conv_volume import conv_volume
from .python.ops.eltwise import eltwise
from .python.ops.inner_product import inner_product
from .python.ops.layer_norm import layer_norm
from .python.ops.memory import memory_consumption, memory_plan, scratchpad_size
from .python.ops.packed_matmul import packed_matmul
from .python.ops.pad import pad
from .python.ops.pool import global_pool, pool
from .python.ops.reorder import reorder
from .python.ops.resize import resize
from .python.ops.rnn import pack_count, rnn
from .python.ops.shuffle import shuffle, shuffle_grad
from .python.ops.softmax import softmax
from .python.ops.squeeze_excite import squeeze_excite

__all__ = [
    "concat",
    "conv",
    "conv_depthwise",
    "conv_transpose",
    "conv_volume",
    "eltwise",
    "global_pool",
    "inner_product",
    "layer_norm",
    "memory_consumption",
    "memory_plan",
    "pack_count",
    "packed_matmul",
    "pad",
    "pool",
    "reorder",
    "resize",
    "rnn",
    "scratchpad_size",
    "shuffle",
    "shuffle_grad",
    "softmax",
    "squeeze_excite",
]
