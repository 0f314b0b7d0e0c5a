"""What a function captures: the Python objects that own it, the weights that it reads.

Passes compute with the values of weights, and what they fold lies in one variable. Where live
weights have changed, the passes run again. If they write the same graph, only that
variable gets other values, and whoever holds the function has the new ones. If a decision depended
on a value, there is another function. Weights that TensorFlow's ops read, and those of dense and
recurrent layers, are the original's own variables then.
"""

import contextlib
import functools
import hashlib
import inspect
import re
import weakref
from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from ..graph import Body, Module, Ref, all_nodes, called, first_argument, restore_library
from ..native import library
from ..tensorflow_private import (
    base,
    def_function,
    graph_view,
    resource_variable_ops,
    variable_behind,
)
from .capture import read_variable
from .weights_file import checked

BUNDLE = "blockdnn_weights"
# Their functions name much, and nothing of the user's.
_LIBRARIES = frozenset({"keras", "numpy", "tensorflow", "tf_keras", __name__.partition(".")[0]})
# What emit.py and regions.py call functions: each run takes other numbers.
_NUMBERED = re.compile(r"(_blockdnn_|^blockdnn_region_)\d+$")


class Bundles:
    """The variables of functions that are in use, so that those with the same weights share them.

    What calibration and searches created and dropped is gone.

    Attributes:
        moment: the id of a variable's handle -> that handle, and the value that functions have
            which are converted later. A value costs no memory before the variable has another.
    """

    def __init__(self):
        # By what weights begin with, as each of thousands would be compared with all others else.
        self._variables: dict[tuple, list[weakref.ref[tf.Variable]]] = {}
        self.moment: dict[int, tuple] = {}

    def hold(self, roots: Iterable) -> None:
        """Makes this the moment: keeps the values of the variables below the roots."""
        with tf.init_scope():
            for handle in (handle for item in _reachable(roots) for handle in _handles(item)):
                if (held := variable_behind(handle)) is not None:
                    with contextlib.suppress(tf.errors.OpError):  # It has no value yet.
                        self.moment[id(handle)] = handle, read_variable(handle, held[0])

    def changed(self, concrete) -> list[tf.Variable]:
        """The variables of a function that have other values than at the moment."""
        others = []
        for variable in concrete.variables if self.moment else ():
            handle = variable.handle
            if (held := self.moment.get(id(handle))) is not None:
                with tf.init_scope():
                    now = read_variable(handle, held[1].dtype)
                if not _is_same(np.asarray(checked(now)), np.asarray(checked(held[1]))):
                    others.append(variable)
        return others

    def missed(self, variable: tf.Variable) -> bool:
        """Whether there is a moment, of which the variable has no value."""
        return bool(self.moment) and id(variable.handle) not in self.moment

    def variable(self, values) -> tf.Variable:
        """A variable that has these values: an array, or a tensor, which is not copied."""
        array = np.asarray(values)
        alike = self._variables.setdefault((array.dtype, array.shape, _beginning(array)), [])
        for variable in (ref() for ref in alike):
            if variable is None:  # It is gone.
                continue
            with tf.init_scope():  # a tf.function may be traced meanwhile
                held = np.asarray(variable.read_value())
            if _is_same(held, array):
                return variable
        with tf.init_scope(), tf.device("CPU:0"):
            values = library().blockdnn_snapshot(values)
            # tf.Variable asks a tf.function that is traced meanwhile, which allows it only once.
            new = resource_variable_ops.ResourceVariable(values, trainable=False, name=BUNDLE)
        alike.append(weakref.ref(new))
        return new


def is_folded(item) -> bool:
    """Whether it is a variable that `Bundles` created."""
    return isinstance(item, tf.Variable) and item.name.startswith(BUNDLE)


