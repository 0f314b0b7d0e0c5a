"""Drops what inlining leaves between operations: identities and needless ordering."""

from ..graph import Constants, GraphView, Node, Ref, called_functions
from ..tensorflow_private import op_def_registry

LOWERING = "_lower_using_switch_merge"
# Ops that a function runs for their results only, though TensorFlow lists them as stateful.
PURE_READS = frozenset({"ReadVariableOp", "ResourceGather", "VariableShape", "Const", "Identity"})

_IDENTITIES = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient"})
_EMPTY = frozenset({*_IDENTITIES, "NoOp"})
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})
# In loops and conditions of version 1 a control edge says where a node belongs.
_FRAMES = frozenset({"Enter", "Exit", "Merge", "NextIteration", "Switch"})


def relax(view: GraphView, constants: Constants) -> None:
    """Lets consumers read what an identity reads, and reads of constants wait for nothing."""
    _resolve_targets(view)
    _wait_for_effects(view, constants)
    _bypass_identities(view)


def rests_on_edges(node_lists) -> bool:
    """Whether effects beside branches and loops need control edges where data has a path, too.

    Grappler's pruning and its dependency optimizer drop an edge beside such a path. But TensorFlow
    makes switches of branches and loops when the function is called, and then not all that lies in
    one waits for all of its inputs.
    """
    nodes = [node for nodes in node_lists for node in nodes]
    if not any(LOWERING in node.attr for node in nodes):
        return False
    own = {node.op for node in nodes if not any(called_functions([node]))} - PURE_READS
    definitions = map(op_def_registry.get, own)
    return any(definition is not None and definition.is_stateful for definition in definitions)


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


def _wait_for_effects(view: GraphView, constants: Constants) -> None:
    """Nodes wait for effects alone, and reads of what nothing in the graph assigns for nothing.

    Such a variable may be read at any time, or not at all. A loaded SavedModel names all its reads
    as side effects: 263 of MobileNetV2, with which a call took 5.0 instead of 4.2 ms. Calls that
    TensorFlow lists as stateful leave edges when they are inlined, as Keras's grouped convolutions
    do: then outputs wait for a Pad.

    What waits for a node without effects waits for the effects before it instead. Effects that were
    ordered only by way of such a read, over whatever it is that reads it, get an edge of their own.
    """
    reads = [node for node in view if node.op in _READS and constants.reads_constant(node)]
    waiting = [node for node in view if node.controls]
    targets = {node.name for node in reads}.intersection(view.targets)
    if not waiting and not targets:
        return
    if any(node.op in _FRAMES for node in view):
        idle = {name for name in targets if not view.node(name).controls}
        view.targets = [name for name in view.targets if name not in idle]
        return
    before, up_to = _nearest_effects(view, constants)
    for node in waiting:
        effects = (effect for name in node.controls for effect in sorted(up_to[name]))
        view.set_controls(node, dict.fromkeys(effects))
    ordered = [node for node in reads if node.controls]
    for node in ordered:
        view.set_controls(node, [])
    instead = [up_to[name] if name in targets else [name] for name in view.targets]
    view.targets = list(dict.fromkeys(name for names in instead for name in sorted(names)))
    if not ordered:
        return
    after, _ = _nearest_effects(view, constants)
    for node in view:
        lost = before[node.name] - after[node.name]
        if lost and _has_effects(node, constants):
            view.set_controls(node, dict.fromkeys([*node.controls, *sorted(lost)]))


def _nearest_effects(view: GraphView, constants: Constants):
    """Node -> the nearest effects before it, and the same with itself where it has effects."""
    before: dict[str, frozenset[str]] = {}
    up_to: dict[str, frozenset[str]] = {}
    for node in view.topological():
        sources = [*(ref.node for ref in node.inputs), *node.controls]
        before[node.name] = frozenset().union(*(up_to[name] for name in sources))
        is_one = _has_effects(node, constants)
        up_to[node.name] = frozenset({node.name}) if is_one else before[node.name]
    return before, up_to


def _has_effects(node: Node, constants: Constants) -> bool:
    """Whether it matters when the node runs: it writes, draws or may read what is written."""
    if node.op in _READS:
        return not constants.reads_constant(node)
    definition = op_def_registry.get(node.op)
    return node.op not in PURE_READS and (definition is None or definition.is_stateful)


def _bypass_identities(view: GraphView) -> None:
    """Fetched and ordering identities stay."""
    for node in view:
        if node.op not in _IDENTITIES or view.has_control_edges(node.name):
            continue
        for port, source in enumerate(node.inputs):
            if not view.is_fetched(Ref(node.name, port)):
                view.replace_uses(Ref(node.name, port), source)
        view.remove_dead([node.name])
