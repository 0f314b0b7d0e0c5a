"""Chains of post-ops in the op that made their source, while a graph is traced for inference.

Keras calls convolution, normalisation and activation one after the other. Where a layer is called
in a graph and its source is the result of one of our ops, that op is written anew with a longer
chain; the old one has no reader, and TensorFlow drops it. That needs the layer to be the only
reader, which Keras's graph tells.
"""

import tensorflow as tf

from ..gradients.node import padding_argument, split_inputs, text
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.conv_volume import conv_volume
from ..ops.eltwise import eltwise
from ..ops.post_ops import MAX_ENTRIES, PostOps
from ..tensorflow_private import has_no_tape

_SOLE_READER = "_blockdnn_sole_reader"
_IMAGES = "_blockdnn_images"


def note_readers(tensor, layer) -> None:
    """Remembers whether only one layer of a functional model reads this result of `layer`."""
    if not tf.executing_eagerly() and tf.is_tensor(tensor):
        setattr(tensor, _SOLE_READER, len(layer._outbound_nodes) == 1)


def note_images(tensor, images, restore) -> None:
    """Remembers that `tensor` is restore(images), where our op made `images`."""
    if not tf.executing_eagerly():
        setattr(tensor, _IMAGES, (images, restore))


def can_extend(x) -> bool:
    """Whether `extended` applies to x."""
    if tf.executing_eagerly() or not getattr(x, _SOLE_READER, False) or not has_no_tape():
        return False
    op = _made(x)[0].op
    if op.type not in _REWRITTEN or op.graph is not tf.compat.v1.get_default_graph():
        return False
    if op.type != "BlockdnnConvVolume" and (op.get_attr("dst_part") or op.get_attr("num_into")):
        return False
    return not x.consumers()


def _made(x) -> tuple:
    """(what an op gave, how that became x)."""
    return getattr(x, _IMAGES, (x, lambda y: y))


def extended(x, chain: PostOps):
    """The op that made x with `chain` behind its own; None where that is not possible.

    Of lines and volumes the operands of the chain are not for single pixels.
    """
    if not can_extend(x):
        return None
    made, restore = _made(x)
    longer = PostOps.parse(text(made.op, "post_ops"))
    if len(longer) + len(chain) > MAX_ENTRIES:
        return None
    y = _REWRITTEN[made.op.type](made.op, longer + chain)
    return None if y is None else restore(y)


def _conv(op, chain: PostOps):
    (src, weights), args, _ = split_inputs(op, 2, op.get_attr("num_args"), 0)
    if op.get_attr("pool"):
        return None
    return conv(
        src,
        weights,
        weights_shape=op.get_attr("weights_shape"),
        strides=op.get_attr("strides"),
        padding=padding_argument(op),
        dilations=op.get_attr("dilations"),
        groups=op.get_attr("groups"),
        channels=op.get_attr("channels"),
        src_layout=text(op, "src_layout"),
        dst_layout=text(op, "dst_layout"),
        post_ops=chain,
        args=args,
    )


def _conv_transpose(op, chain: PostOps):
    (src, weights), args, _ = split_inputs(op, 2, op.get_attr("num_args"), 0)
    top, bottom, left, right = op.get_attr("crops")
    return conv_transpose(
        src,
        weights,
        weights_shape=op.get_attr("weights_shape"),
        strides=op.get_attr("strides"),
        crops=[[top, bottom], [left, right]],
        dst_layout=text(op, "dst_layout"),
        post_ops=chain,
        args=args,
    )


def _conv_volume(op, chain: PostOps):
    (src, weights), args = split_inputs(op, 2, op.get_attr("num_args"))
    return conv_volume(
        src,
        weights,
        weights_shape=op.get_attr("weights_shape"),
        depth=op.get_attr("depth"),
        strides=op.get_attr("strides"),
        padding=text(op, "padding"),
        src_layout=text(op, "src_layout"),
        dst_layout=text(op, "dst_layout"),
        post_ops=chain,
        args=args,
    )


def _eltwise(op, chain: PostOps):
    (src,), args, _ = split_inputs(op, 1, op.get_attr("num_args"), 0)
    options = dict(layout=text(op, "layout"), channels=op.get_attr("channels"))
    return eltwise(src, chain, args=args, **options)


_REWRITTEN = {
    "BlockdnnConv": _conv,
    "BlockdnnConvTranspose": _conv_transpose,
    "BlockdnnConvVolume": _conv_volume,
    "BlockdnnEltwise": _eltwise,
}
