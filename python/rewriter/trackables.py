"""Finds the Python objects that own what a function captures."""

from collections.abc import Iterable

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
