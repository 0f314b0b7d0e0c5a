"""Conv2DBackpropInput: transposed convolution.

Of stride 1 it is an ordinary convolution by the filter turned around:

    y[p] = sum over k of x[p + before - k] w[k] = sum over k of x[p - (K - 1 - before) + k] w[K-1-k]
"""

from ....ops.records import Conv, ConvTranspose
from ...rules import Declined, Match, Replacement, Rule, require
from ..planes import pad
from .convolution import WINDOWS

MOST_STRIDE = 16


def conv_transpose(tf, x, weights, strides, dilations, padding, explicit_paddings, sizes):
    """Transposed convolution."""
    options = {"strides": strides, "dilations": dilations, "padding": padding}
    options["explicit_paddings"] = explicit_paddings
    return tf.Conv2DBackpropInput(sizes, weights, x, **options)


def _conv_transpose(match: Match) -> Replacement:
    weights, channels, strides = match["weights"], match.channels(), match["strides"]
    of_groups = f"a filter {list(weights.shape)} of groups of {channels} input channels"
    require(channels == weights.shape[3], of_groups)
    require(match["dilations"] == (1, 1), "a dilated transposed convolution is not implemented")
    require(max(strides) <= MOST_STRIDE, f"strides above {MOST_STRIDE} are not implemented")
    crops = _crops(match)
    common = dict(
        origin=match.root.name,
        channels=weights.shape[2],
        in_channels=channels,
        algorithm=match.context.options.algorithm,
    )
    inputs, name = {"src": match["x"]}, match.root.name
    if strides != (1, 1):
        conv = ConvTranspose(weights=weights, strides=strides, crops=crops, **common)
        return Replacement(conv, inputs, name)
    ends = [weights.shape[axis // 2] - 1 - crop for axis, crop in enumerate(crops)]
    require(min(ends) >= 0, "it cuts off more than its filter reaches")
    turned = weights[::-1, ::-1].transpose(0, 1, 3, 2)
    conv = Conv(weights=turned, padding="EXPLICIT", explicit_paddings=tuple(ends), **common)
    return pad.fold_before(Replacement(conv, inputs, name), match.body)


def _crops(match: Match) -> tuple[int, ...]:
    """[top, bottom, left, right]: what is missing of (size - 1) * stride + kernel pixels."""
    src, dst = match.shape(), match.body.shapes.shape(match.root.ref)
    padding, pads, crops = match["padding"], match["explicit_paddings"], []
    unproven = Declined("its size is not proven to grow with that of its source alone")
    if dst is None or len(dst) != 4:
        raise unproven
    for axis, stride in enumerate(match["strides"]):
        beyond = dst[1 + axis] - src[1 + axis] * stride
        if not isinstance(beyond, int):
            raise unproven
        total = match["weights"].shape[axis] - stride - beyond
        before = pads[2 + 2 * axis] if padding == "EXPLICIT" else 0
        if padding == "SAME":
            if not -stride < beyond <= 0:  # no source has that size: TensorFlow complains
                raise unproven
            before = max(0, total) // 2
        elif padding == "VALID" and not -stride < total <= 0:
            raise unproven
        crops += [before, total - before]
    return tuple(crops)


RULE = Rule(conv_transpose, _conv_transpose, like=None, sizes=None, **WINDOWS)
