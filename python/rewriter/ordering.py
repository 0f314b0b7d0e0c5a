"""Drops what inlining leaves between operations: identities and needless ordering."""

from ..graph import Constants, GraphView, Ref

_IDENTITIES = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient"})
_EMPTY = frozenset({*_IDENTITIES, "NoOp"})


def relax(view: GraphView, constants: Constants) -> None:
    """Lets consumers read what an identity reads, and reads of constants wait for nothing."""
    _resolve_targets(view)
    _unorder_reads(view, constants)
    _bypass_identities(view)


def _resolve_targets(view: GraphView) -> None:
    """An inlined call that must run stands for the side effects it waits for."""
    targets, seen, resolved = list(view.targets), set(), []
    while targets:
        name = targets.pop(0)
        if name in seen or name not in view:
            continue
        seen.add(name)
        node = view.node(name)
        if node.op in _EMPTY:
            targets.extend(node.controls)
        else:
            resolved.append(name)
    view.targets = resolved


def _unorder_reads(view: GraphView, constants: Constants) -> None:
    """A variable that nothing in the graph assigns may be read at any time, or not at all.

    A loaded SavedModel names all its reads as side effects: 263 of MobileNetV2, with which a
    call took 5.0 instead of 4.2 ms.
    """
    free = set()
    for node in view:
        if node.op != "ReadVariableOp" or not constants.is_read_only(node.inputs[0].node):
            continue
        free.add(node.name)
        view.set_controls(node, [])
        for reader in view.control_consumers(node.name):
            view.set_controls(reader, [name for name in reader.controls if name != node.name])
    view.targets = [name for name in view.targets if name not in free]


def _bypass_identities(view: GraphView) -> None:
    """Fetched and ordering identities stay."""
    for node in view:
        if node.op not in _IDENTITIES or view.has_control_edges(node.name):
            continue
        for port, source in enumerate(node.inputs):
            if not view.is_fetched(Ref(node.name, port)):
                view.replace_uses(Ref(node.name, port), source)
        view.remove_dead([node.name])
