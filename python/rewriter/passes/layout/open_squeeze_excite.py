"""Takes squeeze-and-excitation apart where its source is narrow.

The op reads and writes float32. A mean of narrow numbers, the op on that one pixel, and a product
of narrow numbers by its scales leave everything large narrow.
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import BLOCKED, Eltwise, GlobalPool, SqueezeExcite, binary


def open_squeeze_excite(body: Body, lowered: set[str]) -> None:
    """Opens each squeeze-and-excitation of what a convolution of those named makes."""
    view = body.view
    for node in view.topological():
        payload = node.payload
        if not isinstance(payload, SqueezeExcite) or node.src.node not in lowered:
            continue
        readers = {reader.name for reader, _ in view.consumers(node.ref)}
        if payload.scale_src and not readers & lowered:
            continue  # Its result is float32 in any case.
        _open(node, body)


def _open(node: Node, body: Body) -> None:
    payload, view, src = node.payload, body.view, node.src
    shape = body.shapes.shape(src)
    pooled = GlobalPool(
        origin=payload.origin, channels=payload.channels, kind="avg", dst_layout=BLOCKED
    )
    mean = view.add(Node(f"{node.name}/mean", pooled.op, {"src": src}, payload=pooled)).ref
    body.shapes.put(mean, shape and (shape[0], 1, 1, payload.channels))
    if not payload.scale_src:
        view.set_inputs(node, {"src": mean})
        return
    scales = replace(payload, scale_src=False)
    made = view.add(Node(f"{node.name}/scales", scales.op, {"src": mean}, payload=scales)).ref
    body.shapes.put(made, shape and (shape[0], 1, 1, payload.channels))
    product = Eltwise(
        origin=payload.origin,
        channels=payload.channels,
        steps=(binary("mul", "sample_channel", "scales"),),
    )
    inputs = {"src": src, "scales": made}
    view.replace(Node(node.name, product.op, inputs, node.controls, payload=product))
