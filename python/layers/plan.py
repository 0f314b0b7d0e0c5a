"""Decides which layers of a Keras model become ours, and which of its tensors are blocked."""

from dataclasses import dataclass

import keras

from ..keras_private import built_shapes, nodes_of
from . import (
    activation,
    attention,
    convolution,
    dense,
    merging,
    normalization,
    pooling,
    recurrent,
    reshaping,
)
from .blocked_layer import BlockedLayer

# Convolutions start a blocked region, and reorder by themselves if they read or write plain. All
# others continue one: alone, a reorder would cost more than they gain.
STARTS = (convolution.ConvolutionLayer,)
# These compute plain tensors, too.
NORMALIZATIONS = (normalization.LayerNormalization, normalization.RMSNormalization)
# These compute on plain tensors only.
ATTENTIONS = (attention.MultiHeadAttention, attention.GroupedQueryAttention)
PLAIN = (*ATTENTIONS, dense.Dense, recurrent.Packed, keras.layers.Bidirectional)

# A layer of Keras's becomes one of these as it is, with its variables.
CHANGED = (*ATTENTIONS, *NORMALIZATIONS, dense.Dense)

_MODULES = (activation, attention, convolution, dense, merging, normalization, pooling, reshaping)
# Ours have the names of Keras's.
_BLOCKED = {
    getattr(keras.layers, name): ours
    for module in _MODULES
    for name, ours in vars(module).items()
    if getattr(ours, "__module__", None) == module.__name__ and hasattr(keras.layers, name)
}


def blocked_class(layer) -> "type | None":
    """The class of bd.layers that stands for exactly the class of `layer`, if there is one."""
    return _BLOCKED.get(type(layer)) or recurrent.packed_class(layer)


def reason_to_keep(layer) -> "str | None":
    """Why a layer cannot be blocked, or None if it can."""
    if isinstance(layer, (BlockedLayer, *ATTENTIONS)):
        return "a layer of tf_blockdnn already"
    reason = recurrent.reason_to_keep(layer)
    if reason is not None:
        return reason
    cls = blocked_class(layer)
    if cls is None:
        return "no blocked form"
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        return f"data_format {layer.data_format}"
    policy = layer.dtype_policy
    if policy.variable_dtype != "float32":
        return f"dtype {policy.name}: kernels compute in float32"
    if getattr(layer, "lora_enabled", False) or policy.quantization_mode:
        return "LoRA or quantized weights"
    # Of the input that it was built for; 0 if it was not.
    rank = len(built_shapes(layer).get("input_shape") or ())
    if isinstance(layer, keras.layers.BatchNormalization):
        if getattr(layer, "renorm", False) or layer.synchronized:  # Not every Keras has the former.
            return "renormalised or synchronized moments"
        if layer.axis not in (-1, rank - 1):
            return f"axis {layer.axis} is not the channels"
    is_volume = isinstance(layer, (keras.layers.Conv3D, keras.layers.Conv3DTranspose))
    if is_volume and not cls.has_kernel(layer):
        return "no kernel for groups or dilations of volumes"
    if issubclass(cls, NORMALIZATIONS) and not normalization.is_over_channels(layer, rank):
        return "a normalisation over other axes, or without a mean"
    if isinstance(layer, keras.layers.Concatenate) and layer.axis == 0:
        return "concatenated along the batch"
    chain = getattr(cls, "chain", None)
    if chain is not None and chain(layer) is None:
        return "no post-op for this activation"
    return None


@dataclass
class Decision:
    """What becomes of a layer.

    Attributes:
      cls: of bd.layers, or None: the layer is kept.
      reads: C of each input that is blocked, None for the plain ones.
      writes: whether the result is blocked.
      reason: why it is kept.
    """

    cls: "type | None" = None
    reads: tuple = ()
    writes: bool = False
    reason: str = ""

    @property
    def arguments(self) -> dict:
        """What the layer's configuration says of it, beside Keras's."""
        if not any(self.reads) and not self.writes:
            return {}
        many = len(self.reads) > 1
        channels = (list(self.reads) if many else self.reads[0]) if any(self.reads) else None
        return {"blocked_channels": channels, "blocked_output": self.writes}

    @property
    def text(self) -> str:
        layout = {True: "blocked", False: "plain"}
        return f"{self.cls.__name__}, {layout[any(self.reads)]} to {layout[self.writes]}"


def decide_alone(layer) -> Decision:
    """Of a layer between plain tensors."""
    reason, cls = reason_to_keep(layer), blocked_class(layer)
    if reason is None and not issubclass(cls, (*STARTS, *PLAIN, *NORMALIZATIONS)):
        reason = "gains only between blocked layers"
    return Decision(cls, (None,)) if reason is None else Decision(reason=reason)


def plan(model) -> dict:
    """id of an operation of `model` -> Decision.

    A functional model, or one of its kind: from the first layer that gains to the last, tensors
    stay blocked.
    """
    nodes, calls = nodes_of(model), {}
    for node in nodes:
        calls[id(node.operation)] = calls.get(id(node.operation), 0) + 1
    decisions, blocked = {}, {}  # blocked: id of a KerasTensor -> C
    for node in nodes:
        operation = node.operation
        if isinstance(operation, (keras.layers.InputLayer, keras.Model)):
            continue
        decision = _decide(node, blocked, calls[id(operation)])
        decisions[id(operation)] = decision
        if decision.writes:
            (output,) = node.outputs
            blocked[id(output)] = output.shape[-1]
    _end_regions(model, nodes, decisions)
    return decisions


def _decide(node, blocked: dict, calls: int) -> Decision:
    layer, inputs = node.operation, node.arguments.keras_tensors
    reason = reason_to_keep(layer) if isinstance(layer, keras.Layer) else "no layer"
    if reason:
        return Decision(reason=reason)
    cls = blocked_class(layer)
    plain = Decision(cls, tuple(None for _ in inputs))
    if issubclass(cls, PLAIN):
        return plain
    if issubclass(cls, NORMALIZATIONS) and not any(id(x) in blocked for x in inputs):
        return plain
    if calls > 1:
        return Decision(reason="called more than once")
    ranks = {len(x.shape) for x in (*inputs, *node.outputs)} - {2}
    if len(ranks) != 1 or not ranks <= {3, 4, 5}:
        return Decision(reason=f"inputs of rank {', '.join(map(str, sorted(ranks)))}")
    if any(x.shape[-1] is None for x in inputs):
        return Decision(reason="channels are not known")
    reads = tuple(blocked.get(id(x)) for x in inputs)
    if not issubclass(cls, STARTS) and not any(reads):
        return Decision(reason="no blocked layer before it")
    return Decision(cls, reads, len(node.outputs[0].shape) > 2)


def _end_regions(model, nodes, decisions: dict) -> None:
    """Results that no blocked layer reads, and those of the model, are plain."""
    results = {id(x) for x in model.outputs}
    readers: dict[int, list] = {}
    for node in nodes:
        for x in node.arguments.keras_tensors:
            readers.setdefault(id(x), []).append(decisions.get(id(node.operation)))
    for node in reversed(nodes):
        decision = decisions.get(id(node.operation))
        if decision is None or not decision.writes:
            continue
        (output,) = node.outputs
        wanted = any(r and any(r.reads) for r in readers.get(id(output), []))
        decision.writes = wanted and id(output) not in results
