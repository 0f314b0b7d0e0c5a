"""Max, average and global pooling: NodeDef -> planned primitive, or the reason why not."""

from ....graph import Body
from ...primitives import BLOCKED, GlobalPool, Pool
from .pad import is_non_negative, zero_pad

_KINDS = {"MaxPool": "max", "AvgPool": "avg", "Max": "max", "Mean": "avg"}
WINDOWED, GLOBAL = ("MaxPool", "AvgPool"), ("Max", "Mean")


def plan(node, body: Body):
    """(source, Pool) for a MaxPool or AvgPool, or one line that says why not."""
    attr, src = node.attr, node.inputs[0]
    channels = body.shapes.channels(src)
    ksize, strides = list(attr["ksize"].list.i), list(attr["strides"].list.i)
    if attr["data_format"].s not in (b"NHWC", b""):
        return f"data_format {attr['data_format'].s.decode()}, only NHWC is implemented"
    if channels is None:
        return "the number of channels is not known"
    if any(list_[axis] != 1 for list_ in (ksize, strides) for axis in (0, 3)):
        return "it pools over the batch or the channels"
    padding, pads = attr["padding"].s.decode(), tuple(attr["explicit_paddings"].list.i[2:6])
    if padding == "VALID":
        src, padding, pads = _with_zero_pad(node, src, ksize, body)
    return src, Pool(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        ksize=tuple(ksize[1:3]),
        strides=tuple(strides[1:3]),
        padding=padding,
        explicit_paddings=pads or (0, 0, 0, 0),
    )


def padded_source(node, body: Body):
    """What a VALID MaxPool reads once a zero Pad before it is folded, else its input.

    A maximum may take -inf for the Pad's 0 where all elements are >= 0 and no window
    lies in the padding altogether.
    """
    return _with_zero_pad(node, node.inputs[0], list(node.attr["ksize"].list.i), body)[0]


def _with_zero_pad(node, src, ksize, body: Body):
    pads = zero_pad(body, src) if node.op == "MaxPool" else "not a MaxPool"
    if isinstance(pads, str):
        return src, "VALID", ()
    if max(pads[:2]) >= ksize[1] or max(pads[2:]) >= ksize[2]:
        return src, "VALID", ()
    inner = body.view.producer(src).inputs[0]
    if not is_non_negative(body, inner):
        return src, "VALID", ()
    return inner, "EXPLICIT", pads


def plan_global(node, body: Body):
    """GlobalPool for a Mean or Max over height and width, or one line that says why not."""
    src, axes = node.inputs[0], body.shapes.value(node.inputs[1])
    channels = body.shapes.channels(src)
    if axes is None or channels is None:
        return "the axes or the channels are not known"
    if sorted(int(axis) % 4 for axis in axes.reshape(-1)) != [1, 2]:
        return "it reduces other axes than height and width"
    keep = node.attr["keep_dims"].b
    return GlobalPool(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        writes=BLOCKED if keep else "nc",
    )
