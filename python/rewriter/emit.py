"""Writes the planned primitives as NodeDefs, and edited bodies as functions."""

import numpy as np
from tensorflow.core.framework import attr_value_pb2, node_def_pb2, types_pb2

from ..graph import Module, Node, Ref
from . import functions
from .primitives import Bundle

_READ = "blockdnn_weights/read"


def write_nodes(
    module: Module, resource: str, scratchpad_mode: str, keeps_memory: bool = True
) -> np.ndarray | None:
    """Gives every planned node its NodeDef; returns the bundle's values, if there are any.

    Inner bodies come first. One that has converted nodes becomes a new function, which its
    caller gets instead, and takes the bundle, read once outside, as one argument more.

    Args:
        resource: a name for the placeholder of the bundle's variable in the main body.
        scratchpad_mode: of the primitives that take a scratchpad.
        keeps_memory: of the regions in inner bodies.
    """
    bundle, weights = Bundle(), {}
    for body in reversed(module.bodies):
        view = body.view
        weights[body.name] = read = Ref(view.unique_name(resource if body.place else _READ))
        bundle.tensor = read
        for node in view.topological():
            if node.payload is not None:
                _write(view, node, bundle, scratchpad_mode)
        functions.write_calls(body, weights, module, keeps_memory)
    if not bundle.size:
        return None
    view, name = module.main.view, weights[module.main.name].node
    view.add(Node(resource, "Placeholder", proto=_placeholder(resource)))
    view.add(Node(name, "ReadVariableOp", [Ref(resource)], proto=_read_variable(name)))
    return bundle.vector()


def _write(view, node: Node, bundle: Bundle, scratchpad_mode: str) -> None:
    payload = node.payload
    attrs, inputs = payload.write(node.by_role, bundle)
    parts = {"src_part": payload.src_part, "dst_part": payload.dst_part}
    attrs |= {name: list(part) for name, part in parts.items() if part}
    if "into" in node.roles:
        attrs["num_into"] = 1
        inputs.append(node.by_role["into"])
    if payload.takes_scratchpad:
        attrs["scratchpad_mode"] = scratchpad_mode
    proto = node_def_pb2.NodeDef(name=node.name, op=node.op)
    proto.attr["T"].type = types_pb2.DT_FLOAT
    for key, value in attrs.items():
        proto.attr[key].CopyFrom(_attr(value))
    view.replace(Node(node.name, node.op, inputs, node.controls, proto, payload))


def _attr(value) -> attr_value_pb2.AttrValue:
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    if isinstance(value, float):
        return attr_value_pb2.AttrValue(f=value)
    if isinstance(value, str):
        return attr_value_pb2.AttrValue(s=value.encode())
    numbers = [int(number) for number in value]
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=numbers))


def _placeholder(name: str) -> node_def_pb2.NodeDef:
    proto = node_def_pb2.NodeDef(name=name, op="Placeholder")
    proto.attr["dtype"].type = types_pb2.DT_RESOURCE
    return proto


def _read_variable(name: str) -> node_def_pb2.NodeDef:
    proto = node_def_pb2.NodeDef(name=name, op="ReadVariableOp")
    proto.attr["dtype"].type = types_pb2.DT_FLOAT
    return proto
