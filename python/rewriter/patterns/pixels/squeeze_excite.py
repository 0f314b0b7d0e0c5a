"""Squeeze-and-excitation: the mean over the plane, then two products on one pixel.

    Mean [N, C] -> product C x R -> activation -> product R x C -> activation

The products are 1x1 convolutions or multiplications by a matrix (Dense), planned before;
between them may be reshapes that only change where the ones of [N, 1, 1, C] stand. What they make
mostly scales the source, which the op has just read: it multiplies it there, too, unless that
product is one of several steps that take one pass.
"""

from dataclasses import replace

import numpy as np

from ....graph import Body, Node, Ref
from ....graph.families import RESHAPES
from ....ops.records import BLOCKED, Conv, InnerProduct, SqueezeExcite, Step
from ...context import Context
from ...rules import Replacement
from ..planes import reduce
from ..products.inner_product import matrix

ROOTS = ("Mean",)
NAMED = ("alpha", "keep_dims", "squeeze_dims")  # those of steps are looked at before


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """What starts at the mean `node`, unless it is something else or somebody looks inside."""
    mean, followers = node, context.followers
    if reduce.reduced(mean, body) != (1, 2):
        return None
    at, chain, products = mean, [mean.name], []
    while step := _next(at, products, body, followers):
        at, names, products = step
        chain += names
    channels = body.shapes.channels(mean.inputs[0])
    widths = [width for conv in products for width in (conv.in_channels, conv.channels)]
    if len(products) != 2 or [widths[0], widths[3]] != [channels] * 2 or widths[1] != widths[2]:
        return None
    if widths[1] > channels or not body.view.is_hidden(chain[:-1], chain):
        return None
    product = _scaled_source(at, mean.inputs[0], body, followers)
    plain = "nc" if body.shapes.rank(at.ref) == 2 else "nhwc"
    payload = SqueezeExcite(
        origin=at.name,
        channels=channels,
        reduce=products[0],
        expand=products[1],
        dst_layout=BLOCKED if product else plain,
        scale_src=product is not None,
    )
    root = (product or at).name
    return Replacement(payload, {"src": mean.inputs[0]}, root, frozenset([*chain, root]))


def _scaled_source(scales: Node, src: Ref, body: Body, followers) -> Node | None:
    """The product of the scales and their source, if it alone reads them."""
    product, _ = body.view.only_reader(scales.ref)
    if product is None or product.op != "Mul" or {*product.inputs} != {src, scales.ref}:
        return None
    if body.shapes.rank(scales.ref) != 4 or body.view.has_control_edges(product.name):
        return None
    return None if followers.sole(product.ref) else product


def _next(at: Node, products: list[Conv], body: Body, followers):
    """(node, nodes passed, products so far) one step further, or None where the chain ends."""
    view = body.view
    if view.is_fetched(at.ref) or view.has_control_edges(at.name):
        return None
    idiom = followers.sole(at.ref) if products else None
    if idiom:
        if idiom.is_affine and not products[-1].steps:
            last = products[-1].then_affine(idiom.scale, idiom.shift)
        else:
            last = _with_steps(products[-1], idiom.steps)
        return last and (view.node(idiom.root), list(idiom.nodes), [*products[:-1], last])
    readers = [node for node, _ in view.consumers(at.ref) if node.op != "Shape"]
    if len(readers) != 1 or readers[0].inputs[0] != at.ref or readers[0].controls:
        return None
    (reader,) = readers
    before, after = body.shapes.shape(at.ref), body.shapes.shape(reader.ref)
    if reader.op in RESHAPES and _is_row(before) and _is_row(after) and before[-1] == after[-1]:
        return reader, [reader.name], products
    product = _product(reader, body) if len(products) < 2 else None
    return product and (reader, [reader.name], [*products, product])


def _is_row(shape) -> bool:
    """Whether a tensor is of one pixel: [N, C] or [N, 1, 1, C]."""
    known = shape is not None and len(shape) in (2, 4) and isinstance(shape[-1], int)
    return known and all(size == 1 for size in shape[1:-1])


def _product(node: Node, body: Body) -> Conv | None:
    """The planned node as a 1x1 convolution whose steps are element-wise, or None."""
    payload = node.payload
    if isinstance(payload, InnerProduct):
        ic, oc = payload.in_channels, payload.channels
        weights = matrix(payload, node.by_role, body).reshape(1, 1, ic, oc)
        conv = Conv(origin=payload.origin, channels=oc, in_channels=ic, weights=weights)
    elif isinstance(payload, Conv) and payload.weights.shape[:2] == (1, 1):
        if payload.groups > 1 or any(payload.explicit_paddings):
            return None
        conv = replace(payload, steps=())
    else:
        return None
    return _with_steps(conv, payload.steps)


def _with_steps(conv: Conv, steps: tuple[Step, ...]) -> Conv | None:
    """The convolution with more steps, those by constants folded; None where others remain."""
    for step in steps:
        affine = None if conv.steps else _affine(step, conv.channels)
        if affine:
            if (conv := conv.then_affine(*affine)) is None:
                return None
        elif step.kind == "eltwise":
            conv = replace(conv, steps=(*conv.steps, step))
        else:
            return None
    return conv


def _affine(step: Step, channels: int):
    """(scale, shift) where the step is that of each channel, else None."""
    params = dict(step.params)
    if step.kind == "eltwise" and step.name == "linear" and "scale" not in params:
        return tuple(np.full(channels, params[key], np.float64) for key in ("alpha", "beta"))
    if step.kind != "binary" or not isinstance(step.operand, np.ndarray):
        return None
    values = np.broadcast_to(step.operand.reshape(-1).astype(np.float64), (channels,))
    return {"mul": (values, None), "add": (None, values)}.get(step.name)
