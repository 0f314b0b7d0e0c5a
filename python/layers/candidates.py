"""Which of Keras's layers have a blocked form, and what stands in the way."""

import keras

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
    if blocked_class(layer) is None:
        return "no blocked form"
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        return f"data_format {layer.data_format}"
    policy = layer.dtype_policy
    if policy.variable_dtype != "float32":
        return f"dtype {policy.name}: kernels compute in float32"
    if getattr(layer, "lora_enabled", False) or policy.quantization_mode:
        return "LoRA or quantized weights"
    if isinstance(layer, keras.layers.BatchNormalization):
        return _batch_norm(layer)
    if isinstance(layer, (keras.layers.Conv3D, keras.layers.Conv3DTranspose)):
        return _volume(layer)
    if issubclass(blocked_class(layer), NORMALIZATIONS):
        return _layer_norm(layer)
    if isinstance(layer, keras.layers.Concatenate) and layer.axis == 0:
        return "concatenated along the batch"
    chain = getattr(blocked_class(layer), "chain", None)
    if chain is not None and chain(layer) is None:
        return "no post-op for this activation"
    return None


def _rank(layer) -> int:
    """Of the input that it was built for; 0 if it was not."""
    shapes = getattr(layer, "_build_shapes_dict", None) or {}
    return len(shapes.get("input_shape") or ())


def _batch_norm(layer) -> "str | None":
    if layer.renorm or layer.synchronized:
        return "renormalised or synchronized moments"
    if layer.axis not in (-1, _rank(layer) - 1):
        return f"axis {layer.axis} is not the channels"
    return None


def _layer_norm(layer) -> "str | None":
    if not normalization.is_over_channels(layer, _rank(layer)):
        return "a normalisation over other axes, or without a mean"
    return None


def _volume(layer) -> "str | None":
    if not blocked_class(layer).has_kernel(layer):
        return "no kernel for groups or dilations of volumes"
    return None
