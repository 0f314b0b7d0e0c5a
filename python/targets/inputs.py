"""From what a caller gives to the flat inputs of a function, learnt once for each form of a call.

TensorFlow and Keras know how arguments are named, matched and cast, but asking takes as long as
a small network's first layers. So they are asked once a form, with tensors that can be told apart,
and where these arrive is what later calls of that form take from the same places.
"""

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..keras_private import MASK
from ..tensorflow_private import EagerTensor

# Python values that a function is traced with, and that two calls may share.
_VALUES = (bool, int, float, complex, str, bytes, type(None), tf.DType)


_FIRST = 1000  # What the first leaf of numbered ones holds, which every type of weights has.

# Forms of calls of which it is known where their tensors go; a server may meet any number.
_MOST_FORMS = 256


class Cast(NamedTuple):
    """A flat input that is a leaf of another type, or with other axes of one."""

    leaf: int
    dtype: tf.DType
    shape: tuple[int, ...]

    def of(self, value):
        """The input for a tensor or an array of the form's type and shape."""
        wanted = self.dtype.as_numpy_dtype
        if type(value) is np.ndarray and value.dtype.kind == np.dtype(wanted).kind:
            return np.ascontiguousarray(value, wanted).reshape(self.shape)
        return tf.reshape(tf.cast(value, self.dtype), self.shape)


class Plan(NamedTuple):
    """What calls of one form run.

    Attributes:
        call: the Call; None where Keras has to be asked for it.
        places: for each flat input the number of the leaf that it is, a Cast of one, or a tensor;
            None where TensorFlow or Keras binds each time.
        is_flat: whether the flat inputs are the positional arguments.
    """

    call: object = None
    places: list | None = None
    is_flat: bool = False

    def flat(self, args: tuple, kwargs: dict) -> Sequence | None:
        """The flat inputs; None where their places are not known."""
        if self.is_flat:
            return args
        if self.places is None:
            return None
        leaves = _leaves(kwargs, _leaves(args, []))
        return [
            leaves[p] if type(p) is int else p.of(leaves[p.leaf]) if type(p) is Cast else p
            for p in self.places
        ]


def keep(table: dict, form: Hashable, value) -> None:
    """Stores a value for a form of calls; a table that is full begins again."""
    if len(table) >= _MOST_FORMS:
        table.clear()
    table[form] = value


def form_of_call(args: tuple, kwargs: dict) -> Hashable | None:
    """The form of a call; None where only TensorFlow knows whether two such calls are alike."""
    try:
        return (form_of(args), form_of(kwargs)) if kwargs else form_of(args)
    except TypeError:
        return None


def form_of(value) -> Hashable:
    """Equal for arguments that differ in the elements of tensors and arrays alone.

    Raises:
        TypeError: something of which only TensorFlow knows what it is alike, such as a variable.
    """
    if type(value) is EagerTensor:
        if value.__dict__.get(MASK) is not None:
            raise TypeError("a tensor with a mask")
        return (value.dtype, value._shape_tuple())
    if isinstance(value, (tuple, list)):
        return (type(value), *map(form_of, value))
    if isinstance(value, dict):
        return (type(value), *((key, form_of(inner)) for key, inner in value.items()))
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape)
    if isinstance(value, _VALUES):  # The sign of zero counts, and no NaN is equal to itself.
        return (type(value), repr(value) if isinstance(value, (float, complex)) else value)
    raise TypeError(type(value).__name__)


def _leaves(value, leaves: list) -> list:
    """`leaves`, to which the tensors and arrays of a nest that has a form are added in order."""
    if isinstance(value, (tuple, list)):
        for inner in value:
            _leaves(inner, leaves)
    elif isinstance(value, dict):
        for inner in value.values():
            _leaves(inner, leaves)
    elif not isinstance(value, _VALUES):
        leaves.append(value)
    return leaves


def has_no_numbers(args: tuple, kwargs: dict) -> bool:
    """Whether there is an array of objects or of text, which Keras casts, and no tensor of it."""
    arrays = (x for x in _leaves(kwargs, _leaves(args, [])) if isinstance(x, np.ndarray))
    return any(array.dtype.kind in "OSU" for array in arrays)


def probes(args: tuple, kwargs: dict, numbered: bool = False) -> tuple[tuple, dict, list]:
    """The same arguments with a distinct eager tensor for each leaf, and these tensors in order.

    Args:
        numbered: whether each tensor holds the position in that order, and not the values; text,
            which Keras casts to nothing else, has its values.
    """
    probed: list = []

    def probe(value):
        if isinstance(value, (EagerTensor, np.ndarray)):
            seen = any(value is tensor for tensor in probed)
            tensor = tf.identity(value) if seen else tf.convert_to_tensor(value)
            if numbered and tensor.dtype != tf.string:
                tensor = tf.cast(tf.fill(tensor.shape, _FIRST + len(probed)), tensor.dtype)
            probed.append(tensor)
            return probed[-1]
        return value

    return mapped(probe, args), mapped(probe, kwargs), probed


def mapped(function: Callable, value):
    """The nest with what `function` makes of each leaf, in the order in which they lie there.

    Dictionaries are copied: classes derived from them, as `defaultdict`, have constructors of their
    own.
    """
    if isinstance(value, dict):
        copied = copy.copy(value)
        for key, inner in value.items():
            copied[key] = mapped(function, inner)
        return copied
    if isinstance(value, (tuple, list)):
        return like(value, [mapped(function, each) for each in value])
    if isinstance(value, Sequence):  # To a tf.function a range is one value, to tf.nest a list.
        return function(value)
    return tf.nest.map_structure(function, value)


def like(value: tuple | list, inner: list) -> tuple | list:
    """A sequence of the class of `value`, which may be a named tuple's, with these in it."""
    return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)


def places(taken: Sequence, probed: Sequence) -> list | None:
    """For each tensor that a function takes the number of the leaf that it is, or itself.

    None where a leaf was cast, or the rank was changed, on the way, or where an input is an integer
    of Python's that is still to be converted. Inputs that are no leaves come from Python values,
    which belong to the form.
    """
    number = {id(tensor): i for i, tensor in enumerate(probed)}
    if not number.keys() <= set(map(id, taken)) or any(type(each) is int for each in taken):
        return None
    return [number.get(id(tensor), tensor) for tensor in taken]


def casts(taken: Sequence, numbered: Sequence, probed: Sequence) -> list | None:
    """`places` where leaves were cast, or gained or lost axes of size 1; None where more happened.

    Args:
        taken, probed: as of `places`.
        numbered: what the function takes of leaves that hold their numbers.
    """
    inputs: list = []
    uncast = {id(tensor): i for i, tensor in enumerate(probed)}
    for tensor, number in zip(taken, numbered, strict=True):
        if id(tensor) in uncast:
            inputs.append(uncast[id(tensor)])
            continue
        marks = np.unique(number.numpy())
        leaf = int(marks[0]) - _FIRST if marks.size == 1 and marks.dtype.kind in "if" else -1
        if not 0 <= leaf < len(probed):
            return None
        place = Cast(leaf, tensor.dtype, tuple(tensor.shape))
        kept = [[size for size in each.shape if size != 1] for each in (tensor, probed[leaf])]
        if kept[0] != kept[1]:
            return None
        if np.asarray(place.of(probed[leaf])).tobytes() != tensor.numpy().tobytes():
            return None
        is_same = tensor.dtype == probed[leaf].dtype and tensor.shape == probed[leaf].shape
        inputs.append(leaf if is_same else place)
    used = {place if type(place) is int else place.leaf for place in inputs}
    return inputs if used == set(range(len(probed))) else None
