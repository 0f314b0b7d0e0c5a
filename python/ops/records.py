"""All records, and what the rewriter writes with them."""

from ..layout import BLOCK, NHWC
from ..layout import NCHW16C as BLOCKED
from .bundle import Bundle
from .conv.conv import Conv
from .conv.conv_depthwise import ConvDepthwise
from .conv.conv_transpose import ConvTranspose
from .conv.conv_volume import ConvVolume
from .conv.convolution import Convolution
from .movement.concat import Concat, Join
from .movement.reorder import Reorder, Reshape
from .movement.rows import ROW_MOVES, MirrorPad, Reverse, Roll, Sampling, Tile, ValuePad
from .movement.shuffle import Shuffle
from .movement.update_slice import UpdateSlice
from .pixels.batch_norm import BatchNorm, FoldBatchNorm
from .pixels.eltwise import BroadcastProduct, BroadcastSum, Eltwise, FakeQuantize
from .pixels.layer_norm import LayerNorm
from .pixels.softmax import Softmax
from .pixels.squeeze_excite import SqueezeExcite
from .planes.pad import Pad
from .planes.pool import GlobalPool, PlaneSum, Pool
from .planes.resize import Resize
from .post_op_entry import BINARY, COMPARISONS, FINITE, FUNCTIONS
from .products.attention import BIAS_ROLES, MAX_BIASES, Attention
from .products.inner_product import InnerProduct
from .products.packed_matmul import PackedMatmul
from .products.rnn import Rnn
from .record import RECORDS, Record
from .steps import MAX_STEPS, Step, binary, compose_affine, eltwise, sum_of
