"""One rewritten function as a callable: flat tensors in, the function's structure out."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from ..keras_private import MASK
from ..native import return_free_memory
from ..tensorflow_private import (
    EagerTensor,
    bind,
    bind_by_names,
    context,
    execute,
    record,
    type_of,
    unconverted,
)
from .eager import are_light, eager_path
from .gradient import run_unwatched, why_none, with_refusals

if TYPE_CHECKING:
    from ..rewriter import Rewritten


@unconverted
class Call:
    """A rewritten function with arguments bound.

    Eager calls skip TensorFlow's Python layers and, where only converted and cheap ops are left,
    its executor. Calls inside another function take their usual way. Gradients are those of the
    function that ran, with the weights that it has.

    Attributes:
        report, concrete, trackables: of the function.
        count: the number of flat inputs where these are the positional arguments; else -1.
    """

    def __init__(
        self,
        rewritten: Rewritten,
        original,
        *,
        weights: Sequence = (),
        **bound,
    ):
        """
        Args:
            rewritten: what `optimize_concrete` returned.
            original: the ConcreteFunction that was rewritten; the type of it binds arguments.
            weights: weak references to the original's trainable variables.
            bound: as `_bind_as` takes it.
        """
        self.concrete, self.trackables = rewritten.concrete, rewritten.trackables
        self.report, self._sizes = rewritten.report, rewritten.sizes
        self._bind_as(original, **bound)
        self._run_eagerly(self.concrete, rewritten.keeps_memory)
        self._weights, self._no_gradient = weights, why_none(self.concrete)

    def _bind_as(
        self,
        original,
        defaults: Mapping = {},
        takes_names: bool = False,
        keywords: frozenset[str] = frozenset(),
    ) -> None:
        """Binds arguments as the original does.

        Args:
            defaults: name of an argument -> default, where that is no Python value.
            keywords: as `bind` takes them.
            takes_names: whether it is called by the names of tensors, too, as
                ConcreteFunctions are.
        """
        self._type, self._defaults, self._keywords = type_of(original), defaults, keywords
        self._by_names = functools.partial(bind_by_names, original) if takes_names else None
        count = len(original.inputs) - len(original.captured_inputs)
        self.count = count if _takes_flat(original, count) else -1

    def _run_eagerly(self, concrete, *choices) -> None:
        """Makes what eager calls need, of which the library runs those that it can."""
        self._captured = concrete.captured_inputs
        inputs = concrete.inputs[: len(concrete.inputs) - len(self._captured)]
        self._specs = [(tensor.dtype, tensor.shape) for tensor in inputs]
        self._run, self._pack = _runner(concrete), _packer(concrete)
        self._direct = eager_path(concrete, self._pack, *choices)
        self._eager = self._first

    def run(self, flat: Sequence):
        """The results for flat inputs: tensors, or what converts to them."""
        results = self._eager(flat)
        return self._dispatch(flat) if results is NotImplemented else results

    def follow(self) -> Call:
        """What a call runs: itself, since the weights are a snapshot."""
        return self

    def bind(self, args: tuple, kwargs: dict) -> Sequence:
        """The flat inputs, as TensorFlow matches and casts them.

        Raises:
            TypeError: not the arguments of this function, in one line.
        """
        if len(args) == self.count and not kwargs:
            return args
        try:
            return bind(self._type, args, kwargs, self._defaults, self._keywords)
        except AssertionError:  # which shows all elements
            text = "an argument has another structure"
        except (TypeError, ValueError) as error:
            text = str(error).partition("\n")[0]
        if self._by_names is not None:
            with contextlib.suppress(TypeError):
                return self._by_names(args, kwargs)
        raise TypeError(f"{text}; the function takes {self._arguments()}")

    def _arguments(self) -> str:
        """What to call it with: "image: float32 (None, 224, 224, 3)"."""
        kinds = ((p.name, p.type_constraint) for p in self._type.parameters.values())
        return ", ".join(
            f"{name}: {kind.dtype.name} {kind.shape}" if isinstance(kind, tf.TensorSpec) else name
            for name, kind in kinds
        )

    def _first(self, flat: Sequence):
        """The eager path until the first call, which packs weights, has gone through."""
        results = self._direct(flat)
        return results if results is NotImplemented else self._after_packing(results)

    def _after_packing(self, results):
        if self._eager == self._first:
            self._eager = self._direct
            return_free_memory()
        return results

    def _dispatch(self, flat: Sequence):
        """A call that TensorFlow has to take part in."""
        tensors = [self._tensor(i, value) for i, value in enumerate(flat)]
        is_plain = context.executing_eagerly() and not record.could_possibly_record()
        if is_plain and not all(map(operator.is_, tensors, flat)):
            results = self._eager(tensors)
            if results is not NotImplemented:
                return results
        for i, (tensor, (dtype, shape)) in enumerate(zip(tensors, self._specs, strict=True)):
            if tensor.dtype != dtype or not shape.is_compatible_with(tensor.shape):
                raise TypeError(
                    f"argument {i} must be {dtype.name} {shape}, got {tensor.dtype.name} "
                    f"{tensor.shape}"
                )
        if not is_plain:
            results = with_refusals(self._run_flat, tensors, self._weights, self._no_gradient)
            return self._pack(results)
        return self._after_packing(self._pack(self._run(tensors + self._captured)))

    def _run_flat(self, inputs: list) -> list:
        """The function where somebody may want the gradient, or inside another function."""
        results = self.concrete._call_flat(inputs, self.concrete.captured_inputs)
        flat = tf.nest.flatten(results, expand_composites=True)
        flat = [result for result in flat if result is not None]
        if not context.executing_eagerly():
            self._state_sizes(inputs, flat)
        return flat

    def _state_sizes(self, inputs: list, results: list) -> None:
        """Says of results in a graph what sizes of arguments tell, as the original's ops would."""
        for result, axis, size in self._sizes.known([tensor.shape for tensor in inputs]):
            shape = results[result].shape
            if shape.rank is not None:
                sizes = shape.as_list()
                sizes[axis] = size
                results[result].set_shape(sizes)

    def _tensor(self, index: int, value):
        if type(value) is EagerTensor:
            return value
        dtype, shape = self._specs[index]
        try:
            return tf.convert_to_tensor(value, dtype)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise TypeError(
                f"argument {index} must be {dtype.name} {shape}, got {type(value).__name__}"
            ) from error


