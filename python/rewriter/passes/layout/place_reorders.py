"""Inserts what is left between formats: where a tensor is read in another layout or type than it is
written in, it is changed, both at once, and once for all that read it so.

A tensor of one pixel and whole blocks lies the same in both layouts, so it is only reshaped. What
asks for a shape asks the blocked tensor, which is [N, ceil(C / 16), H, W, 16]:

    shape(x) = gather(concat(shape(blocked), [C]), [0, 2, 3, 5])
"""

from ....graph import FLOAT32, INT32, Body, Format, Node, Ref, dtype_name, read, written
from ....ops.records import BLOCK, BLOCKED, NHWC, Reorder, Reshape
from ...context import Context

PLAIN = Format(FLOAT32, NHWC)


def place_reorders(body: Body, context: Context) -> None:
    """Changes layout and type where a tensor is read in others than it is written in."""
    view, placed = body.view, {}

    def changed(ref: Ref, wanted: Format) -> Ref:
        current, wanted = change(body, ref, wanted)
        if current != wanted and (ref, wanted) not in placed:
            placed[ref, wanted] = _add(body, ref, current, wanted)
        return placed.get((ref, wanted), ref)

    for node in view.topological():
        if node.op == "Shape" and written(body, node.inputs[0]).layout == BLOCKED:
            _read_shape_of_blocks(node, body)
            continue
        inputs = list(map(changed, node.inputs, formats_read(node)))
        if inputs != node.inputs:
            view.set_inputs(node, inputs)
    view.fetches = [changed(ref, PLAIN) for ref in view.fetches]


def formats_read(node: Node) -> list[Format]:
    """The format in which a node reads each input."""
    return read(node) if node.payload is not None else [PLAIN] * len(node.inputs)


def change(body: Body, ref: Ref, wanted: Format) -> tuple[Format, Format]:
    """The formats in which a tensor is written and has to be read; equal where it stays."""
    current = written(body, ref)
    if body.view.producer(ref).payload is None and wanted is PLAIN:
        return current, current
    current = current._replace(dtype=current.dtype or wanted.dtype)
    layout, dtype, quantization = wanted.layout, wanted.dtype, wanted.quantization
    return current, current._replace(layout=layout, dtype=dtype, quantization=quantization)


def is_one_in_memory(body: Body, ref: Ref) -> bool:
    """Whether both layouts are the same: whole blocks of one pixel an image."""
    shape, channels = body.shapes.shape(ref), written(body, ref).channels
    return shape is not None and shape[1:3] == (1, 1) and channels % BLOCK == 0


def _add(body: Body, ref: Ref, current: Format, wanted: Format) -> Ref:
    """Adds what changes one format into the other."""
    common = dict(origin=ref.node, channels=current.channels, src_layout=current.layout)
    common |= dict(dst_layout=wanted.layout, src_dtype=current.dtype, dtype=wanted.dtype)
    write, shape = body.writer(ref.node), body.shapes.shape(ref)
    what = wanted.layout if current.layout != wanted.layout else dtype_name(wanted.dtype)
    if current.dtype == wanted.dtype and is_one_in_memory(body, ref):
        blocks = [current.channels // BLOCK, 1, 1, BLOCK]
        sizes = [-1, *blocks] if wanted.layout == BLOCKED else [-1, 1, 1, current.channels]
        inputs = {"src": ref, "shape": write.constant(f"{what}/shape", sizes)}
        return write.plan(what, Reshape(**common), inputs, shape)
    bytes_ = (current.quantization or (), wanted.quantization or ())
    record = Reorder(**common, src_quantization=bytes_[0], dst_quantization=bytes_[1])
    return write.plan(what, record, {"src": ref}, shape)


def _read_shape_of_blocks(node: Node, body: Body) -> None:
    blocks, kind = node.inputs[0], node.attr["out_type"].type or INT32
    write = body.writer(node.name)
    blocked = write.add("blocked", "Shape", blocks, out_type=kind)
    channels = write.constant("channels", [written(body, blocks).channels], kind)
    write.put("GatherV2", write.add("sizes", "ConcatV2", [blocked, channels], 0), [0, 2, 3, 5], 0)
