"""What a function captures: the Python objects that own it, the weights that it reads."""

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from ..graph import Body, Module, Ref, called, first_argument
from ..tensorflow_private import base, def_function, graph_view, resource_variable_ops

BUNDLE = "blockdnn_weights"


class Bundles:
    """The variables made so far, so that functions with the same weights share them."""

    def __init__(self):
        self._variables: dict[tuple, list[tf.Variable]] = {}

    def variable(self, values: np.ndarray) -> tf.Variable:
        alike = self._variables.setdefault((values.dtype, values.shape), [])
        for variable in alike:
            with tf.init_scope():  # a tf.function may be traced meanwhile
                held = np.asarray(variable.read_value())
            if np.array_equal(_bits(held), _bits(values)):
                return variable
        # tf.Variable asks a tf.function that is traced meanwhile, which allows it only once.
        alike.append(resource_variable_ops.ResourceVariable(values, trainable=False, name=BUNDLE))
        return alike[-1]


def _bits(values: np.ndarray):
    """What is equal for equal values, NaN and the sign of zero included; copies nothing."""
    is_text = values.dtype.kind == "O"
    return values if is_text else np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def owners(concrete, roots: Iterable) -> list:
    """The variables and tables behind the captures of `concrete`.

    Args:
        roots: functions, modules and models that the owners are looked for in.
    """
    wanted = {id(tensor) for tensor in concrete.captured_inputs}
    found: dict[int, object] = {}
    for item in _reachable(roots):
        for handle in _handles(item):
            if id(handle) in wanted:
                found.setdefault(id(item), item)
    return list(found.values())


def _handles(item) -> list:
    """The tensors that stand for an object in a graph: a variable's or a table's handle."""
    if isinstance(item, base.Trackable) and hasattr(item, "handle"):
        return [item.handle]
    if hasattr(item, "_resource_handle") or hasattr(type(item), "resource_handle"):
        return [item.resource_handle]
    return []


def _reachable(roots: Iterable):
    for root in roots:
        yield from getattr(getattr(root, "graph", None), "variables", ())
        yield from _closure(root)
        if isinstance(root, base.Trackable):
            yield from graph_view.ObjectGraphView(root).breadth_first_traversal()[0]


def _closure(root):
    """What a function closes over, one level deep, and everything tracked below that."""
    function = getattr(root, "python_function", None)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for item in [getattr(function, "__self__", None), *cells]:
        if isinstance(item, base.Trackable) and not isinstance(item, def_function.Function):
            yield from graph_view.ObjectGraphView(item).breadth_first_traversal()[0]


def weights_left(module: Module) -> dict[str, np.ndarray]:
    """name of a handle's placeholder -> the value of a variable that something still reads.

    Without those that the function assigns.
    """
    main = module.main
    read = (name for name in module.captures if name in main.view and _is_read(main, Ref(name)))
    values = ((name, main.constants.value_of_variable(name)) for name in read)
    return {name: value for name, value in values if value is not None}


def _is_read(body: Body, handle: Ref) -> bool:
    """Whether anything does more with a variable's handle than to hand it on."""
    for node, index in body.view.consumers(handle):
        if node.op == "Identity":
            if _is_read(body, node.ref):
                return True
            continue
        inner = [one for (name, _, _), one in body.inner.items() if name == node.name]
        if not inner or len(inner) < len(list(called(node))):
            return True
        argument = index - first_argument(node.op)
        if any(_is_read(one, Ref(one.inputs[argument])) for one in inner):
            return True
    return False
