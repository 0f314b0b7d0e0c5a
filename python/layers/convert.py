"""Turns a Keras model into the same model of layers on blocked tensors."""

from dataclasses import dataclass, field

import keras
from keras import tree

from ..keras_private import (
    built_shapes,
    graph_of,
    has_nodes,
    lambda_shape,
    layer_of,
    nodes_of,
    owned_layers,
    tracker,
)
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
from .blocked_layer import BlockedLayer, channels_of, check_algorithm

# Convolutions start a blocked region, and reorder by themselves if they read or write plain. All
# others continue one: alone, a reorder would cost more than they gain.
_STARTS = (convolution.ConvolutionLayer,)
# These compute plain tensors, too.
_NORMALIZATIONS = (normalization.LayerNormalization, normalization.RMSNormalization)
# These compute on plain tensors only.
_ATTENTIONS = (attention.MultiHeadAttention, attention.GroupedQueryAttention)
_PLAIN = (*_ATTENTIONS, dense.Dense, recurrent.Packed, keras.layers.Bidirectional)

# A layer of Keras's becomes one of these as it is, with the same variables.
_CHANGED = (*_ATTENTIONS, *_NORMALIZATIONS, dense.Dense)

_MODULES = (activation, attention, convolution, dense, merging, normalization, pooling, reshaping)
# Ours have the names of Keras's.
_BLOCKED = {
    getattr(keras.layers, name): ours
    for module in _MODULES
    for name, ours in vars(module).items()
    if getattr(ours, "__module__", None) == module.__name__ and hasattr(keras.layers, name)
}


def _blocked_class(layer) -> "type | None":
    """The class of bd.layers that stands for exactly the class of `layer`, if there is one."""
    return _BLOCKED.get(type(layer)) or recurrent.packed_class(layer)


def reason_to_keep(layer) -> "str | None":
    """Why a layer cannot be blocked, or None if it can."""
    if isinstance(layer, (BlockedLayer, *_ATTENTIONS)):
        return "a layer of tf_blockdnn already"
    reason = recurrent.reason_to_keep(layer)
    if reason is not None:
        return reason
    cls = _blocked_class(layer)
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
    if issubclass(cls, _NORMALIZATIONS) and not normalization.is_over_channels(layer, rank):
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


def _decide_alone(layer) -> Decision:
    """Of a layer between plain tensors."""
    reason, cls = reason_to_keep(layer), _blocked_class(layer)
    if reason is None and not issubclass(cls, (*_STARTS, *_PLAIN, *_NORMALIZATIONS)):
        reason = "gains only between blocked layers"
    return Decision(cls, (None,)) if reason is None else Decision(reason=reason)


def _plan(model) -> dict:
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
    cls = _blocked_class(layer)
    plain = Decision(cls, tuple(None for _ in inputs))
    if issubclass(cls, _PLAIN):
        return plain
    if issubclass(cls, _NORMALIZATIONS) and not any(id(x) in blocked for x in inputs):
        return plain
    if calls > 1:
        return Decision(reason="called more than once")
    ranks = {len(x.shape) for x in (*inputs, *node.outputs)} - {2}
    if len(ranks) != 1 or not ranks <= {3, 4, 5}:
        return Decision(reason=f"inputs of rank {', '.join(map(str, sorted(ranks)))}")
    if any(x.shape[-1] is None for x in inputs):
        return Decision(reason="channels are not known")
    reads = tuple(blocked.get(id(x)) for x in inputs)
    if not issubclass(cls, _STARTS) and not any(reads):
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


@dataclass(frozen=True)
class Conversion:
    """What `convert` did to a model, as `model.conversion`.

    Attributes:
      replaced: name of a layer -> what it became: its class and the layouts it reads and writes.
      kept: name of a layer -> why it stayed as it was.
      reorders: names of the layers that were added between blocked and plain ones.
      algorithm: of the convolutions and recurrent layers that were replaced.

    Example:
      >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(name="flat")])
      >>> print(bd.layers.convert(model).conversion.summary())
      0 layers replaced, 1 kept
        flat kept: no blocked form
    """

    replaced: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    reorders: list[str] = field(default_factory=list)
    algorithm: str = "auto"

    def summary(self) -> str:
        """One line for each layer, the replaced ones first."""
        lines = [f"{len(self.replaced)} layers replaced, {len(self.kept)} kept"]
        lines += [f"  {name}: {what}" for name, what in self.replaced.items()]
        lines += [f"  {name} kept: {why}" for name, why in self.kept.items()]
        lines += [f"  {name} added" for name in self.reorders]
        return "\n".join(lines)


