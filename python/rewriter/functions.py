"""Puts edited bodies back: new functions, which their callers run instead."""

from tensorflow.core.framework import node_def_pb2, types_pb2

from ..graph import Body, Module, Node, Ref, make_node, unflatten
from ..graph.families import LOOPS
from .regions import form_regions, fresh_name


def write_calls(
    body: Body, weights: dict[str, Ref], edited: set[str], module: Module, keeps_memory: bool = True
) -> None:
    """Gives each node of `body` that calls edited functions the new ones.

    Where one of them reads the bundle of weights, all functions of the node take it as one
    argument more, and a loop hands it on.

    Args:
        weights: name of a body -> the tensor that holds the bundle there.
        edited: the names of bodies in which something is ours, those that it calls among them.
        keeps_memory: of the regions that are formed in the new functions.
    """
    for caller in dict.fromkeys(caller for caller, _, _ in body.inner):
        inner = {(k, i): b for (name, k, i), b in body.inner.items() if name == caller}
        if caller in body.view and any(b.name in edited for b in inner.values()):
            edited.add(body.name)
            _rewrite(body, body.view.node(caller), inner, weights, module, keeps_memory)


def _rewrite(body: Body, node: Node, inner: dict, weights, module: Module, keeps_memory) -> None:
    takes = any(b.view.consumers(weights[b.name]) for b in inner.values())
    proto = node_def_pb2.NodeDef()
    proto.CopyFrom(node.proto)
    for (key, index), called in inner.items():
        value = proto.attr[key]
        function = value.list.func[index] if value.HasField("list") else value.func
        function.name = _write(
            function.name, called, weights[called.name], takes, key, module, keeps_memory
        )
    if takes:
        if node.op in LOOPS:
            proto.attr["T"].list.type.append(types_pb2.DT_FLOAT)
            if node.attr["output_shapes"].list.shape:
                proto.attr["output_shapes"].list.shape.add(unknown_rank=True)
        else:
            proto.attr["Tin"].list.type.append(types_pb2.DT_FLOAT)
    inputs = [*node.inputs, weights[body.name]] if takes else node.inputs
    body.view.replace(Node(node.name, node.op, inputs, node.controls, proto))


def _write(name: str, body: Body, weights: Ref, takes: bool, key: str, module, keeps_memory) -> str:
    """Adds the function to the module; returns its name."""
    original = module.functions[name]
    new_name = fresh_name(f"{name}_blockdnn_")
    dtype = types_pb2.DT_FLOAT
    if takes:
        body.view.add(make_node(weights.node, "Placeholder", dtype=dtype))
    body.view.prune()
    regions = form_regions(body.view, keeps_memory=keeps_memory)
    module.functions.update((region.signature.name, region) for region in regions)
    hands_on = takes and key == "body"
    module.functions[new_name] = unflatten(
        original,
        new_name,
        body.view,
        inputs=body.inputs,
        new_inputs=[(weights.node, dtype)] if takes else [],
        new_outputs=[(weights, dtype)] if hands_on else [],
    )
    return new_name
