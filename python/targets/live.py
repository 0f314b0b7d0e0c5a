"""Functions whose weights are live: they follow those of their original."""

import collections
import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from ..native import FollowFunction, c_call, c_library, library
from ..tensorflow_private import context, func_graph, ops, resource_variable_ops, unconverted
from .call import Call
from .eager import c_eager

if TYPE_CHECKING:
    from ..rewriter import Rewritten

_OTHER_GRAPH = (
    "weights of the original have changed so that its optimised function has another graph: trace "
    "the function that calls it again"
)


@unconverted
class LiveCall:
    """A Call that follows the weights of the original.

    Each run first looks whether one of them has changed; the first one after a change folds them
    anew. A graph that runs it holds an op that does the same when it runs.

    Attributes:
        current: the Call that runs, as long as no weight changes.
        renewals: how often weights have changed.
    """

    def __init__(self, rewritten: "Rewritten", wrap: Callable):
        """
        Args:
            wrap: Rewritten -> Call.
        """
        self._wrap, self._lock = wrap, threading.RLock()
        self._signs: list[_Sign] = []
        self.renewals = 0
        self._adopt(rewritten)
        self.count = self.current.count

    @property
    def report(self):
        return self.current.report

    @property
    def concrete(self):
        """The ConcreteFunction with the weights of now, which calls of itself do not follow."""
        return self.follow().concrete

    @property
    def trackables(self) -> list:
        return self.current.trackables + [sign.variable for sign in self._signs]

    def bind(self, args: tuple, kwargs: dict) -> Sequence:
        return self.current.bind(args, kwargs)

    def run(self, flat: Sequence):
        current = self.follow()
        if context.executing_eagerly():
            return current.run(flat)
        with tf.control_dependencies([self._follow_op(current)]):
            return current.run(flat)

    def follow(self) -> Call:
        """What a call runs; where weights have changed, it has them when this returns."""
        if self._have_changed():
            with self._lock:
                if self._have_changed():  # and no other thread has seen to it meanwhile
                    self._renew()
        return self.current

    def _renew(self) -> None:
        self.renewals += 1
        with tf.init_scope():
            rewritten = self._live.renew()
            if rewritten is None:
                self._have_changed = _watch(self._live.read)
            else:
                self._adopt(rewritten)

    def _adopt(self, rewritten: "Rewritten") -> None:
        self.current, self._live = self._wrap(rewritten), rewritten.live
        self._have_changed = _watch(self._live.read)

    def _follow_op(self, current: Call):
        """The op by which a graph that calls `current` follows weights, too."""
        graph = ops.get_default_graph()
        while isinstance(graph, func_graph.FuncGraph):  # It needs this as long as it may run.
            graph._blockdnn_live = {self, *getattr(graph, "_blockdnn_live", ())}
            graph = graph.outer_graph
        with self._lock:
            signs = [sign for sign in self._signs if sign.current is current]
            if not signs:
                signs = [_Sign(self, current)]
                self._signs += signs
        variable = signs[0].variable
        resource_variable_ops.variable_accessed(variable)  # Exports write what they hear of.
        return library().blockdnn_follow(variable.handle)


def _watch(read: list) -> Callable[[], bool]:
    """() -> whether variables have changed since they were read.

    Args:
        read: (handle, value) of each.
    """
    handles, values = zip(*read, strict=True) if read else ((), ())
    many, address, eager = ctypes.py_object * len(read), ctypes.c_void_p(), ctypes.byref(c_eager())
    arguments = many(*handles), many(*values), len(read)
    c_call("BlockdnnMakeWatch", eager, *arguments, ctypes.byref(address))
    look = c_library().BlockdnnWatchChanged

    def have_changed() -> bool:
        return bool(look(address))

    weakref.finalize(have_changed, c_library().BlockdnnDropWatch, address.value).atexit = False
    return have_changed


class _Sign:
    """A variable by whose address the op BlockdnnFollow knows a function, and which it calls.

    In a SavedModel it is another variable, by which no function is known.
    """

    def __init__(self, live: LiveCall, current: Call):
        _listen()
        with tf.init_scope():
            self.variable = resource_variable_ops.ResourceVariable(
                0.0, trainable=False, name="blockdnn_sign"
            )
        self.live, self.current = weakref.ref(live), current
        address = ctypes.c_void_p()
        handle = self.variable.handle
        c_call("BlockdnnVariableAddress", ctypes.byref(c_eager()), handle, ctypes.byref(address))
        _SIGNS[address.value] = self


_SIGNS: weakref.WeakValueDictionary[int, _Sign] = weakref.WeakValueDictionary()
# Nothing of a thread of TensorFlow's outlasts the call; the op copies the text at once.
_ERRORS: collections.deque = collections.deque(maxlen=256)


@FollowFunction
def _follow(address: int) -> int | None:
    """What the op runs; returns the address of an error, or nothing."""
    sign = _SIGNS.get(address)
    live = sign and sign.live()
    if live is None:
        return None
    try:
        if live.follow() is sign.current:
            return None
        text = _OTHER_GRAPH
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    held = ctypes.create_string_buffer(text.encode())
    _ERRORS.append(held)
    return ctypes.addressof(held)


@functools.cache
def _listen() -> None:
    c_library().BlockdnnOnFollow(_follow)
