"""The callables that `optimize` returns."""

import operator
import os
from collections.abc import Mapping

import tensorflow as tf

from ..rewriter import Report, Rewritten
from ..tensorflow_private import EagerTensor, context, execute, record, tensor_shape
from .eager_path import direct_call
from .one_op import inline_call

# Shapes of an argument that are known to fit; a server may meet any number of them.
_MOST_SHAPES = 64

_DEFAULT = "serving_default"


class OptimizedFunction:
    """A rewritten function: called like the original, same structure and dtypes.

    Calls with positional eager tensors skip TensorFlow's Python layers and, where only
    converted and cheap ops are left, its executor; all others, and calls under a tape or
    inside another function, take its usual way.

    Attributes:
        report: what was converted, what was declined and why.
        concrete: the rewritten ConcreteFunction.
        trackables: the variables and tables it captures.

    Example:
        >>> @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 3), tf.float32)])
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> fast = bd.optimize(network)
        >>> fast(tf.ones((2, 8, 8, 3))).shape
        TensorShape([2, 8, 8, 4])
        >>> fast.save("network_fast")
    """

    def __init__(self, rewritten: Rewritten):
        self.concrete, self.trackables, self.report, keeps_memory = rewritten
        captured = self.concrete.captured_inputs
        self._captured = captured
        count = len(self.concrete.inputs) - len(captured)
        self._specs = [(t.dtype, t.shape) for t in self.concrete.inputs[:count]]
        self._seen: list[set] = [set() for _ in self._specs]
        self._pack = _packer(self.concrete)
        in_line = inline_call(self.concrete, keeps_memory)
        self._run = in_line or _runner(self.concrete)
        self._direct = (
            direct_call(self.concrete, self._pack) if in_line else lambda tensors: NotImplemented
        )
        self._flat = _takes_flat(self.concrete, count)

    def __call__(self, *args, **kwargs):
        if kwargs or not self._flat or len(args) != len(self._specs):
            return self.concrete(*args, **kwargs)
        results = self._direct(args)
        return self._dispatch(args) if results is NotImplemented else results

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel whose signature is named "serving_default"."""
        OptimizedModel({_DEFAULT: self}).save(folder)

    def _dispatch(self, args):
        if not context.executing_eagerly() or record.could_possibly_record():
            return self.concrete(*args)
        tensors = [self._eager(i, value) for i, value in enumerate(args)]
        if not all(map(operator.is_, tensors, args)):
            results = self._direct(tensors)
            if results is not NotImplemented:
                return results
        for i, tensor in enumerate(tensors):
            self._admit(i, tensor)
        return self._pack(self._run(tensors + self._captured))

    def _eager(self, index: int, value):
        if type(value) is EagerTensor:
            return value
        return tf.convert_to_tensor(value, self._specs[index][0])

    def _admit(self, index: int, value) -> None:
        """Raises TypeError unless the argument has the right dtype and a shape that fits."""
        dtype, shape = self._specs[index]
        key = (value.dtype, value._shape_tuple())
        if key not in self._seen[index]:
            given = tensor_shape.TensorShape(value._shape_tuple())
            if value.dtype != dtype or not shape.is_compatible_with(given):
                raise TypeError(
                    f"argument {index} must be {dtype.name} {shape}, got {value.dtype.name} {given}"
                )
            if len(self._seen[index]) >= _MOST_SHAPES:
                self._seen[index].clear()
            self._seen[index].add(key)


class OptimizedModel:
    """Several rewritten functions under their signature names; calls go to the default one.

    Attributes:
        signatures: name -> OptimizedFunction.
        report: the default signature's report; the others are in their functions.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> model.export("two_signatures", verbose=False)
        >>> fast = bd.optimize(tf.saved_model.load("two_signatures"))
        >>> sorted(fast.signatures)
        ['serve', 'serving_default']
    """

    def __init__(self, signatures: Mapping[str, OptimizedFunction]):
        self.signatures = dict(signatures)
        name = _DEFAULT if _DEFAULT in self.signatures else next(iter(self.signatures))
        self._default = self.signatures[name]

    @property
    def report(self) -> Report:
        return self._default.report

    def __call__(self, *args, **kwargs):
        return self._default(*args, **kwargs)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel with the same signatures; load it after `import tf_blockdnn`."""
        module = tf.Module()
        owners = {id(t): t for f in self.signatures.values() for t in f.trackables}
        module.captured = list(owners.values())
        functions = {name: f.concrete for name, f in self.signatures.items()}
        tf.saved_model.save(module, os.fspath(folder), signatures=functions)


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
