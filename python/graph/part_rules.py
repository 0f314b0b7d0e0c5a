"""Shapes of what takes parts of a tensor, and of what puts a list of parts together.

Rules as in shape_rules.py. The length of a list, as map_fn, scan and TensorArrays have, is that
with which it was made: a loop that sets elements leaves it.
"""

from .families import LOOPS
from .functions import flatten, handed_on
from .moves import taken
from .symbolic import Size, exact_division, is_count
from .view import Node, Ref


def read(*methods: str):
    """Makes a rule of what is read of the first inputs, which is asked where all of it is known.

    Args:
        methods: of each input the one of `Shapes` that reads it.
    """

    def of(rule):
        def ask(node: Node, shapes):
            pairs = zip(methods, node.inputs, strict=False)
            values = [getattr(shapes, method)(ref) for method, ref in pairs]
            return None if any(value is None for value in values) else rule(node, *values)

        return ask

    return of


def slice_(node: Node, shapes):
    """Of known sizes, wherever it begins; only numbers say "the rest", which is -1."""
    sizes = shapes.value(node.inputs[2])
    if sizes is not None and all(map(is_count, sizes)):
        return tuple(sizes)
    src, begin, size = shapes.shape(node.inputs[0]), *map(shapes.numbers, node.inputs[1:])
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
    index = taken(node, begin, end, strides)
    left, result = list(src), []
    for i, item in enumerate(index):
        if item is Ellipsis:
            whole = len(left) - sum(later is not None for later in index[i + 1 :])
            result, left = result + left[:whole], left[whole:]
        elif item is None:
            result.append(1)
        elif not left:
            return None
        else:
            size = left.pop(0)
            if not isinstance(item, slice):
                continue
            if isinstance(size, int) and "?" not in (item.start, item.stop):
                size = len(range(size)[item])
            elif item.stop is not None or (item.start, item.step) not in _WHOLE:
                size = None
            result.append(size)
    return (*result, *left)


_WHOLE = ((None, 1), (0, 1), (None, -1))  # where a slice that has no end begins, and its step


@read("shape", "shape", "number")
def gather(node: Node, params, indices, axis):
    if not params:
        return None  # A scalar is what is known of a handle, and nothing can be gathered from it.
    axis, shared = axis % len(params), node.attr["batch_dims"].i
    shared += len(indices) if shared < 0 else 0
    return (*params[:axis], *indices[shared:], *params[axis + 1 :])


def of_split(node: Node, port: int, shapes):
    """Of any output of what has several that are parts of one tensor."""
    src, axis, size = SPLITS[node.op](node, port, shapes)
    sizes = shapes.shape(src)
    if sizes is None or axis is None:
        return None
    axis %= len(sizes)
    return (*sizes[:axis], *size, *sizes[axis + 1 :])


def _even_part(node: Node, port: int, shapes):
    """(source, axis, what becomes of it) of an output of Split; of others below."""
    src, axis = shapes.shape(node.inputs[1]), shapes.number(node.inputs[0])
    size = exact_division(src[axis], node.attr["num_split"].i) if src and axis is not None else None
    return node.inputs[1], axis, (size,)


def _part(node: Node, port: int, shapes):
    sizes = shapes.numbers(node.inputs[1])
    size = sizes[port] if sizes and sizes[port] >= 0 else None
    return node.inputs[0], shapes.number(node.inputs[2]), (size,)


def _unstacked(node: Node, port: int, shapes):
    return node.inputs[0], node.attr["axis"].i, ()


def _largest(node: Node, port: int, shapes):
    return node.inputs[0], -1, (shapes.number(node.inputs[1]),)


SPLITS = {"Split": _even_part, "SplitV": _part, "TopKV2": _largest, "Unpack": _unstacked}


def element(node: Node, shapes):
    """One element of a list."""
    return _element(shapes.value(node.inputs[2]))


def stacked(node: Node, shapes):
    """All elements of a list as one tensor: they have the shape of the one that was set last."""
    sizes, stack = _element(shapes.value(node.inputs[1])), shapes.view.producer(node.inputs[0])
    item = shapes.shape(stack.inputs[2]) if stack.op == "TensorListSetItem" else None
    if sizes is None or None in sizes:
        sizes = sizes if item is None else item
    return None if sizes is None else (_length(node.inputs[0], shapes), *sizes)


def _element(sizes):
    """The shape of elements by what a node states of it; a scalar says that it is unknown."""
    if sizes is None or not sizes.ndim:
        return None
    return tuple(size if is_count(size) else None for size in sizes)


def _length(ref: Ref, shapes) -> Size | None:
    """The number of tensors in a list, where it is known."""
    node = shapes.view.producer(ref)
    while _keeps_length(node, ref, shapes):
        ref = node.inputs[ref.port]
        node = shapes.view.producer(ref)
    if node.op == "TensorListReserve":
        number = shapes.value(node.inputs[1])
        return None if number is None else number.item()
    if node.op == "TensorListFromTensor":
        src = shapes.shape(node.inputs[0])
        return src[0] if src else None
    return None


def _keeps_length(node: Node, ref: Ref, shapes) -> bool:
    """Whether a list is as long as the one that the node reads in its place."""
    if node.op == "TensorListSetItem":
        return not node.attr["resize_if_index_out_of_bounds"].b
    return node.op in LOOPS and ref.port in _kept(node, shapes.view.library)


def _kept(loop: Node, library) -> set[int]:
    """The variables of a loop that are lists of one length from its begin to its end."""
    name = loop.attr["body"].func.name
    bodies = (function for function in library.function if function.signature.name == name)
    return next((handed_on(flatten(body), lists=True) for body in bodies), set())
