"""Writes the planned primitives as NodeDefs.

All weights and constant operands of a function go into one 1-D variable, the bundle:
one capture, one read, saved and loaded as one tensor. Ops name their part by offset.
"""

from collections.abc import Callable

import numpy as np
from tensorflow.core.framework import attr_value_pb2, node_def_pb2, types_pb2

from ..graph import Module, Node, Ref
from . import functions
from .plan import (
    Concat,
    Conv,
    ConvDepthwise,
    Eltwise,
    GlobalPool,
    InnerProduct,
    Pool,
    Reorder,
    Shuffle,
    Softmax,
    SqueezeExcite,
)

_READ = "blockdnn_weights/read"
_ALIGN = 16  # floats: every part starts on a cache line


class Bundle:
    """Lays arrays out in one float32 vector; the same array is stored once."""

    def __init__(self):
        self._parts: dict[int, tuple[object, int, int, Callable]] = {}
        self.size = 0

    def add(self, key: object, size: int, write: Callable[[np.ndarray], None]) -> int:
        """The offset of what `write` will write for the object `key`."""
        if id(key) not in self._parts:
            self._parts[id(key)] = (key, self.size, size, write)
            self.size += -(-size // _ALIGN) * _ALIGN
        return self._parts[id(key)][1]

    def add_array(self, values: np.ndarray) -> int:
        def write(out):
            out[...] = values.reshape(-1)

        return self.add(values, values.size, write)

    def add_weights(self, conv: Conv) -> int:
        key = conv.weights if conv.scale is None else conv
        return self.add(key, conv.weights.size, conv.write_weights)

    def vector(self) -> np.ndarray:
        result = np.zeros(self.size, np.float32)
        for _, offset, size, write in self._parts.values():
            write(result[offset : offset + size])
        return result


def write_nodes(module: Module, resource: str, scratchpad_mode: str) -> np.ndarray | None:
    """Gives every planned node its NodeDef; returns the bundle's values, if there are any.

    Inner bodies come first. One that has converted nodes becomes a new function, which its
    caller gets instead, and takes the bundle, read once outside, as one argument more.

    Args:
        resource: a name for the placeholder of the bundle's variable in the main body.
        scratchpad_mode: of the primitives that take a scratchpad.
    """
    bundle, weights = Bundle(), {}
    for body in reversed(module.bodies):
        view = body.view
        weights[body.name] = read = Ref(view.unique_name(resource if body.place else _READ))
        for node in view.topological():
            if node.payload is not None:
                _write(view, node, bundle, read, scratchpad_mode)
        functions.write_calls(body, weights, module)
    if not bundle.size:
        return None
    view, name = module.main.view, weights[module.main.name].node
    view.add(Node(resource, "Placeholder", proto=_placeholder(resource)))
    view.add(Node(name, "ReadVariableOp", [Ref(resource)], proto=_read_variable(name)))
    return bundle.vector()


def _write(view, node: Node, bundle: Bundle, read: Ref, scratchpad_mode: str) -> None:
    payload = node.payload
    attrs, inputs = _ATTRS[type(payload)](payload) | _part_attrs(payload), list(node.inputs)
    into = [inputs.pop()] if payload.into else []
    if isinstance(payload, ConvDepthwise):
        inputs = _write_pair(payload, node.inputs, attrs, bundle, read)
    elif payload.takes_steps:
        steps, weights = payload.steps, []
        if isinstance(payload, Conv):
            attrs["weights_offset"], steps = _add_weights(payload, bundle)
            weights = [read]
        own = payload.own_inputs
        attrs["post_ops"], args = _chain(steps, own, inputs, bundle, read)
        attrs["num_args"] = len(args)
        inputs = [*inputs[:own], *weights, *args]
    elif isinstance(payload, SqueezeExcite):
        attrs["offsets"] = [at for conv in payload.products for at in _product(conv, bundle)]
        inputs += [read] * 4
    if payload.takes_scratchpad:
        attrs["scratchpad_mode"] = scratchpad_mode
    if attrs.get("num_src_scales"):
        inputs.append(inputs.pop(1))  # the op has it after the others
    inputs += into
    proto = node_def_pb2.NodeDef(name=node.name, op=node.op)
    proto.attr["T"].type = types_pb2.DT_FLOAT
    for key, value in attrs.items():
        proto.attr[key].CopyFrom(_attr(value))
    view.replace(Node(node.name, node.op, inputs, node.controls, proto, payload))


def _add_weights(conv: Conv, bundle: Bundle):
    """The offset of its weights, and its chain."""
    return bundle.add_weights(conv), conv.chain


def _write_pair(pair: ConvDepthwise, inputs, attrs: dict, bundle: Bundle, read: Ref) -> list[Ref]:
    """Completes the attributes; returns the inputs of the op."""
    own, all_args = pair.own_inputs, []
    halves = {"": (pair.first, inputs[:own]), "depthwise_": (pair.depthwise, inputs)}
    for prefix, (conv, its_inputs) in halves.items():
        attrs[f"{prefix}weights_offset"], steps = _add_weights(conv, bundle)
        attrs[f"{prefix}post_ops"], args = _chain(steps, own, its_inputs, bundle, read)
        attrs[f"num_{prefix}args"] = len(args)
        all_args += args
    return [*inputs[:own], read, read, *all_args]


def _product(conv: Conv, bundle: Bundle) -> tuple[int, int]:
    """Where the weights and the bias of a product lie."""
    bias = np.zeros(conv.channels) if conv.shift is None else conv.shift
    return bundle.add_weights(conv), bundle.add_array(bias)


def _chain(steps, own_inputs: int, inputs, bundle: Bundle, read: Ref):
    """The post_ops text and its args: the bundle first where a step needs it."""
    constant = any(isinstance(step.operand, np.ndarray) for step in steps)
    args = [read, *inputs[own_inputs:]] if constant else list(inputs[own_inputs:])
    first_tensor = 1 if constant else 0
    entries = []
    for step in steps:
        operand = ""
        if isinstance(step.operand, np.ndarray):
            operand = f"#0@{bundle.add_array(step.operand)}"
        elif step.operand is not None:
            operand = f"#{step.operand - own_inputs + first_tensor}"
        entries.append(step.text(operand))
    return ";".join(entries), args


def _part_attrs(payload) -> dict:
    """Those of the ops whose tensors may be parts of wider ones."""
    parts = {"src_part": payload.src_part, "dst_part": payload.dst_part}
    attrs = {name: list(part) for name, part in parts.items() if part}
    return attrs | ({"num_into": 1} if payload.into else {})


def _padding_attrs(window: Conv | Pool) -> dict:
    explicit = window.padding == "EXPLICIT"
    return {
        "padding": window.padding,
        "explicit_paddings": list(window.explicit_paddings) if explicit else [],
    }


def _conv_attrs(conv: Conv) -> dict:
    return {
        "src_layout": conv.reads,
        "dst_layout": conv.writes,
        "channels": conv.in_channels,
        "weights_shape": list(conv.weights.shape),
        "groups": conv.groups,
        "strides": list(conv.strides),
        "dilations": list(conv.dilations),
        "algorithm": conv.algorithm,
        "num_src_scales": int(conv.src_scaled),
        "pool": list(conv.pool),
        "constant_weights": True,
    } | _padding_attrs(conv)


def _pair_attrs(pair: ConvDepthwise) -> dict:
    return {
        "channels": pair.first.in_channels,
        "weights_shape": list(pair.first.weights.shape),
        "depthwise_weights_shape": list(pair.depthwise.weights.shape),
        "strides": list(pair.depthwise.strides),
        "dilations": list(pair.depthwise.dilations),
        "algorithm": pair.algorithm,
        "constant_weights": True,
    } | _padding_attrs(pair.depthwise)


def _pool_attrs(pool: Pool) -> dict:
    return {
        "kind": pool.kind,
        "channels": pool.channels,
        "ksize": list(pool.ksize),
        "strides": list(pool.strides),
    } | _padding_attrs(pool)


def _squeeze_excite_attrs(payload: SqueezeExcite) -> dict:
    reduce, expand = (";".join(step.text() for step in conv.steps) for conv in payload.products)
    return {
        "channels": payload.channels,
        "squeezed": payload.reduce.channels,
        "reduce_post_ops": reduce,
        "expand_post_ops": expand,
        "dst_layout": payload.writes,
        "scale_src": payload.scales_src,
    }


_ATTRS = {
    Conv: _conv_attrs,
    ConvDepthwise: _pair_attrs,
    Pool: _pool_attrs,
    Eltwise: lambda p: {"layout": p.dst_layout, "channels": p.channels},
    InnerProduct: lambda p: {
        "weights_shape": [p.in_channels, p.channels],
        "algorithm": p.algorithm,
        # A copy is made anew once their variable is assigned to.
        "constant_weights": True,
    },
    GlobalPool: lambda p: {"kind": p.kind, "channels": p.channels, "dst_layout": p.writes},
    SqueezeExcite: _squeeze_excite_attrs,
    Concat: lambda p: {"channels": list(p.parts), "N": len(p.parts)},
    Shuffle: lambda p: {
        "axis": 1,
        "group": p.group,
        "layout": p.dst_layout,
        "channels": p.channels,
        "backward": False,
    },
    Softmax: lambda p: {},
    Reorder: lambda p: {"src_layout": p.reads, "dst_layout": p.writes, "channels": p.channels},
}


def _attr(value) -> attr_value_pb2.AttrValue:
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
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
