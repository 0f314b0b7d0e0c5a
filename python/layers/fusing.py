"""Ops written anew with what follows them, while a graph is traced for inference.

Keras calls convolution, normalisation, activation and pooling one after the other. Where a layer is
called in a graph and the source is the result of one of our ops, that op is written once more, with
a longer chain, with the normalisation in the weights, with the pooling or with the depthwise
convolution after it; the old one has no reader, and TensorFlow drops it. That needs the layer to
be the only reader, which Keras's graph tells. The rewriter's passes do the same to graphs
(python/rewriter/passes/fusion).
"""

from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from ..keras_private import count_readers
from ..layout import NCHW16C
from ..native import library
from ..ops.call import Called
from ..ops.conv.conv import conv
from ..ops.conv.conv_depthwise import conv_depthwise
from ..ops.conv.conv_transpose import conv_transpose
from ..ops.conv.conv_volume import conv_volume
from ..ops.memory import plan_node, pool_threads
from ..ops.post_ops import PostOps
from ..ops.record import RECORDS
from ..ops.steps import MAX_STEPS
from ..tensorflow_private import has_no_tape

_SOLE_READER = "_blockdnn_sole_reader"
_IMAGES = "_blockdnn_images"


def note_readers(tensor, layer) -> None:
    """Remembers whether only one layer of a functional model reads this result of `layer`."""
    if not tf.executing_eagerly() and tf.is_tensor(tensor):
        setattr(tensor, _SOLE_READER, count_readers(layer) == 1)


def note_images(tensor, images, restore) -> None:
    """Remembers that `tensor` is restore(images), where `images` is the result of our op."""
    if not tf.executing_eagerly():
        setattr(tensor, _IMAGES, (images, restore))


@dataclass(frozen=True)
class Producer:
    """An op of tf_blockdnn whose result nobody has read yet and one layer will.

    Attributes:
      op: the op.
      arguments: of the function of bd.ops that makes it.
      prefix: of the names of the arguments that hold the last chain and the operands of that.
      restore: what became of the result.
    """

    op: tf.Operation
    arguments: dict
    prefix: str
    restore: Callable

    @classmethod
    def of(cls, x, through: tuple = ()) -> "Producer | None":
        """The producer of x, if it may be written anew.

        Args:
          through: ops between it and the reader, which stay without readers.
        """
        if not tf.is_symbolic_tensor(x) or not getattr(x, _SOLE_READER, False) or not has_no_tape():
            return None
        image, restore = getattr(x, _IMAGES, (x, lambda y: y))
        op = image.op
        if op.type not in _PREFIXES or op.graph is not tf.compat.v1.get_default_graph():
            return None
        if not set(x.consumers()) <= set(through):
            return None
        arguments = Called(op).arguments()
        if arguments.get("into") is not None or arguments.get("dst_part") or arguments.get("pool"):
            return None
        return cls(op, arguments, _PREFIXES[op.type], restore)

    @property
    def function(self) -> Callable:
        return RECORDS[self.op.type].function

    @property
    def chain(self) -> PostOps:
        """The chain at the end; operands are those of `arguments`."""
        return self.arguments[f"{self.prefix}post_ops"]

    def rebuild(self, **changes):
        """Its result with these arguments in place of some."""
        return self.restore(self.function(**(self.arguments | changes)))


def extend(x, chain: PostOps):
    """The producer of x with `chain` after the one it has; None where that is not possible.

    Of lines and volumes the operands of the chain are not for single pixels.
    """
    producer = Producer.of(x)
    if producer is None or len(producer.chain) + len(chain) > MAX_STEPS:
        return None
    return producer.rebuild(**{f"{producer.prefix}post_ops": producer.chain + chain})


def fold_moments(x, rows: dict, epsilon: float):
    """Batch normalisation of x by known moments, folded into the weights of the producer of x;
    None where that op is not linear.

    Args:
      rows: gamma, beta, mean and variance, [channels].
    """
    producer = Producer.of(x)
    if producer is None or producer.function not in _WEIGHTS:
        return None
    entries, args = producer.chain.entries, producer.arguments[f"{producer.prefix}args"]
    if [str(entry) for entry in entries] not in ([], ["binary(add,channel,#0)"]):
        return None
    name, inner_axis = _WEIGHTS[producer.function]
    channels, weights = rows["mean"].shape[0], producer.arguments[name]
    inner = 1 if inner_axis is None else weights.shape[inner_axis]
    bias = args[0] if entries else tf.zeros([channels])
    folded, shift = library().blockdnn_fold_batch_norm(
        weights, bias, **rows, channels=channels, inner=inner, epsilon=epsilon
    )
    chain = {"post_ops": PostOps().binary("add", shift, "channel"), "args": []}
    return producer.rebuild(
        **{name: folded}, **{producer.prefix + key: v for key, v in chain.items()}
    )


def can_extend(x) -> bool:
    """Whether `extend` applies to x."""
    return Producer.of(x) is not None