def _is_same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays of one shape are equal to the bit; different weights differ at once."""
    return _beginning(array) == _beginning(other) and np.array_equal(_bits(array), _bits(other))


def _beginning(array: np.ndarray) -> bytes:
    """What arrays that are equal begin with; nothing of texts."""
    return b"" if array.dtype.kind == "O" else _bits(array)[:4096].tobytes()


def _bits(values: np.ndarray):
    """What is equal for equal values, NaN and the sign of zero included; copies nothing."""
    is_text = values.dtype.kind == "O"
    return values if is_text else np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def owners(concrete, roots: Iterable) -> list:
    """The variables and tables behind the captures of `concrete`.

    Args:
        roots: functions, modules and models that the owners are looked for in.
    """
    captured = concrete.captured_inputs
    wanted = {id(tensor) for tensor in captured if tensor.dtype == tf.resource}
    holders: dict[int, object] = {}
    for item in _reachable(roots) if wanted else ():
        handles = wanted.intersection(map(id, _handles(item)))
        if handles:
            holders.setdefault(id(item), item)
            wanted -= handles
        if not wanted:
            break
    return list(holders.values())


def _handles(item) -> list:
    """The tensors that stand for an object in a graph: a variable's or a table's handle."""
    try:
        if isinstance(item, base.Trackable) and hasattr(item, "handle"):
            return [item.handle]
    except ValueError:  # of a variable that a strategy distributes: those of the replicas
        return [array.handle for array in getattr(item, "values", None) or item.value.values]
    if hasattr(item, "_resource_handle") or hasattr(type(item), "resource_handle"):
        return [item.resource_handle]
    return []


def _reachable(roots: Iterable):
    """What is tracked below the roots, and below all that their functions close over or name."""
    seen: dict[int, object] = {}
    waiting = list(roots)
    for item in waiting:
        if id(item) in seen:
            continue
        seen[id(item)] = item
        yield from getattr(getattr(item, "graph", None), "variables", ())
        if isinstance(item, base.Trackable) and not isinstance(item, def_function.Function):
            yield from graph_view.ObjectGraphView(item).breadth_first_traversal()[0]
        waiting += _named(item)


def _named(item) -> list:
    """What a function closes over, and the globals and attributes of them that the code names."""
    if (getattr(item, "__module__", None) or "").partition(".")[0] in _LIBRARIES:
        return []
    if isinstance(item, (list, tuple)):
        return list(item)
    if isinstance(item, dict):
        return list(item.values())
    if isinstance(item, functools.partial):
        return [item.func, *item.args, *item.keywords.values()]
    if (inner := getattr(item, "python_function", None)) is not None:
        return [inner]
    named, codes = [item.__self__] if inspect.ismethod(item) else [], []
    item = getattr(item, "__func__", item)
    if not inspect.isfunction(item):
        return []
    for cell in item.__closure__ or ():
        with contextlib.suppress(ValueError):  # of a name that has no value yet
            named.append(cell.cell_contents)
    codes.append(item.__code__)
    for code in codes:
        codes += filter(inspect.iscode, code.co_consts)
        named += (item.__globals__[name] for name in code.co_names if name in item.__globals__)
    attributes = {name for code in codes for name in code.co_names}
    for owner in list(named):  # helper.table, of an object or a module
        if not isinstance(owner, base.Trackable):
            held = getattr(owner, "__dict__", {})
            named += (held[name] for name in attributes if name in held)
    named = [value.__wrapped__ if hasattr(value, "__wrapped__") else value for value in named]
    return [value for value in named if not inspect.ismodule(value)]


def weights_left(module: Module) -> dict[str, tf.Tensor]:
    """name of a handle's placeholder -> the value of a variable that something still reads.

    Without those that the function assigns.
    """
    main = module.main
    read = (name for name in module.captures if name in main.view and _is_read(main, Ref(name)))
    values = ((name, main.constants.value_of_variable(name)) for name in read)
    tensors = main.constants.read_tensors
    return {name: tensors[name] for name, value in values if value is not None}


def _is_read(body: Body, handle: Ref) -> bool:
    """Whether anything does more with a variable's handle than to hand it on."""
    for node, index in body.view.consumers(handle):
        if node.op == "Identity":
            if _is_read(body, node.ref):
                return True
            continue
        inner = [inner_body for (name, _, _), inner_body in body.inner.items() if name == node.name]
        if not inner or len(inner) < len(list(called(node))):
            return True
        argument = index - first_argument(node.op)
        if any(_is_read(inner_body, Ref(inner_body.inputs[argument])) for inner_body in inner):
            return True
    return False


class Live:
    """How a rewritten function follows the weights that are part of it.

    Attributes:
        read: (handle, value) of each variable whose value is.
    """

    def __init__(self, run, remake: Callable):
        """
        Args:
            run: the Rewrite whose result the function is.
            remake: () -> what replaces it.
        """
        self.read, self._run, self._remake = run.read, run, remake

    def renew(self):
        """Follows the weights; returns the Rewritten that takes the function's place, if any."""
        return None if self._assign() else self._remake()

    def _assign(self) -> bool:
        """Gives the function other values, where the passes write the same graph."""
        run = self._run
        if run.function is run.concrete or run.lowering is not None:
            return False
        try:
            other = run.again()
            values = other.write(other.plan())
        except Exception:
            if run.options.strict:
                raise
            return False
        shapes = [tuple(variable.shape) for variable in run.variables]
        are_alike = shapes == [value.shape for value in values.values()]
        if other.structure != run.structure or not are_alike:
            return False
        for variable, value in zip(run.variables, values.values(), strict=True):
            variable.assign(value)
        self.read = other.read
        return True


def structure(module: Module) -> bytes:
    """A hash of all that the module computes but for the values of variables."""
    graph_def, numbers = module.main.view.to_graph_def(), {}
    restore_library(graph_def, module.functions)

    def renumber(function) -> None:
        name = function.name
        function.name = _NUMBERED.sub(
            lambda match: match[1] + str(numbers.setdefault(name, len(numbers))), name
        )

    for node in all_nodes(graph_def):
        for _, attr in sorted(node.attr.items()):  # A map has no order.
            for function in [attr.func] if attr.HasField("func") else attr.list.func:
                renumber(function)
    for function in graph_def.library.function:
        renumber(function.signature)
    return hashlib.sha256(graph_def.SerializeToString(deterministic=True)).digest()
