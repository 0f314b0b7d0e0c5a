"""From what a caller gives to the flat inputs of a function.

TensorFlow binds and casts arguments by its tracing types, which costs about as much as a small
network's first layers. Here the structure is compiled once, to one reader a parameter.
"""

import inspect
from collections.abc import Callable

import tensorflow as tf

from ..tensorflow_private import default_types

# The types of numbers, strings and None, and of other Python objects.
_FIXED = (default_types.Literal, default_types.Weakref)

# Appends the tensors of one argument to a list; False where its structure is another one.
_Read = Callable[[object, list], bool]


def reader(concrete) -> Callable[[tuple, dict], list | None]:
    """Finds the flat inputs in the arguments of a ConcreteFunction, whose captures it leaves out.

    Returns:
        (args, kwargs) -> one value an input, in order, or None where the arguments do not have the
        structure of the function's signature: then TensorFlow says what is wrong with them.
        Arguments of a function whose parameters all are single tensors may come by position, even
        those that only have names.
    """
    parameters = _parameters(concrete)
    if parameters is None:
        return lambda args, kwargs: None
    names = [parameter.name for parameter in parameters]
    reads = [_read(parameter.type_constraint) for parameter in parameters]
    if any(read is None for read in reads):
        return lambda args, kwargs: None
    is_flat = all(_is_leaf(parameter.type_constraint) for parameter in parameters)
    by_place = [is_flat or p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters]
    by_name = [p.kind is not inspect.Parameter.POSITIONAL_ONLY for p in parameters]
    fixed = [isinstance(p.type_constraint, _FIXED) for p in parameters]
    places = range(len(parameters))

    def read_all(args: tuple, kwargs: dict) -> list | None:
        count, used, flat = len(args), 0, []
        if count > len(reads):
            return None
        for place in places:
            if place < count:
                if not by_place[place]:
                    return None
                value = args[place]
            elif by_name[place] and names[place] in kwargs:
                value = kwargs[names[place]]
                used += 1
            elif fixed[place]:  # a Python value that the function was traced with
                continue
            else:
                return None
            if not reads[place](value, flat):
                return None
        return flat if used == len(kwargs) else None

    return read_all


def _parameters(concrete) -> list | None:
    """The parameters in the order of the flat inputs: keyword-only ones last and by name."""
    function_type = getattr(concrete, "function_type", None)
    if function_type is None or concrete.structured_input_signature is None:
        return None
    parameters = list(function_type.parameters.values())
    named = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.kind in variadic for parameter in parameters):
        return None
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    if len(function_type.flat_inputs) != count:
        return None  # one tensor given twice is one input
    return [p for p in parameters if p not in named] + sorted(named, key=lambda p: p.name)


def _is_leaf(kind) -> bool:
    return type(kind) is tf.TensorSpec


def _read(kind) -> _Read | None:
    """The reader of one tracing type; None for those that only TensorFlow takes apart."""
    if _is_leaf(kind):
        return _append
    if isinstance(kind, default_types.Literal):
        wanted = kind.value
        return lambda value, flat: type(value) is type(wanted) and value == wanted
    if isinstance(kind, default_types.Weakref):
        held = kind._ref
        return lambda value, flat: value is held()
    if type(kind) is default_types.Dict:
        inner = [(key, _read(kind.mapping[key])) for key in sorted(kind.mapping)]
        return None if any(read is None for _, read in inner) else _read_dict(inner)
    if type(kind) in (default_types.Tuple, default_types.List):
        is_tuple = type(kind) is default_types.Tuple
        parts = kind.components if is_tuple else kind.components_tuple.components
        reads = [_read(part) for part in parts]
        wanted = tuple if is_tuple else list
        return None if None in reads else _read_sequence(wanted, reads)
    return None


def _append(value, flat: list) -> bool:
    flat.append(value)
    return True


def _read_dict(inner: list[tuple[str, _Read]]) -> _Read:
    def read(value, flat: list) -> bool:
        if not isinstance(value, dict) or len(value) != len(inner):
            return False
        return all(key in value and part(value[key], flat) for key, part in inner)

    return read


def _read_sequence(wanted: type, reads: list[_Read]) -> _Read:
    def read(value, flat: list) -> bool:
        if type(value) is not wanted or len(value) != len(reads):
            return False
        return all(part(item, flat) for part, item in zip(reads, value, strict=True))

    return read
