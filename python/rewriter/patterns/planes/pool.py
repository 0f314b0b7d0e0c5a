"""Max and average pooling."""

import math

from ....ops.records import Pool
from ...rules import Match, OneOf, Replacement, Rule, Window
from .pad import constant_pad, is_non_negative, zero_pad

KINDS = {"MaxPool": "max", "AvgPool": "avg"}


def pool(tf, x, ksize, strides, padding, explicit_paddings=()):
    """Max and average pooling, with the Pad before it."""
    options = {"ksize": ksize, "strides": strides, "padding": padding}
    maximum = tf.MaxPool(x, explicit_paddings=explicit_paddings, **options)
    return tf.either(maximum, tf.AvgPool(x, **options))


def _pool(match: Match) -> Replacement:
    """A maximum takes -inf for what it pads itself, as a Pad may, or one of 0 where all elements
    are >= 0; no window lies in the padding altogether."""
    src, padding, pads = match["x"], match["padding"], tuple(match["explicit_paddings"][2:6])
    if padding == "VALID":
        src, padding, pads = _with_pad(match)
    payload = Pool(
        origin=match.root.name,
        channels=match.channels(),
        kind=KINDS[match.root.op],
        ksize=match["ksize"],
        strides=match["strides"],
        padding=padding,
        explicit_paddings=pads or (0, 0, 0, 0),
    )
    return Replacement(payload, {"src": src}, match.root.name)


def _with_pad(match: Match):
    src, body, (rows, columns) = match["x"], match.body, match["ksize"]
    if match.root.op != "MaxPool" or not body.view.producer(src).inputs:
        return src, "VALID", ()
    inner = body.view.producer(src).inputs[0]
    pads = constant_pad(body, src, -math.inf)
    if isinstance(pads, str) and is_non_negative(body, inner):
        pads = zero_pad(body, src)
    if isinstance(pads, str) or max(pads[:2]) >= rows or max(pads[2:]) >= columns:
        return src, "VALID", ()
    return inner, "EXPLICIT", pads


RULE = Rule(
    pool,
    _pool,
    like=None,
    ksize=Window(),
    strides=Window(),
    padding=OneOf(("SAME", "VALID", "EXPLICIT")),
    explicit_paddings=None,
)