def without_pad(x, window: dict) -> tuple:
    """(source, window) where x is source with zeros around the planes, which the window pads too.

    Others may read x, and gradients may be wanted: the source is only read in place of x.

    Args:
      window: strides, dilations and padding as bd.ops.conv takes them.
    """
    around = _zeros_around(x)
    if around is None or window["padding"] == "SAME":  # which depends on the size with zeros
        return x, window
    inner = [[0, 0], [0, 0]] if window["padding"] == "VALID" else window["padding"]
    both = [[a + b for a, b in zip(*axis, strict=True)] for axis in zip(inner, around, strict=True)]
    return x.op.inputs[0], window | {"padding": both}


def _zeros_around(x) -> "list | None":
    """[[top, bottom], [left, right]] where x is a padded plane; None for any other tensor."""
    if not tf.is_symbolic_tensor(x):
        return None
    if x.op.type == "BlockdnnPad":
        return Called(x.op).arguments()["paddings"]
    if x.op.type != "Pad" or x.shape.rank != 4:
        return None
    sides = tf.get_static_value(x.op.inputs[1])
    if sides is None or sides.min() < 0 or sides[0].any() or sides[3].any():
        return None
    return sides[1:3].tolist()


def is_clamped(x) -> bool:
    """Whether one of our ops ends x with a ReLU: nothing in it is negative, and where it is zero
    the source has no gradient, so that zeros around it may win a maximum of zeros."""
    if not tf.is_symbolic_tensor(x) or x.op.type not in _PREFIXES:
        return False
    chain = [name for name in x.op.node_def.attr if name.endswith("post_ops")]
    # Of a 1x1 with a depthwise convolution, those of the depthwise one.
    entries = PostOps.parse(getattr(Called(x.op), min(chain))).entries
    return bool(entries) and str(entries[-1]) in ("eltwise(relu)", "eltwise(relu6)")


def fuse_1x1(x, weights, chain: PostOps, window: dict):
    """The depthwise convolution of x in one op with the 1x1 convolution before it; or None.

    Args:
      window: as in `without_pad`, which may stand between the two.

    Returns:
      The result as images.
    """
    source, window = without_pad(x, window)
    between = () if source is x else (x.op,)
    if between and (x.consumers() or not getattr(x, _SOLE_READER, False)):
        return None
    producer = Producer.of(source, between)
    if producer is None or producer.function is not conv or not _is_pointwise(producer):
        return None
    return conv_depthwise(
        producer.arguments["src"],
        producer.arguments["weights"],
        weights,
        weights_shape=producer.arguments["weights_shape"],
        post_ops=producer.chain,
        args=producer.arguments["args"],
        depthwise_post_ops=chain,
        how=Called(producer.op).algorithm,
        **window,
    )


def _is_pointwise(producer: Producer) -> bool:
    """Whether it is a dense 1x1 convolution of every pixel in blocks, whose chain reads no
    tensors."""
    args = producer.arguments
    pointwise = args["weights_shape"][:2] == args["strides"] == [1, 1] and args["groups"] == 1
    blocked = args["src_layout"] == args["dst_layout"] == NCHW16C
    is_float = args["src"].dtype == tf.float32
    unpadded = args["padding"] in ("SAME", "VALID", [[0, 0], [0, 0]])
    operands = {e.shape if e.kind == "binary" else e.kind for e in producer.chain.entries}
    plain = operands <= {"channel", "scalar", "eltwise"}
    return pointwise and blocked and is_float and plain and unpadded


def pool_by_producer(x):
    """The maxima of the 2x2 pixels of x from the convolution before it; None where it does not
    store them: the library knows which algorithm will run."""
    producer = Producer.of(x)
    if producer is None or producer.function is not conv:
        return None
    shapes = [[1, *t.shape[1:]] if t.shape[0] is None else t.shape for t in producer.op.inputs]
    if not all(tf.TensorShape(shape).is_fully_defined() for shape in shapes):
        return None
    threads = pool_threads()
    if not plan_node(producer.op, shapes, threads).algorithm.startswith("winograd"):
        return None
    try:
        y = producer.rebuild(pool=[2, 2])
        plan_node(y.op, shapes, threads)
    except ValueError:  # the library says which tiles and chains it pools
        return None
    return y


# Of linear ops the argument that is the weights, and the axis after the output channels.
_WEIGHTS = {
    conv: ("weights", None),
    conv_depthwise: ("depthwise_weights", None),
    conv_transpose: ("weights", 3),
    conv_volume: ("weights", None),
}

# The ops that may be written anew, and the prefix of the names of the arguments that hold the last
# chain and the operands of that.
_PREFIXES = {
    "BlockdnnConv": "",
    "BlockdnnConvDepthwise": "depthwise_",
    "BlockdnnConvTranspose": "",
    "BlockdnnConvVolume": "",
    "BlockdnnEltwise": "",
}
