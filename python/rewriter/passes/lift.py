"""Turns what we can run wherever it stands into planned primitives.

Convolutions and inner products begin a chain; softmax ends one, so it comes when all
before it is settled.
"""

from ...graph import Body, Node
from ..capture import XLA
from ..context import Context
from ..patterns.conv import conv_transpose, convolution, dilation
from ..patterns.pixels import layer_norm, softmax
from ..patterns.planes import pad
from ..patterns.products import dense, inner_product
from ..primitives import Conv
from ..report import Report

# Ops that a reader of the report looks for: kept ones always have a reason.
_FOREIGN = {
    "Conv3DBackpropInputV2": "transposed convolution is not implemented",
    "DepthwiseConv2dNativeBackpropInput": "transposed convolution is not implemented",
}
# op -> what plans it
_CONVOLUTIONS = {
    **dict.fromkeys(convolution.ROOTS, convolution),
    **dict.fromkeys(conv_transpose.ROOTS, conv_transpose),
}


def lift_convolutions(body: Body, context: Context) -> None:
    """Turns each convolution that can be converted into a plan; notes why others cannot."""
    report = context.report
    for node in body.view:
        if node.attr[XLA].b:
            report.decline(node.name, "XLA compiles it (jit_compile=True)")
        if node.op in _FOREIGN:
            report.decline(node.name, _FOREIGN[node.op])
        pattern = _CONVOLUTIONS.get(node.op)
        if pattern is None:
            continue
        conv = context.reason_to_leave(body, node)
        conv = conv or pattern.plan(node, body, context.options.algorithm)
        if isinstance(conv, str):
            report.decline(node.name, conv)
        else:
            _lift(body, node, conv, report)


def lift_pixel_layers(body: Body, context: Context) -> None:
    """Plans Dense layers on pictures as 1x1 convolutions, and layer normalisation of pixels."""
    for node in body.view:
        if node.name not in body.view:
            continue
        found = layer_norm.find(node, body)
        if found and not context.reason_to_leave(body, node):
            _put(body, node, found.src, found.payload, found.nodes)
        found = node.op in dense.ROOTS and dense.find(node, body, context.options.algorithm)
        if found and not context.reason_to_leave(body, found.root):
            _put(body, found.root, found.src, found.payload, [found.root.name])


def _put(body: Body, root: Node, src, payload, names) -> None:
    """Puts a planned primitive in the place of the nodes `names`, which end at `root`."""
    sources = [ref.node for name in names for ref in body.view.node(name).inputs]
    body.view.replace(Node(root.name, payload.op, {"src": src}, root.controls, payload=payload))
    body.view.remove_dead([*(set(names) - {root.name}), *sources])


def lift_inner_products(body: Body, context: Context) -> None:
    """Plans the multiplications by constant weights."""
    _lift_in_place(body, inner_product, context)


def lift_softmax(body: Body, context: Context) -> None:
    """Converts each softmax of what a converted op computes."""
    _lift_in_place(body, softmax, context)


def _lift_in_place(body: Body, pattern, context: Context) -> None:
    """Plans the nodes that are `pattern.ROOTS`; their inputs, `pattern.ROLES`, stay."""
    for node in body.view:
        if node.op not in pattern.ROOTS:
            continue
        payload = context.reason_to_leave(body, node) or pattern.plan(node, body)
        if isinstance(payload, str):
            context.report.decline(node.name, payload)
        else:
            body.view.replace(
                Node(
                    node.name,
                    payload.op,
                    dict(zip(pattern.ROLES, node.inputs, strict=True)),
                    node.controls,
                    payload=payload,
                )
            )


def _lift(body: Body, node: Node, conv, report: Report) -> None:
    root, src = node, node.inputs[conv_transpose.SRC if node.op in conv_transpose.ROOTS else 0]
    if node.op in convolution.ROOTS:
        unwrapped = dilation.unwrap(node, conv, body)
        if unwrapped:
            root, src, conv = unwrapped
    if isinstance(conv, Conv):
        src, conv = _fold_pad(body, src, conv, report)
    body.view.replace(Node(root.name, conv.op, {"src": src}, node.controls, payload=conv))
    body.view.remove_dead(_dead_candidates(root, node))


def _dead_candidates(*nodes: Node) -> list[str]:
    """Nodes that may have become useless: the old ones and all that fed them."""
    return [node.name for node in nodes] + [ref.node for node in nodes for ref in node.inputs]


def _fold_pad(body: Body, src, conv, report: Report):
    if body.view.producer(src).op not in ("Pad", "PadV2", "MirrorPad"):
        return src, conv
    pads = pad.zero_pad(body, src)
    if isinstance(pads, str):
        report.decline(src.node, f"not folded into the convolution: {pads}")
        return src, conv
    padded = pad.into_convolution(conv, pads, body.shapes.shape(src)[1:3])
    if padded is None:
        report.decline(src.node, "not folded: SAME padding of an unknown size with a stride")
        return src, conv
    return body.view.producer(src).inputs[0], padded