def convert(model, *, algorithm: str = "auto"):
    """The same model with every layer replaced that gains from a blocked form.

    Between the first and the last of these layers tensors stay blocked. Weights are copied; names,
    trainable flags, regularisers, constraints and initialisers stay. `fit`, `evaluate`, `predict`,
    `export` and saving work as before; weights can be loaded into the model and back.

    Args:
      model: a keras.Model. A functional or sequential one is cloned as keras.models.clone_model
        does, without an optimizer's state. In any other the layers that it owns are replaced in
        the model itself, each with plain tensors around it. The same holds for functional models
        of a package that has layers of its own, such as KerasHub's transformers: they keep their
        class, methods and variables, and inside of their layers Dense, normalisations and
        attention are replaced, also attention of a class derived from Keras's. Such a model is
        saved as one of its package.
      algorithm: of convolutions and recurrent layers: "auto", or "direct" (docs/algorithms.md).

    Returns:
      The model, with `model.conversion`: what was replaced and what was kept, and why.

    Raises:
      TypeError: it is no keras.Model.
      ValueError: an unknown algorithm.

    Example:
      >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3, name="conv")])
      >>> fast = bd.layers.convert(model)
      >>> fast.conversion.replaced
      {'conv': 'Conv2D, plain to plain'}

    Source: keras.models.clone_model.
    """
    if not isinstance(model, keras.Model):
        raise TypeError(f"convert takes a keras.Model; got {type(model).__name__}")
    conversion = Conversion(algorithm=check_algorithm(algorithm))
    if model.built and _is_of_another_package(model):
        _change_within(model, conversion, prefix="")
        _recompile(model)
    elif _is_graph(model):
        model = _Cloning(model, conversion).run()
    else:
        _replace_owned(model, conversion, prefix="")
        _recompile(model)
    object.__setattr__(model, "conversion", conversion)
    return model


def _is_graph(model) -> bool:
    return isinstance(model, keras.Sequential) or has_nodes(model)


def _is_foreign(layer) -> bool:
    return not (type(layer).__module__.startswith("keras.") or isinstance(layer, keras.Model))


def _is_of_another_package(model) -> bool:
    """Whether a graph is an object of another package's class, and has layers of others, too."""
    of_keras = type(model).__module__.startswith("keras.")
    return _is_graph(model) and not of_keras and any(map(_is_foreign, model.layers))


def _change_within(owner, conversion: Conversion, prefix: str) -> None:
    """Changes the layers within `owner` that compute plain tensors: they stay the same objects."""
    for layer in owner.layers if isinstance(owner, keras.Model) else owned_layers(owner):
        name = prefix + layer.name
        cls, reason = _blocked_class(layer), reason_to_keep(layer)
        if reason is None and layer.built and issubclass(cls, _CHANGED):
            layer.__class__ = cls
            if issubclass(cls, BlockedLayer):
                layer.set_blocked()
            conversion.replaced[name] = Decision(cls, (None,)).text
        elif attention.weigh_by_op(layer):
            conversion.replaced[name] = "its attention, plain to plain"
        elif isinstance(layer, keras.Model) or _is_foreign(layer):
            _change_within(layer, conversion, f"{name}/")
        elif not isinstance(layer, keras.layers.InputLayer):
            conversion.kept[name] = reason or "inside a layer of another package"


def _convert_within(model, name: str, conversion: Conversion):
    """A model inside of another, converted; the account of the other lists the layers of both."""
    new = convert(model, algorithm=conversion.algorithm)
    conversion.replaced.update({f"{name}/{k}": v for k, v in new.conversion.replaced.items()})
    conversion.kept.update({f"{name}/{k}": v for k, v in new.conversion.kept.items()})
    return new


class _Cloning:
    """One functional or sequential model, cloned as decisions about each layer say."""

    def __init__(self, model, conversion: Conversion):
        self.model = model
        self.conversion = conversion
        if model.built:
            self.decisions = _plan(graph_of(model))
        else:  # the input is not known yet: each layer by itself
            self.decisions = {id(layer): _decide_alone(layer) for layer in model.layers}
        self.clones = []  # (layer, clone of it)
        self.reorders = {}  # id of a KerasTensor -> what a reorder makes of it

    def run(self):
        calls = None if isinstance(self.model, keras.Sequential) else self.call
        clone = keras.models.clone_model(self.model, clone_function=self.clone, call_function=calls)
        for old, new in self.clones if self.model.built else ():
            _copy_state(old, new)
            if _is_foreign(new) and new is not old:
                _change_within(new, self.conversion, f"{new.name}/")
        return clone

    def clone(self, layer):
        """The layer that takes the place of `layer`."""
        if isinstance(layer, keras.Model):
            return _convert_within(layer, layer.name, self.conversion)
        decision = self.decisions.get(id(layer), Decision(reason="not part of the graph"))
        _note(self.conversion, layer.name, decision)
        new = _clone(layer) if decision.cls is None else _make(decision, layer, self.conversion)
        self.clones.append((layer, new))
        return new

    def call(self, layer, *args, **kwargs):
        """The call of a clone, after the reorders that the inputs need."""
        wanted = getattr(layer, "_channels_each", None)
        tensors = [x for x in tree.flatten((args, kwargs)) if isinstance(x, keras.KerasTensor)]
        channels = wanted(len(tensors)) if wanted else [None] * len(tensors)
        reads = {id(x): c for x, c in zip(tensors, channels, strict=True)}

        def lay_out(x):
            if not isinstance(x, keras.KerasTensor):
                return x
            return x if channels_of(x) == reads[id(x)] else self.reorder(x)

        args, kwargs = tree.map_structure(lay_out, (args, kwargs))
        return layer(*args, **kwargs)

    def reorder(self, x):
        """x in the other layout; one reorder serves all who read it."""
        if id(x) not in self.reorders:
            source = layer_of(x).name
            blocked = channels_of(x) is not None
            name = f"{source}_{'from' if blocked else 'to'}_blocked"
            reorder = (reshaping.FromBlocked if blocked else reshaping.ToBlocked)(
                name=name, dtype="float32"
            )
            self.conversion.reorders.append(name)
            self.reorders[id(x)] = reorder(x), x
        return self.reorders[id(x)][0]


