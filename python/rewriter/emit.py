"""Writes planned primitives as NodeDefs, and edited bodies as functions that callers run."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ..graph import FLOAT32, Body, Module, Node, Ref, is_float32, make_node, unflatten
from ..graph.families import KEEP_MEMORY, LOOPS
from ..ops.records import Bundle
from ..options import Options
from .regions import form_regions, fresh_name, is_ours
from .weights_file import in_file

_READ = "blockdnn_weights/read"
# Ops whose results cost nothing; a tensor that only these make of weights stays as it is.
_FREE = KEEP_MEMORY | {"Const", "Placeholder", "ReadVariableOp"}
# Of what weights alone determine, so much is stored: a gathered table is larger than the table.
_MOST_FOLDED_BYTES = 64 << 20


def write_nodes(module: Module, resource: str, options: Options) -> tf.Tensor | None:
    """Gives every planned node a NodeDef; returns the bundle's values, if there are any.

    Inner bodies come first. One that has converted nodes becomes a new function, which the
    caller gets instead, and takes the bundle, read once outside, as one argument more. What weights
    alone determine lies in the bundle, unless these are live or memory is scarce: a bias of
    attention that is gathered from a table would be gathered in every call.

    Args:
        resource: a name for the placeholder of the bundle's variable in the main body.
    """
    folds = options.keeps_memory and not options.is_live
    bundle, calls = Bundle(), _Calls(module, options.keeps_memory)
    for body in reversed(module.bodies):
        view = body.view
        read = Ref(view.unique_name(resource if body.place else _READ))
        calls.weights[body.name] = bundle.tensor = read
        bundle.view = view
        if any(map(is_ours, view)):
            calls.edited.add(body.name)
            if folds:
                _store_folded(body, bundle)
        for node in view.topological():
            if node.payload is not None:
                view.replace(node.payload.node(node, bundle, options.scratchpad_mode))
        calls.write(body)
    if not bundle.size:
        return None
    view, name = module.main.view, calls.weights[module.main.name].node
    view.add(make_node(resource, "Placeholder", dtype=types_pb2.DT_RESOURCE))
    view.add(make_node(name, "ReadVariableOp", [Ref(resource)], dtype=FLOAT32))
    return in_file(bundle.length, bundle.parts)


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


class _Calls:
    """The nodes that call edited functions, which get new ones.

    Attributes:
        weights: name of a body -> the tensor that holds the bundle there.
        edited: the names of bodies in which something is ours, those that they call among them.
    """

    def __init__(self, module: Module, keeps_memory: bool):
        self._module, self._keeps_memory = module, keeps_memory
        self.weights: dict[str, Ref] = {}
        self.edited: set[str] = set()

    def write(self, body: Body) -> None:
        """Gives each node of `body` that calls edited functions the new ones."""
        called: dict[str, dict] = {}
        for (caller, key, index), inner in body.inner.items():
            called.setdefault(caller, {})[key, index] = inner
        for caller, inner in called.items():
            if caller in body.view and any(b.name in self.edited for b in inner.values()):
                self.edited.add(body.name)
                self._call(body, body.view.node(caller), inner)

    def _call(self, body: Body, node: Node, inner: dict) -> None:
        """Where one of them reads the bundle of weights, all functions of the node take it as one
        argument more, and a loop hands it on."""
        takes = any(b.view.consumers(self.weights[b.name]) for b in inner.values())
        proto = node.to_proto()
        for (key, index), called in inner.items():
            value = proto.attr[key]
            function = value.list.func[index] if value.HasField("list") else value.func
            function.name = self._function(function.name, called, takes, takes and key == "body")
        if takes:
            if node.op in LOOPS:
                proto.attr["T"].list.type.append(FLOAT32)
                if node.attr["output_shapes"].list.shape:
                    proto.attr["output_shapes"].list.shape.add(unknown_rank=True)
            else:
                proto.attr["Tin"].list.type.append(FLOAT32)
        inputs = [*node.inputs, self.weights[body.name]] if takes else node.inputs
        body.view.replace(Node(node.name, node.op, inputs, node.controls, proto))

    def _function(self, name: str, body: Body, takes: bool, hands_on: bool) -> str:
        """Adds the function to the module; returns the new name."""
        functions, new_name = self._module.functions, fresh_name(f"{name}_blockdnn_")
        weights = self.weights[body.name]
        if takes:
            body.view.add(make_node(weights.node, "Placeholder", dtype=FLOAT32))
        body.view.prune()
        for region in form_regions(body.view, keeps_memory=self._keeps_memory):
            functions[region.signature.name] = region
        functions[new_name] = unflatten(
            functions[name],
            new_name,
            body.view,
            inputs=body.inputs,
            new_inputs=[(weights.node, FLOAT32)] if takes else [],
            new_outputs=[(weights, FLOAT32)] if hands_on else [],
        )
        return new_name
