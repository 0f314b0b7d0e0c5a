"""Conv2D and DepthwiseConv2dNative, with the padding and the dilation around them."""

from ....ops.records import Conv
from ...precision.carried import weight_steps
from ...rules import Declined, Match, OneOf, Replacement, Rule, Sizes, Weights, Window, require
from ..planes import pad

_KINDS = ("Conv2D", "DepthwiseConv2dNative")


def convolution(tf, x, weights, strides, dilations, padding, explicit_paddings=()):
    """Convolution, grouped and depthwise, with the padding before it."""
    options = {"strides": strides, "dilations": dilations, "padding": padding}
    options["explicit_paddings"] = explicit_paddings
    depthwise = tf.DepthwiseConv2dNative(x, weights, **options)
    return tf.either(tf.Conv2D(x, weights, **options), depthwise)


def dilated(tf, x, weights, block, pads, same_block, crops):
    """Convolution of the phases of pictures: a dilated one in disguise."""
    options = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    phases = tf.SpaceToBatchND(x, block, pads)
    depthwise = tf.DepthwiseConv2dNative(phases, weights, **options)
    conv = tf.either(tf.Conv2D(phases, weights, **options), depthwise)
    return tf.BatchToSpaceND(conv, same_block, crops)


def _plan(match: Match, **options) -> Conv:
    node, weights, channels = match.node(_KINDS), match["weights"], match.channels()
    if node.op == "DepthwiseConv2dNative":
        kh, kw, groups, multiplier = weights.shape
        weights = weights.reshape(kh, kw, 1, groups * multiplier)  # the same memory, as HWIO
    else:
        groups = channels // weights.shape[2]
    if channels != groups * weights.shape[2] or weights.shape[3] % groups:
        raise Declined(f"a filter {list(weights.shape)} does not divide {channels} input channels")
    return Conv(
        origin=node.name,
        channels=weights.shape[3],
        weights=weights,
        in_channels=channels,
        groups=groups,
        algorithm=match.context.options.algorithm,
        weight_steps=weight_steps(node.inputs[1], weights, match.body),
        **options,
    )


def _convolution(match: Match) -> Replacement:
    conv = _plan(
        match,
        strides=match["strides"],
        dilations=match["dilations"],
        padding=match["padding"],
        explicit_paddings=tuple(match["explicit_paddings"][2:6]) or (0, 0, 0, 0),
    )
    return pad.fold_before(Replacement(conv, {"src": match["x"]}, match.root.name), match.body)


def _dilated(match: Match) -> Replacement:
    """With block b, paddings (p0, p1) and crops (c0, c1), a convolution of dilation b with paddings
    p0 - c0, p1 - c1: both give size + p0 + p1 - c0 - c1 - b * (k - 1). The paddings may depend on
    the input's size (TensorFlow rounds up to a multiple of b); only the differences count."""
    block, pads = tuple(match["block"]), tuple((match["pads"] - match["crops"]).flat)
    require(len(block) == 2 and block == tuple(match["same_block"]))
    require(all(isinstance(size, int) and size >= 0 for size in pads))
    conv = _plan(match, dilations=block, padding="EXPLICIT", explicit_paddings=pads)
    replacement = Replacement(conv, {"src": match["x"]}, match.root.name, match.nodes)
    return pad.fold_before(replacement, match.body)


WINDOWS = {
    "weights": Weights(rank=4),
    "strides": Window(),
    "dilations": Window(),
    "padding": OneOf(("SAME", "VALID", "EXPLICIT")),
    "explicit_paddings": None,
}
_DILATED = dict.fromkeys(("block", "pads", "same_block", "crops"), Sizes())
CONVOLUTION = Rule(convolution, _convolution, like=None, **WINDOWS)
DILATED = Rule(dilated, _dilated, like=None, weights=Weights(rank=4), **_DILATED)
