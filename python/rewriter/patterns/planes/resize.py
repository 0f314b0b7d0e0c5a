"""Resizing by TensorFlow's ops."""

from ....graph import Expr
from ....ops.records import Resize
from ...rules import Match, OneOf, Rule, Sizes, require

_KINDS = {"ResizeNearestNeighbor": "nearest", "ResizeBilinear": "bilinear"}


def resize(tf, x, size, align_corners, half_pixel_centers):
    """Resizing by TensorFlow's ops."""
    options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    bilinear = tf.ResizeBilinear(x, size, **options)
    return tf.either(tf.ResizeNearestNeighbor(x, size, **options), bilinear)


def _resize(match: Match) -> Resize:
    half, corners, size = match["half_pixel_centers"], match["align_corners"], match["size"]
    require(not (half and corners), "it aligns both corners and the centres of pixels")
    common = dict(
        origin=match.root.name,
        channels=match.channels(),
        kind=_KINDS[match.root.op],
        coordinates="half_pixel" if half else "align_corners" if corners else "asymmetric",
    )
    if all(isinstance(length, int) for length in size):
        return Resize(size=tuple(size), **common)
    scales = tuple(_factor(was, now) for was, now in zip(match.shape()[1:3], size, strict=True))
    require(None not in scales, "its size is not proven to be a multiple of its source's")
    return Resize(scales=scales, **common)


def _factor(was, now) -> int | None:
    """k, where `now` is k times `was`."""
    if isinstance(was, int) and isinstance(now, int):
        return now // was if was and now % was == 0 and now else None
    are_open = isinstance(was, Expr) and isinstance(now, Expr)
    return (now.ratio(was) or None) if are_open else None


_FLAG = OneOf((False, True))
RULE = Rule(resize, _resize, like=None, size=Sizes(), align_corners=_FLAG, half_pixel_centers=_FLAG)
