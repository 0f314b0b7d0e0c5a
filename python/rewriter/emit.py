"""Writes the planned primitives as NodeDefs, and edited bodies as functions."""

import math

import numpy as np
from tensorflow.core.framework import types_pb2

from ..graph import FLOAT32, Body, Module, Node, Ref, is_float32, make_node
from ..graph.families import KEEP_MEMORY
from ..ops.records import Bundle
from ..options import Options
from . import functions
from .regions import is_ours

_READ = "blockdnn_weights/read"
# Ops whose results cost nothing; a tensor that only these make of weights stays as it is.
_FREE = KEEP_MEMORY | {"Const", "Placeholder", "ReadVariableOp"}
# Of what weights alone determine, so much is stored: a gathered table is larger than the table.
_MOST_FOLDED_BYTES = 64 << 20


def write_nodes(module: Module, resource: str, options: Options) -> np.ndarray | None:
    """Gives every planned node its NodeDef; returns the bundle's values, if there are any.

    Inner bodies come first. One that has converted nodes becomes a new function, which its
    caller gets instead, and takes the bundle, read once outside, as one argument more. What weights
    alone determine lies in the bundle, unless these are live or memory is scarce: a bias of
    attention that is gathered from a table would be gathered in every call.

    Args:
        resource: a name for the placeholder of the bundle's variable in the main body.
    """
    folds = options.keeps_memory and not options.is_live
    bundle, weights, edited = Bundle(), {}, set()
    for body in reversed(module.bodies):
        view = body.view
        weights[body.name] = read = Ref(view.unique_name(resource if body.place else _READ))
        bundle.tensor, bundle.view = read, view
        if any(map(is_ours, view)):
            edited.add(body.name)
            if folds:
                _store_folded(body, bundle)
        for node in view.topological():
            if node.payload is not None:
                view.replace(node.payload.node(node, bundle, options.scratchpad_mode))
        functions.write_calls(body, weights, edited, module, options.keeps_memory)
    if not bundle.size:
        return None
    view, name = module.main.view, weights[module.main.name].node
    view.add(make_node(resource, "Placeholder", dtype=types_pb2.DT_RESOURCE))
    view.add(make_node(name, "ReadVariableOp", [Ref(resource)], dtype=FLOAT32))
    return bundle.vector()


def _store_folded(body: Body, bundle: Bundle) -> None:
    """Writes tensors that weights alone determine as parts of the bundle."""
    left, free = _MOST_FOLDED_BYTES, set()
    for node in body.view.topological():
        if node.op in _FREE and all(ref.node in free for ref in node.inputs):
            free.add(node.name)
            continue
        if node.name not in body.view or not _is_last_of_weights(node, body):
            continue
        shape = body.shapes.shape(node.ref)
        if shape is None or not all(isinstance(size, int) for size in shape):
            continue
        if (size := 4 * math.prod(shape)) > left:
            continue
        if (value := body.constants.value(node.ref)) is None:  # It raises, and does in each call.
            continue
        left -= size
        body.view.replace(bundle.add_tensor(node.name, np.asarray(value, np.float32)))
        body.view.remove_dead([ref.node for ref in node.inputs])


def _is_last_of_weights(node: Node, body: Body) -> bool:
    """Whether a float32 tensor takes time, depends on weights alone, and no reader's does."""
    view, constants = body.view, body.constants
    if not constants.is_constant(node.ref) or not is_float32(view, node.ref):
        return False
    if view.has_control_edges(node.name) or view.is_fetched(node.ref):
        return False
    readers = [reader for reader, _ in view.consumers(node.ref)]
    return any(
        reader.payload is not None or not constants.is_constant(reader.ref) for reader in readers
    )
