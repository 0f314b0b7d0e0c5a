"""What a function captures: the Python objects that own it, the weights that it reads."""

from collections.abc import Iterable

import numpy as np

from ..graph import Body, Module, Ref, called, first_argument
from ..tensorflow_private import base, def_function, graph_view


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
