"""Shapes of what takes parts of a tensor, and of what puts a list of parts together.

Rules as in shape_rules.py. The length of a list, as map_fn, scan and TensorArrays have, is that
with which it was made: a loop that sets elements leaves it.
"""

from .constants import LOOPS
from .functions import flatten, handed_on
from .symbolic import Size
from .view import Node, Ref


def slice_(node: Node, shapes):
    """Of known sizes, wherever it begins."""
    src, begin, size = shapes.shape(node.inputs[0]), *map(shapes.numbers, node.inputs[1:])
    if size is not None and all(count >= 0 for count in size):
        return tuple(size)
    if src is None or begin is None or size is None:
        return None
    return tuple(
        count if count >= 0 else whole - first if first else whole
        for whole, first, count in zip(src, begin, size, strict=True)
    )


def strided_slice(node: Node, shapes):
    """Dimensions that stay whole, new ones, cuts of known ones; others are TensorFlow's to tell."""
    src, strides = shapes.shape(node.inputs[0]), shapes.numbers(node.inputs[3])
    if src is None or strides is None:
        return None
    unknown = ["?"] * len(strides)
    begin, end = (shapes.numbers(ref) or unknown for ref in node.inputs[1:3])
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    masks = {name: node.attr[f"{name}_mask"].i for name in names}
    left, result = list(src), []
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        if masks["ellipsis"] >> i & 1:
            later = len(strides) - i - 1 - bin(masks["new_axis"] >> i + 1).count("1")
            whole = len(left) - later
            result, left = result + left[:whole], left[whole:]
        elif masks["new_axis"] >> i & 1:
            result.append(1)
        elif not left:
            return None
        else:
            size = left.pop(0)
            low = None if masks["begin"] >> i & 1 else first
            high = None if masks["end"] >> i & 1 else last
            if masks["shrink_axis"] >> i & 1:
                continue
            if isinstance(size, int) and "?" not in (low, high):
                size = len(range(size)[low:high:stride])
            elif high is not None or (low, stride) not in ((None, 1), (0, 1), (None, -1)):
                size = None
            result.append(size)
    return (*result, *left)


def gather(node: Node, shapes):
    params, indices = (shapes.shape(ref) for ref in node.inputs[:2])
    axis, shared = shapes.number(node.inputs[2]), node.attr["batch_dims"].i
    if not params or indices is None or axis is None:
        return None  # A scalar is what is known of a handle, and nothing can be gathered from it.
    axis %= len(params)
    shared += len(indices) if shared < 0 else 0
    return (*params[:axis], *indices[shared:], *params[axis + 1 :])


def stacked(node: Node, shapes):
    """All elements of a list as one tensor."""
    element = shapes.value(node.inputs[1])
    if element is None or not element.ndim:
        return None
    return (_length(node.inputs[0], shapes), *(None if size == -1 else size for size in element))


def _length(ref: Ref, shapes) -> Size | None:
    """The number of tensors in a list, where it is known."""
    node = shapes.view.producer(ref)
    if node.op == "TensorListReserve":
        number = shapes.value(node.inputs[1])
        return None if number is None else number.item()
    if node.op == "TensorListFromTensor":
        src = shapes.shape(node.inputs[0])
        return src[0] if src else None
    if node.op == "TensorListSetItem" and not node.attr["resize_if_index_out_of_bounds"].b:
        return _length(node.inputs[0], shapes)
    if node.op in LOOPS and ref.port in _kept(node, shapes.view.library):
        return _length(node.inputs[ref.port], shapes)
    return None


def _kept(loop: Node, library) -> set[int]:
    """The variables of a loop that are lists of one length from its begin to its end."""
    name = loop.attr["body"].func.name
    bodies = (function for function in library.function if function.signature.name == name)
    return next((handed_on(flatten(body), lists=True) for body in bodies), set())
