"""Writes the planned primitives as NodeDefs, and edited bodies as functions."""

import numpy as np
from tensorflow.core.framework import types_pb2

from ..graph import FLOAT32, Module, Ref, make_node
from ..ops.records import Bundle
from . import functions

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
        bundle.tensor, bundle.view = read, view
        for node in view.topological():
            if node.payload is not None:
                view.replace(node.payload.node(node, bundle, scratchpad_mode))
        functions.write_calls(body, weights, module, keeps_memory)
    if not bundle.size:
        return None
    view, name = module.main.view, weights[module.main.name].node
    view.add(make_node(resource, "Placeholder", dtype=types_pb2.DT_RESOURCE))
    view.add(make_node(name, "ReadVariableOp", [Ref(resource)], dtype=FLOAT32))
    return bundle.vector()
