"""Turns what we can run wherever it stands into planned primitives.

Convolutions and inner products begin a chain; softmax ends one, so it comes when all
before it is settled.
"""

from ...graph import Node
from ..context import Context
from ..patterns import Graph, convolution, dilation, inner_product, pad, softmax
from ..report import Report
from .capture import XLA

# Ops that a reader of the report looks for: kept ones always have a reason.
_FOREIGN = {
    "Conv2DBackpropInput": "transposed convolution is not implemented",
    "Conv3D": "3-D convolution is not implemented",
    "Conv3DBackpropInputV2": "transposed convolution is not implemented",
    "DepthwiseConv2dNativeBackpropInput": "transposed convolution is not implemented",
}


def lift_convolutions(graph: Graph, context: Context) -> None:
    """Turns each convolution that can be converted into a plan; notes why others cannot."""
    report, leave = context.report, context.leave
    for node in graph.view:
        if node.attr[XLA].b:
            report.decline(node.name, "XLA compiles it (jit_compile=True)")
        if node.op in _FOREIGN:
            report.decline(node.name, _FOREIGN[node.op])
        if node.op not in convolution.ROOTS:
            continue
        if node.name in leave:
            report.decline(node.name, leave[node.name])
            continue
        conv = convolution.plan(node, graph, context.options.algorithm)
        if isinstance(conv, str):
            report.decline(node.name, conv)
        else:
            _lift(graph, node, conv, report)
    _decline_in_functions(graph, report)


def lift_inner_products(graph: Graph, context: Context) -> None:
    """Plans the multiplications by constant weights."""
    _lift_in_place(graph, inner_product, context.report)


def lift_softmax(graph: Graph, context: Context) -> None:
    """Converts each softmax of what a converted op computes."""
    _lift_in_place(graph, softmax, context.report)


def _lift_in_place(graph: Graph, pattern, report: Report) -> None:
    """Plans the nodes that are `pattern.ROOTS`; their inputs stay what they are."""
    for node in graph.view:
        if node.op not in pattern.ROOTS:
            continue
        payload = pattern.plan(node, graph)
        if isinstance(payload, str):
            report.decline(node.name, payload)
        else:
            graph.view.replace(
                Node(node.name, payload.op, node.inputs, node.controls, payload=payload)
            )


def _lift(graph: Graph, node: Node, conv, report: Report) -> None:
    root, src = node, node.inputs[0]
    unwrapped = dilation.unwrap(node, conv, graph)
    if unwrapped:
        root, src, conv = unwrapped
    src, conv = _fold_pad(graph, src, conv, report)
    graph.view.replace(Node(root.name, conv.op, [src], node.controls, payload=conv))
    graph.view.remove_dead(_dead_candidates(root, node))


def _dead_candidates(*nodes: Node) -> list[str]:
    """Nodes that may have become useless: the old ones and all that fed them."""
    return [node.name for node in nodes] + [ref.node for node in nodes for ref in node.inputs]


def _fold_pad(graph: Graph, src, conv, report: Report):
    if graph.view.producer(src).op not in ("Pad", "PadV2", "MirrorPad"):
        return src, conv
    pads = pad.zero_pad(graph, src)
    if isinstance(pads, str):
        report.decline(src.node, f"not folded into the convolution: {pads}")
        return src, conv
    padded = pad.into_convolution(conv, pads, graph.shapes.shape(src)[1:3])
    if padded is None:
        report.decline(src.node, "not folded: SAME padding of an unknown size with a stride")
        return src, conv
    return graph.view.producer(src).inputs[0], padded


def _decline_in_functions(graph: Graph, report: Report) -> None:
    for function in graph.view.library.function:
        if function.attr[XLA].b:
            continue
        for node in function.node_def:
            if node.op in convolution.ROOTS or node.op in _FOREIGN:
                name = f"{function.signature.name}/{node.name}"
                report.decline(name, "it is inside the body of a loop or condition")
