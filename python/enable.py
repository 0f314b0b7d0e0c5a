"""Speeds programs up as they are: calls of traced functions run optimised ones.

Every eager call of a traced function goes by one method, whoever traced it: a tf.function, Keras's
`predict`, a loaded SavedModel's signatures. While enabled, the calls of each are timed there; once
they have taken about what optimising takes, the function is optimised with live weights and both
take turns until it is known which is faster. So what is called rarely or computes little stays as
it is, and no table has to know which that is.
"""

import contextlib
import json
import logging
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import tensorflow as tf

from .errors import UserError, describe
from .options import Options, choose
from .rewriter import Bundles, Report
from .rewriter.summary import counted, faster
from .rewriter.verify import effects
from .targets import Settings, convert
from .tensorflow_private import (
    EagerTensor,
    as_they_are,
    functions_of,
    has_distributed_variables,
    hook_calls,
)

_LOG = logging.getLogger("tf_blockdnn")
_MARK = "_blockdnn_traced"  # The attribute of a ConcreteFunction that holds what is known of it.
_TURNS = 5  # of each on tensors of the same shapes, before the faster one is known
_MOST_TURNS = 64
_FEW_CALLS = 10  # between two changes of weights, for which folding them again does not pay
_MOST_IN_VAIN = 3  # such changes, one after the other
_WAITING, _TRIED, _OPTIMIZED, _LEFT = "waiting", "tried", "optimized", "left"
_NEXT = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")
_COUNTS = ("AssignAddVariableOp", "AssignSubVariableOp")
_GRADIENTS = re.compile(r"(^|/)(gradient_tape|gradients)/")


@dataclass
class TracedFunction:
    """What became of one traced function while `bd.enable` was on.

    Attributes:
        name: that TensorFlow gave it.
        state: "waiting" until its calls have taken long enough, "tried" while both take turns, then
            "optimized" or "left".
        reason: why it was left.
        original_ms, optimized_ms: the least time of a call, on tensors of the same shapes.
        report: of the optimised function.
    """

    name: str
    state: str = _WAITING
    reason: str = ""
    original_ms: float | None = None
    optimized_ms: float | None = None
    report: Report | None = None

    def __str__(self) -> str:
        gain = ""
        if self.original_ms and self.optimized_ms:
            gain = f" ({self.original_ms:.3g} -> {self.optimized_ms:.3g} ms, "
            gain += f"{faster(self.original_ms / self.optimized_ms)})"
        return f"{self.name}: {self.state}{self.reason and ', ' + self.reason}{gain}"


@dataclass(frozen=True)
class ProgramReport:
    """What `bd.report()` returns.

    Attributes:
        functions: a TracedFunction for each, in the order of first calls; the last 1,000.

    Example:
        >>> print(bd.ProgramReport([]).summary())
        0 functions optimized, 0 left, 0 not called for long enough
    """

    functions: list[TracedFunction]

    def summary(self) -> str:
        """A line that counts them, and one for each function that was optimised or left."""
        states = [function.state for function in self.functions]
        short = sum(state in (_WAITING, _TRIED) for state in states)
        counts = f"{counted(states.count(_OPTIMIZED), 'function')} optimized, "
        counts += f"{states.count(_LEFT)} left, {short} not called for long enough"
        decided = [f"  {f}" for f in self.functions if f.state in (_OPTIMIZED, _LEFT)]
        return "\n".join([counts, *decided])

    def to_json(self, indent: int | None = None) -> str:
        """The functions with their reports as JSON text."""
        functions = [
            asdict(replace(function, report=None))
            | {"report": function.report and json.loads(function.report.to_json())}
            for function in self.functions
        ]
        return json.dumps({"functions": functions}, indent=indent)

    def __str__(self) -> str:
        return self.summary()


class _Switch:
    """What `enable` was asked for, and the functions that were called since."""

    def __init__(self, options: Options, seconds: float, min_gain: float):
        self.options, self.seconds, self.min_gain = options, seconds, min_gain
        self.accounts: deque[TracedFunction] = deque(maxlen=1000)
        self.marked: weakref.WeakSet = weakref.WeakSet()

    def __call__(self, original: Callable, function, inputs, captured):
        traced = function.__dict__.get(_MARK)
        if traced is None or traced.switch is not self:
            traced = _Traced(function, self)
            self.accounts.append(traced.account)
            self.marked.add(function)
            function.__dict__[_MARK] = traced
        return traced.run(original, function, inputs, captured)

    def forget(self) -> None:
        """Takes away all that is on the program's own objects."""
        for function in list(self.marked):
            function.__dict__.pop(_MARK, None)


