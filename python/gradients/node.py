"""What a gradient knows of the op that it belongs to, and the chain rule through several ops."""

import tensorflow as tf

from ..ops.arguments import invalid


def text(op, name: str) -> str:
    """The string attribute `name`."""
    return op.get_attr(name).decode()


def padding_argument(op):
    """The argument `padding` of the wrappers in python/ops that gave the op its attributes."""
    padding = text(op, "padding")
    if padding != "EXPLICIT":
        return padding
    top, bottom, left, right = op.get_attr("explicit_paddings")
    return [[top, bottom], [left, right]]


def is_wanted(op, index: int) -> bool:
    """Whether the gradient of input `index` is used; a tape may say that it is not."""
    return index not in (getattr(op, "skip_input_indices", None) or ())


def vjp(function, inputs, dy) -> list:
    """The gradients of `function(*inputs)` for `dy`, zeros where it does not depend on an input.

    Each input gets the share of its own position, also where one tensor is passed twice.
    """
    with tf.GradientTape() as tape:
        copies = [tf.identity(x) for x in inputs]
        tape.watch(copies)
        y = function(*copies)
    return tape.gradient(
        y, copies, output_gradients=dy, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


def split_inputs(op, *counts: int) -> list[list]:
    """The inputs of `op`, cut into lists of these lengths.

    Raises:
      InvalidArgument: they are not as many: the op has inputs that the gradient does not know.
    """
    inputs, groups = list(op.inputs), []
    if sum(counts) != len(inputs):
        raise invalid(
            f"{op.type} has {len(inputs)} inputs, of which its gradient knows {sum(counts)}; "
            "compute the others outside of the op"
        )
    for count in counts:
        groups.append(inputs[:count])
        inputs = inputs[count:]
    return groups