@unconverted
class LoadedCall(Call):
    """A saved result's function, which eager calls run as it is, without the rewriter.

    Whatever else is wanted of it (a gradient, a call inside a function, a report, a copy) comes of
    the Call that the rewriter makes of it then.
    """

    def __init__(self, concrete, ops: set[str], convert: Callable):
        """
        Args:
            ops: that it runs, `ops_of_result`.
            convert: () -> that Call.
        """
        self._bind_as(concrete)
        self._run_eagerly(concrete, True, ops)
        self._convert = convert

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        with tf.init_scope():
            members = vars(run_unwatched(self._convert))
        vars(self).update(members | vars(self))  # Eager calls go on as they were, also in threads.
        return members[name]


def ops_of_result(concrete) -> set[str]:
    """The ops of a saved result's signature, whose only op calls the result; of others none."""
    calls = [op for op in concrete.graph.get_operations() if op.type != "Placeholder"]
    if len(calls) != 1 or not calls[0].type.endswith("PartitionedCall"):
        return set()
    function = context.context().get_function_def(calls[0].get_attr("f").name)
    ops = {node.op for node in function.node_def}
    return ops if any(op.startswith("Blockdnn") for op in ops) and are_light(ops) else set()


@unconverted
class MaskedCall:
    """A Call whose results carry masks for the layers and losses after it."""

    def __init__(self, call, masks):
        """
        Args:
            masks: takes the same inputs, and gives place of the result -> mask.
        """
        self._call, self._masks = call, masks

    def __getattr__(self, name):
        return getattr(self.__dict__["_call"], name)

    @property
    def trackables(self) -> list:
        distinct = {id(t): t for t in self._call.trackables + self._masks.trackables}
        return list(distinct.values())

    def follow(self) -> tuple:
        return self._call.follow(), self._masks.follow()

    def run(self, flat: Sequence):
        results = self._call.run(flat)
        tensors = tf.nest.flatten(results)
        for place, mask in self._masks.run(flat).items():
            setattr(tensors[int(place)], MASK, mask)
        return results


def _takes_flat(concrete, count: int) -> bool:
    """Whether each argument is one tensor, so that positional arguments are the flat inputs.

    Arguments that only have names, as those of a SavedModel's signature, are in the order of their
    names, which is nobody's; TensorFlow takes one of them alone by position.
    """
    args, kwargs = concrete.structured_input_signature or ((), {})
    values = [*args, *kwargs.values()]
    is_flat = len(values) == count and all(type(x) is tf.TensorSpec for x in values)
    return not values or is_flat and (not kwargs or count == 1)


def _runner(concrete) -> Callable:
    """Calls the function's inference body on eager tensors, captures last."""
    name, count = concrete.name, len(concrete.outputs)
    ctx = context.context()
    options = ctx.function_call_options
    attrs = ("executor_type", options.executor_type or "")
    attrs += ("config_proto", options.config_proto_serialized)
    name = name.decode() if isinstance(name, bytes) else name

    def run(inputs):
        return execute.execute(name, count, inputs, attrs, ctx)

    return run


def _packer(concrete) -> Callable:
    """Puts flat outputs into the function's structure."""
    if isinstance(concrete.structured_outputs, (tf.Tensor, tf.TensorSpec)):
        return lambda outputs: outputs[0]
    pack = concrete.function_type.pack_output
    outputs = [object() for _ in concrete.outputs]
    try:
        packed = pack(list(outputs))
    except Exception:  # what looks at the tensors themselves
        packed = None
    if type(packed) is dict and all(any(v is o for o in outputs) for v in packed.values()):
        places = [(key, outputs.index(value)) for key, value in packed.items()]
        return lambda outputs: {key: outputs[place] for key, place in places}
    return lambda outputs: pack(list(outputs))