class _Traced:
    """One ConcreteFunction, from the first call on. `run` is what calls do at the moment."""

    def __init__(self, function, switch: _Switch):
        name = re.sub(r"^__\w+?_(.*?)(_\d+)*$", r"\1", tf.compat.as_str(function.name))
        self.switch, self.account = switch, TracedFunction(name)
        self.run = self._wait
        self._captures = function._captured_inputs
        self._lock, self._first, self._spent = threading.Lock(), True, 0.0
        self._call, self._repeats = None, False
        self._times: dict[tuple, tuple[list, list]] = {}
        self._turns = 0
        self._renewals, self._calls, self._in_vain = 0, 0, 0

    def _wait(self, original, function, inputs, captured):
        """Runs the original until calls have taken so long that optimising may pay."""
        if self._spent >= self.switch.seconds and self._lock.acquire(blocking=False):
            self._decide(function)
            return self.run(original, function, inputs, captured)
        start = time.perf_counter()
        results = original(function, inputs, captured)
        if not self._first:  # TensorFlow builds an executor in the first call.
            self._spent += time.perf_counter() - start
        self._first = False
        return results

    def _decide(self, function) -> None:
        """Optimises it, or says why not."""
        try:
            with as_they_are(), tf.init_scope():
                if reason := _why_left(function):
                    return self._leave(reason)
                self._repeats = not effects(function)
                settings = Settings(self.switch.options)
                self._call = convert(function, settings, Bundles(), ())
        except Exception as error:
            return self._leave(f"optimizing it failed: {describe(error)}", logging.WARNING)
        report = self.account.report = self._call.report
        if not report.converted:
            reasons = [reason for _, reason in report.declined[:1]]
            return self._leave(": ".join(["nothing in it is converted", *reasons]))
        if self.switch.min_gain:
            self.account.state, self.run = _TRIED, self._try
        else:
            self._take()

    def _try(self, original, function, inputs, captured):
        """The original and the optimised function in turn, until it is known which is faster."""
        shapes = tuple(tuple(value.shape) for value in inputs)
        times = self._times.setdefault(shapes, ([], []))
        self._turns += 1
        is_ours = len(times[1]) <= len(times[0])
        start = time.perf_counter()
        if is_ours:
            results = self._fast(original, function, inputs, captured)
        else:
            results = original(function, inputs, captured)
        times[is_ours].append(1e3 * (time.perf_counter() - start))
        if self.run == self._try and self.account.state == _TRIED:
            if min(map(len, times)) >= _TURNS:
                self.account.original_ms, self.account.optimized_ms = map(min, times)
                if self.account.original_ms < self.switch.min_gain * self.account.optimized_ms:
                    self._leave("not faster")
                else:
                    self._take()
            elif self._turns >= _MOST_TURNS:  # Its shapes are always others.
                self._take()
        return results

    def _take(self) -> None:
        self.account.state, self.run = _OPTIMIZED, self._fast
        self._times.clear()
        _LOG.info("%s", self.account)

    def _leave(self, reason: str, level: int = logging.INFO) -> None:
        self.account.state, self.account.reason = _LEFT, reason
        self.run, self._call = lambda original, *call: original(*call), None
        self._times.clear()
        _LOG.log(level, "%s", self.account)

    def _fast(self, original, function, inputs, captured):
        """The optimised function; the original where a call is none for it, or fails."""
        call = self._call
        if (
            call is None  # Another thread has just left it.
            or function._captured_inputs is not self._captures
            or tf.distribute.has_strategy()
            or any(type(value) is not EagerTensor for value in inputs)
        ):
            return original(function, inputs, captured)
        try:
            results = call.run(inputs)
        except Exception as error:
            if not self._repeats:
                raise
            failure = describe(error)
        else:
            self._watch_weights(call)
            return results
        # Where it is the program's own error, this raises it, as without us.
        results = original(function, inputs, captured)
        self._leave(f"a call of the optimised function failed: {failure}", logging.WARNING)
        return results

    def _watch_weights(self, call) -> None:
        """Leaves a function whose weights change almost as often as it is called."""
        self._calls += 1
        renewals = getattr(call, "renewals", 0)
        if renewals != self._renewals:
            self._in_vain = self._in_vain + 1 if self._calls <= _FEW_CALLS else 0
            self._renewals, self._calls = renewals, 0
            if self._in_vain >= _MOST_IN_VAIN:
                self._leave("its weights change almost as often as it is called")


