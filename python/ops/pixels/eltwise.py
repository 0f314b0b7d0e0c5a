"""Element-wise work on activations."""

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from ...graph import FLOAT32, INT32, Node
from ...layout import NCHW16C as BLOCKED
from ...layout import NHWC
from ..arguments import as_before, as_images, static_channels, types_of
from ..bind_post_ops import Destination, bind_post_ops, with_sum
from ..bundle import Bundle
from ..call import OpCall, function_of
from ..post_op_entry import place_of
from ..post_ops import PostOps
from ..record import InPlace, Layout, Quantization, Record, WithSum
from ..steps import write_chain


class Eltwise(WithSum, InPlace, title="element-wise op"):
    """A chain of steps on a tensor that stays in the same layout."""

    takes_steps = True

    def write(self, inputs, bundle) -> tuple[dict, list]:
        chain, args = write_chain(self.chain, inputs, bundle, self.sum_role)
        sums = [inputs[self.sum_role]] if self.sum_role else []
        return self.attributes() | {"post_ops": chain}, [inputs["src"], args, sums]


class Broadcast(Record):
    """TensorFlow's op of two pictures, of which either may be broadcast to the other, on blocks.

    Attributes:
        other_layout: of the second one; that of a constant in blocks, which needs no reorder, is
            said to be plain.
    """

    operands = ("src", "other")
    other_layout: Layout = BLOCKED

    def layout_of(self, role: str) -> Layout:
        return self.src_layout if role == "src" else self.other_layout


class BroadcastSum(Broadcast, op="AddV2", title="broadcast sum"):
    pass


class BroadcastProduct(Broadcast, op="Mul", title="broadcast product"):
    pass


class FakeQuantize(InPlace, op="FakeQuantWithMinMaxVars", title="fake quantization"):
    """TensorFlow's, or another op that rounds floats to a grid, in either layout.

    Attributes:
        proto: the op as it was.
        quantization: of the bytes that the numbers are.
        most: the greatest of these bytes; the least is 0.
    """

    other_types = {"min": FLOAT32, "max": FLOAT32, "num_bits": INT32}
    proto: node_def_pb2.NodeDef
    quantization: Quantization
    most: int = 255

    def node(self, planned: Node, bundle: Bundle, scratchpad_mode: str) -> Node:
        node = Node(planned.name, self.proto.op, planned.inputs, planned.controls, self.proto)
        node.payload = self
        return node

    def _kind(self) -> str:
        scale, zero_point = self.quantization
        return f"{scale:.6g} (q - {zero_point}), q up to {self.most}"


@function_of(Eltwise, "src_part dst_part into")
def eltwise(
    src,
    post_ops,
    *,
    args=(),
    dst=None,
    layout="nChw16c",
    channels: int | None = None,
    dtype=None,
    src_quantization=None,
    sum_quantization=None,
    dst_quantization=None,
):
    """Applies a chain of post-ops to every element of `src`.

    The sum of two activations is `eltwise(a, PostOps().binary("add", b))`.

    Args:
      src: float32, bfloat16 or uint8 activation, [N, .., C] ("nhwc") or [N, ceil(C / 16), H, W, 16]
        ("nChw16c").
      args: float32 operands that the chain calls #0, #1, ... Operands that `PostOps`
        holds are not listed here. One operand of the shape of src may be bfloat16 or uint8.
      dst: the tensor that sums without an operand add: float32, of the shape of src, plain
        or in its layout.
      channels: C; may be left out when layout is "nhwc" and C is static.
      sum_quantization: (scale, zero_point) of the operand that is uint8.

    Returns:
      The result, in the shape and layout of src. Lanes of a blocked result beyond C are
      zero, even if f(0) is not.

    Source: eltwise and binary primitives of oneDNN.

    Example:
      >>> x = np.array([[[[-1.0, 2.0, 9.0]]]], np.float32)
      >>> bd.ops.eltwise(x, "eltwise(relu6)", layout="nhwc").numpy()
      array([[[[0., 2., 6.]]]], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    channels = static_channels(src, layout, channels)
    rank = src.shape.rank if layout == NHWC else 4
    to = Destination(channels, rank, layout, like=src, quantization=sum_quantization)
    post_ops, args = bind_post_ops(post_ops, args, dst, to, low_precision=True)
    if rank not in (4, None):
        for entry in PostOps.parse(post_ops).entries:
            if entry.kind == "sum" or entry.shape == "tensor":
                index, _ = place_of(entry.operand)
                args[index] = as_images(args[index])
    post_ops, args, sums = with_sum(post_ops, args)
    attributes = types_of(src, dtype, src_quantization, dst_quantization)
    attributes |= {"channels": channels, "post_ops": post_ops}
    if rank in (4, None):
        return OpCall((src, args, sums), attributes)
    return OpCall((as_images(src), args, sums), attributes, lambda y: as_before(y, src))