def _clone(layer):
    """A layer that is kept, cloned."""
    if isinstance(layer, keras.layers.Lambda):  # Keras refuses to rebuild one from a config
        with_function = dict(function=layer.function, arguments=layer.arguments, mask=layer.mask)
        config = {k: v for k, v in layer.get_config().items() if k in ("name", "dtype")}
        return keras.layers.Lambda(output_shape=lambda_shape(layer), **with_function, **config)
    return layer.__class__.from_config(layer.get_config())


def _note(conversion: Conversion, name: str, decision: Decision) -> None:
    """Enters what becomes of the layer of that name."""
    if decision.cls is None:
        conversion.kept[name] = decision.reason
    else:
        conversion.replaced[name] = decision.text


def _copy_state(old, new) -> None:
    if getattr(old, "trainable", True) != getattr(new, "trainable", True):
        new.trainable = old.trainable
    for source, target in zip(
        getattr(old, "variables", ()), getattr(new, "variables", ()), strict=True
    ):
        target.assign(source)


def _replace_owned(owner, conversion: Conversion, prefix: str) -> None:
    """Replaces the layers that `owner` holds in attributes, lists, tuples and dicts."""
    for attribute, value in list(vars(owner).items()):
        if attribute.startswith("_"):
            continue
        new = _replace_in(value, conversion, prefix)
        if new is value:
            continue
        # The order of the layers is that of the weights, for set_weights.
        layers, account = owned_layers(owner), tracker(owner)
        order = list(layers)
        pairs = zip(tree.flatten(value), tree.flatten(new), strict=True)
        successors = {id(a): b for a, b in pairs if a is not b}
        locked, account.locked = account.locked, False
        for layer in order:
            if id(layer) in successors:
                account.untrack(layer)
        setattr(owner, attribute, new)
        layers[:] = [successors.get(id(layer), layer) for layer in order]
        account.locked = locked


def _replace_in(value, conversion: Conversion, prefix: str):
    """`value` with replacements for the layers in it; itself if there is none."""
    if isinstance(value, (list, tuple)):
        new = [_replace_in(v, conversion, prefix) for v in value]
        same = all(a is b for a, b in zip(new, value, strict=True))
        return value if same else type(value)(new) if type(value) is tuple else new
    if isinstance(value, dict):
        new = {k: _replace_in(v, conversion, prefix) for k, v in value.items()}
        return value if all(new[k] is value[k] for k in new) else new
    if not isinstance(value, keras.Layer):
        return value
    name = prefix + value.name
    if isinstance(value, keras.Model) and (_is_graph(value)):
        return _convert_within(value, name, conversion)
    if type(value).__module__.startswith("keras."):
        decision = _decide_alone(value)
        _note(conversion, name, decision)
        return value if decision.cls is None else _rebuild(decision, value, conversion)
    _replace_owned(value, conversion, f"{name}/")
    return value


def _make(decision: Decision, layer, conversion: Conversion):
    """What takes the place of `layer`, without its variables."""
    config = recurrent.packed_config(layer, conversion.algorithm)
    if conversion.algorithm != "auto" and issubclass(
        decision.cls, (convolution.ConvolutionLayer, recurrent.Packed)
    ):
        config["algorithm"] = conversion.algorithm
    return decision.cls.from_config(config | decision.arguments)


def _rebuild(decision: Decision, layer, conversion: Conversion):
    new = _make(decision, layer, conversion)
    if layer.built:
        new.build_from_config(layer.get_build_config())
        _copy_state(layer, new)
    return new


def _recompile(model) -> None:
    """Its optimizer may hold the variables of layers that are gone."""
    if model.compiled:
        model.compile_from_config(model.get_compile_config())