def _why_left(function) -> str:
    """Why a function is none to optimise; empty where it may be."""
    if tf.config.get_visible_devices("GPU"):
        return "TensorFlow computes on a GPU here"
    if tf.distribute.has_strategy() or has_distributed_variables(function):
        return "a distribution strategy runs it"
    if any(type(tensor) is not EagerTensor for tensor in function._captured_inputs):
        return "what it captures is looked up at each call"
    library = [held.definition for held in functions_of(function.graph).values()]
    for name, op, dtype in effects(function):
        is_count = op in _COUNTS and dtype is not None and dtype.is_integer
        if op.startswith(("Assign", "ResourceApply", "ResourceSparseApply")) and not is_count:
            return f"it assigns variables: {name} ({op})"
        if op not in _NEXT and not is_count:
            return f"{name} ({op}) acts outside of it or draws"
    nodes = [(op.name, op.type) for op in function.graph.get_operations()]
    nodes += [(node.name, node.op) for definition in library for node in definition.node_def]
    if any(op.startswith("Blockdnn") for _, op in nodes):
        return "it has ops of tf_blockdnn already"
    if any(_GRADIENTS.search(name) for name, _ in nodes):
        return "it computes gradients"
    return ""


_switch: _Switch | None = None
_last: _Switch | None = None


def _install(switch: _Switch | None) -> None:
    global _switch, _last
    _switch, _last = switch, switch or _last
    hook_calls(switch)


def enable(*, seconds: float = 0.3, min_gain: float = 1.1, options: Options | None = None) -> None:
    """Makes the program's traced functions faster as it runs, with no other change to it.

    From now on eager calls of tf.functions, of `predict` of Keras 3 and 2, and of what
    tf.saved_model.load returned run an optimised function where that is faster. Weights are live:
    training and loading go on as ever. Training functions, calls under a tape or a distribution
    strategy, functions with jit_compile=True, that print or draw random numbers stay as they are,
    and so does all on machines with a GPU. Where optimising or an optimised call fails, the
    original runs, with a warning by `logging`; each function that is optimised or left is a line
    of the logger "tf_blockdnn".

    Args:
        seconds: how long all calls of a function must have taken before it is optimised: about what
            that takes. 0 optimises it at its first call.
        min_gain: how many times faster it must be to stay optimised, measured on the program's own
            calls in turn. 0 measures nothing and keeps it.
        options: of the optimised functions; weights are live whatever they say. "int8" has no
            calibration data here: quantize a model by `bd.optimize`.

    Raises:
        ValueError: options that need data.

    Example:
        >>> bd.enable(seconds=0)
        >>> model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(8, 3)])
        >>> model.predict(np.ones((1, 32, 32, 3), "float32"), verbose=0).shape
        (1, 30, 30, 8)
        >>> [function.name for function in bd.report().functions]
        ['one_step_on_data_distributed']
        >>> bd.disable()
    """
    options = choose(options, weights="live")
    if options.precision == "int8" or options.max_loss is not None:
        raise UserError("int8 and max_loss need calibration data: give them to bd.optimize")
    if _switch is not None:
        disable()
    _install(_Switch(options, seconds, min_gain))


def disable() -> None:
    """Undoes `enable`: all calls run TensorFlow's functions again.

    Example:
        >>> bd.disable()
    """
    if _switch is not None:
        _LOG.info("%s", ProgramReport(list(_switch.accounts)).summary().partition("\n")[0])
        _switch.forget()
        _install(None)


@contextlib.contextmanager
def enabled(**choices):
    """`enable` for a block of code, in all threads; takes the same arguments.

    Returns:
        A context manager. What was enabled before is enabled again after it.

    Example:
        >>> @tf.function
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> with bd.enabled(seconds=0, min_gain=0):
        ...     y = network(tf.ones((1, 8, 8, 3)))
        >>> [(function.name, function.state) for function in bd.report().functions]
        [('network', 'optimized')]
    """
    before = _switch
    _install(None)
    enable(**choices)
    try:
        yield
    finally:
        disable()
        _install(before)


def report() -> ProgramReport:
    """What became of the functions that were called since the last `enable`.

    Returns:
        A ProgramReport: `.functions`, `.summary()`, `.to_json()`.

    Example:
        >>> bd.enable()
        >>> bd.report().functions
        []
        >>> bd.disable()
    """
    return ProgramReport(list(_last.accounts) if _last else [])
