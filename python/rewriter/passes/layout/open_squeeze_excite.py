"""Takes squeeze-and-excitation apart where its source has low precision.

The op reads and writes float32. A mean of low-precision numbers, the op on that one pixel, and a
product of low-precision numbers by the scales leave everything large in low precision.
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
    payload, view, src, write = node.payload, body.view, node.src, body.writer(node.name)
    shape, common = body.shapes.shape(src), dict(origin=payload.origin, channels=payload.channels)
    pixel_shape = shape and (shape[0], 1, 1, payload.channels)
    pooled = GlobalPool(kind="avg", dst_layout=BLOCKED, **common)
    mean = write.plan("mean", pooled, {"src": src}, pixel_shape)
    if not payload.scale_src:
        view.set_inputs(node, {"src": mean})
        return
    scales = write.plan("scales", replace(payload, scale_src=False), {"src": mean}, pixel_shape)
    product = Eltwise(steps=(binary("mul", "sample_channel", "scales"),), **common)
    inputs = {"src": src, "scales": scales}
    view.replace(Node(node.name, product.op, inputs, node.controls, payload=product))
