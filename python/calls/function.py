"""One rewritten function as a callable."""

import operator
import os
import re
from collections.abc import Sequence

import tensorflow as tf

from ..native import return_free_memory
from ..rewriter import Rewritten
from ..tensorflow_private import EagerTensor, context, execute, record, tensor_shape, unconverted
from .arguments import reader
from .eager_path import eager_path
from .gradient import why_none, with_refusals
from .save import save_functions

# Shapes of an argument that are known to fit; a server may meet any number of them.
_MOST_SHAPES = 64


@unconverted
class OptimizedFunction:
    """A rewritten function: called like the original, same structure and dtypes.

    Eager calls skip TensorFlow's Python layers and, where only converted and cheap ops are
    left, its executor: by position or by keyword, with tensors, arrays, dicts and nests. Calls
    inside another function take its usual way. Gradients are those of the function that ran,
    with the weights that it has.

    Attributes:
        report: what was converted, what was declined and why.
        concrete: the rewritten ConcreteFunction.
        trackables: the variables and tables it captures.

    Args:
        rewritten: what `optimize_concrete` returned.
        weights: weak references to the original's trainable variables.

    Raises:
        TypeError: when it is called with other arguments than the original takes.

    Example:
        >>> @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 3), tf.float32)])
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> fast = bd.optimize(network)
        >>> fast(tf.ones((2, 8, 8, 3))).shape
        TensorShape([2, 8, 8, 4])
        >>> fast.save("network_fast")
    """

    def __init__(self, rewritten: Rewritten, *, weights: Sequence = ()):
        self.concrete, self.trackables = rewritten.concrete, rewritten.trackables
        self.report, self._sizes = rewritten.report, rewritten.sizes
        captured = self.concrete.captured_inputs
        self._captured = captured
        count = len(self.concrete.inputs) - len(captured)
        self._count = count
        self._specs = [(t.dtype, t.shape) for t in self.concrete.inputs[:count]]
        self._seen: list[set] = [set() for _ in self._specs]
        self._read = reader(self.concrete)
        self._is_flat = _takes_flat(self.concrete, count)
        self._pack = _packer(self.concrete)
        self._run = _runner(self.concrete)
        self._eager = eager_path(self.concrete, self._pack, rewritten.keeps_memory)
        self._has_packed = False
        self._weights, self._no_gradient = weights, why_none(self.concrete)

    def __call__(self, *args, **kwargs):
        if kwargs or not self._is_flat or len(args) != self._count:
            args_given, args = args, self._read(args, kwargs)
            if args is None:
                return self._call_concrete(args_given, kwargs)
        results = self._eager(args)
        if results is NotImplemented:
            return self._dispatch(args)
        return results if self._has_packed else self._after_packing(results)

    def follow(self) -> "OptimizedFunction":
        """What a call runs: itself, since its weights are a snapshot."""
        return self

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel whose signature is named "serving_default"."""
        save_functions({"serving_default": self}, folder)

    def _call_concrete(self, args, kwargs):
        """TensorFlow's own call, for arguments that are not plainly those of the function."""
        try:
            return self.concrete(*args, **kwargs)
        except TypeError as error:
            mismatch = re.search("^Binding inputs to tf.function failed due to `(.*?)`", str(error))
            if mismatch is None:
                raise
            raise TypeError(f"{mismatch[1]}; the function takes {self._arguments()}") from None

    def _arguments(self) -> str:
        """What to call it with: "image: float32 (None, 224, 224, 3)"."""
        parameters = self.concrete.function_type.parameters.values()
        kinds = ((parameter.name, parameter.type_constraint) for parameter in parameters)
        return ", ".join(
            f"{name}: {kind.dtype.name} {kind.shape}" if isinstance(kind, tf.TensorSpec) else name
            for name, kind in kinds
        )

    def _dispatch(self, args):
        """A call that TensorFlow has to take part in: flat arguments in, packed results out."""
        tensors = [self._tensor(i, value) for i, value in enumerate(args)]
        if not context.executing_eagerly() or record.could_possibly_record():
            for i, tensor in enumerate(tensors):
                self._check(i, tensor.dtype, tensor.shape)
            results = with_refusals(self._run_flat, tensors, self._weights, self._no_gradient)
            return self._pack(results)
        if not all(map(operator.is_, tensors, args)):
            results = self._eager(tensors)
            if results is not NotImplemented:
                return results
        for i, tensor in enumerate(tensors):
            self._admit(i, tensor)
        results = self._pack(self._run(tensors + self._captured))
        return results if self._has_packed else self._after_packing(results)

    def _after_packing(self, results):
        self._has_packed = True
        return_free_memory()
        return results

    def _run_flat(self, inputs: list) -> list:
        """The function where somebody may want its gradient, or inside another function."""
        results = self.concrete._call_flat(inputs, self._captured)
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
        return tf.convert_to_tensor(value, self._specs[index][0])

    def _admit(self, index: int, value) -> None:
        """`_check` for an eager tensor, once a shape."""
        key = (value.dtype, value._shape_tuple())
        if key not in self._seen[index]:
            self._check(index, value.dtype, tensor_shape.TensorShape(key[1]))
            if len(self._seen[index]) >= _MOST_SHAPES:
                self._seen[index].clear()
            self._seen[index].add(key)

    def _check(self, index: int, given_dtype, given) -> None:
        """Raises TypeError unless the argument has the right dtype and a shape that fits."""
        dtype, shape = self._specs[index]
        if given_dtype != dtype or not shape.is_compatible_with(given):
            raise TypeError(
                f"argument {index} must be {dtype.name} {shape}, got {given_dtype.name} {given}"
            )


def _takes_flat(concrete, count: int) -> bool:
    """Whether each argument is one tensor, so that positional arguments are the flat inputs."""
    args, kwargs = concrete.structured_input_signature
    leaves = [*args, *kwargs.values()]
    return len(leaves) == count and all(isinstance(leaf, tf.TensorSpec) for leaf in leaves)


def _runner(concrete):
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


def _packer(concrete):
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
