"""Loaded SavedModels as targets: their signatures, and the functions that are their attributes."""

import functools
from collections.abc import Callable, Mapping

import tensorflow as tf

from .. import rewriter
from ..options import Options
from ..rewriter.weights_file import loaded_weights
from ..tensorflow_private import (
    asset,
    base,
    binding_of,
    call_signature,
    concrete_function,
    def_function,
    defaults_of,
    graph_view,
    read_only_inputs,
    resource,
    variable_behind,
)
from .call import Call, LoadedCall, ops_of_result
from .result import OptimizedFunction, OptimizedModel
from .target import (
    Target,
    close_sizes,
    describe,
    has_open_sizes,
    of_any_batch,
    time_trace,
)

# Node attributes that hold names for people.
_SHOWN_ONLY = ("_user_specified_name", "config_proto")
# What Keras 2 writes for a loader of Keras's.
_OF_KERAS = ("call_and_return_all_conditional_losses", "call_and_return_conditional_losses")

_WRITES_TABLE = ("LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableImportV2")


class SavedModel(Target):
    """What tf.saved_model.load returned, with weights that all functions share."""

    KIND = "a loaded SavedModel"

    def __init__(self, target, settings, read: Callable | None = None):
        """
        Args:
            read: () -> the same again, of one that came from a folder: as long as nobody wants an
                endpoint, nothing holds the weights.
        """
        super().__init__(target, settings)
        self._read = read
        # Nobody else can assign the variables, so that they may be read later.
        is_asked = settings.calibration is not None or settings.example is not None
        self._is_as_saved = read is not None and not is_asked and settings.options == Options()

    @classmethod
    def takes(cls, target) -> bool:
        return bool(getattr(target, "signatures", None)) and not isinstance(target, OptimizedModel)

    def result(self) -> OptimizedModel:
        loaded, wanted, done = self.target, self.settings.signatures, {}
        signatures = {}
        for name, concrete in loaded.signatures.items():
            if wanted is not None and name not in wanted:
                signatures[name] = OptimizedFunction(self._kept(concrete, "asked to stay"))
                continue
            key = _fingerprint(concrete)
            if key not in done:
                self.settings.on_step(f"optimising signature {name}")
                done[key] = self._signature(concrete)
            signatures[name] = done[key]
        endpoints, functions = self.endpoints, {name for name, *_ in _endpoints_of(loaded)}
        names = functions | set(_attributes_of(loaded))
        if names and self._read is not None and not _shares_state(loaded):
            endpoints = functools.partial(_read_endpoints, self._read, self.settings, self.bundles)
        elif functions or self.settings.example is not None:
            self.hold(loaded)
        return OptimizedModel(
            signatures, names, endpoints if names else dict, _resources_of(loaded)
        )

    def endpoints(self) -> dict:
        """What the attributes are: functions are converted when they are wanted."""
        loaded, endpoints = self.target, _endpoints_of(self.target)
        assigned = set().union(*map(_list_assigned, _concretes_of(loaded)))
        functions = {name: self._endpoint(*endpoint, assigned) for name, *endpoint in endpoints}
        return _attributes_of(loaded) | functions

    def _signature(self, concrete) -> OptimizedFunction:
        """One signature; for the sizes of the example at once, for others at their first call."""
        example = self.settings.example
        if self._is_as_saved and (ops := ops_of_result(concrete)):
            return OptimizedFunction(
                LoadedCall(concrete, ops, functools.partial(self.convert, concrete))
            )
        known = None if example is None else _close(concrete, example)
        if known is None:
            return OptimizedFunction(self.convert(concrete))
        main, others = self.convert(known, takes_example=True), []

        def make(args, kwargs):
            shapes = [tuple(spec.shape) for spec in tf.nest.flatten((args, kwargs))]
            wanted = [spec.shape for spec in tf.nest.flatten(known.structured_input_signature)]
            if all(map(tf.TensorShape.is_subtype_of, map(tf.TensorShape, shapes), wanted)):
                return main
            if not others:
                others.append(self.convert(concrete, example=None))
            return others[0]

        function = OptimizedFunction(make)
        function.remark = (
            f"converted for the sizes of example, {sizes(known)}, and for others at the first call "
            "of one; saved with those of example"
        )
        function.main = function.add(*known.structured_input_signature)
        return function

    def _endpoint(self, function, concretes, assigned: set[int]) -> OptimizedFunction:
        """A function that is an attribute; each signature is rewritten when it is wanted.

        What reads a variable that any function assigns goes on to read that variable.
        """
        calls: dict = {}
        asked: dict = {}  # TensorFlow traces a function again for each place where it is saved.

        is_concrete = function is concretes[0]
        takes_all = is_concrete or function.input_signature is not None  # which calls are bound to

        def make(args, kwargs):
            if takes_all:
                args, kwargs = (), {}
            args, kwargs = tf.nest.map_structure(_without_name, (args, kwargs))
            form = repr((args, kwargs))
            if form in asked:
                return asked[form]
            concrete, seconds, bound = function, 0.0, {"takes_names": True}
            if not is_concrete:
                bound = binding_of(function)
                try:
                    concrete, seconds = time_trace(function.get_concrete_function, *args, **kwargs)
                except ValueError as error:  # which lists all signatures
                    raise _no_such_signature(concretes, args, kwargs) from error
            if concrete not in calls:
                is_kept = assigned.intersection(map(id, concrete.captured_inputs))
                reason = "functions of this SavedModel assign variables that it reads"
                calls[concrete] = (
                    self._kept(concrete, reason, bound)
                    if is_kept
                    else self.convert(concrete, seconds, bound=bound)
                )
            asked[form] = calls[concrete]
            return asked[form]

        known = [concrete.structured_input_signature for concrete in concretes]
        if is_concrete:
            return OptimizedFunction(make, known)
        signature = call_signature(function.function_type, defaults_of(function))
        return OptimizedFunction(make, known, signature)

    def _kept(self, concrete, reason: str, bound: Mapping = {}) -> Call:
        """The function as it is."""
        report = rewriter.Report()
        report.decline(tf.compat.as_str(concrete.name), reason)
        held = [*concrete.variables, *rewriter.owners(concrete, [concrete, self.target])]
        return Call(rewriter.Rewritten(concrete, held, report), concrete, **bound)


def _read_endpoints(read: Callable, settings, bundles) -> dict[str, OptimizedFunction]:
    again = SavedModel(read(), settings)
    again.bundles = bundles
    return again.endpoints()


def _endpoints_of(loaded) -> list[tuple]:
    """(name, function, ConcreteFunctions of it) of the attributes that can be called."""
    endpoints = []
    for name, value in vars(loaded).items():
        if name in _OF_KERAS or (name.startswith("_") and name != "__call__"):
            continue
        if isinstance(value, def_function.Function):
            concretes = getattr(value, "concrete_functions", None)
            if concretes:
                endpoints.append((name, value, list(concretes)))
        elif isinstance(value, concrete_function.ConcreteFunction):
            endpoints.append((name, value, [value]))
    return endpoints


def _attributes_of(loaded) -> dict:
    """The variables, tables, assets and parts, and lists of them, that are attributes."""
    functions = (def_function.Function, concrete_function.ConcreteFunction)
    return {
        name: value
        for name, value in vars(loaded).items()
        if isinstance(value, base.Trackable)
        and not (name.startswith("_") or name == "signatures" or isinstance(value, functions))
    }


def _concretes_of(loaded) -> list:
    return [*loaded.signatures.values(), *(c for *_, all in _endpoints_of(loaded) for c in all)]


def _shares_state(loaded) -> bool:
    """Whether a signature assigns a variable, or reads a table that a function may write.

    Snapshots have no part in these: all functions have to be of one object.
    """
    if any(map(_list_assigned, loaded.signatures.values())):
        return True
    graphs = (c.graph.as_graph_def() for c in _concretes_of(loaded) if _reads_table(c))
    bodies = (body for g in graphs for body in (g.node, *(f.node_def for f in g.library.function)))
    writes = any(node.op in _WRITES_TABLE for body in bodies for node in body)
    return writes and any(map(_reads_table, loaded.signatures.values()))


def _reads_table(concrete) -> bool:
    captured = concrete.captured_inputs
    return any(h.dtype == tf.resource and variable_behind(h) is None for h in captured)


def _no_such_signature(concretes: list, args: tuple, kwargs: dict) -> ValueError:
    """An error in one line, where TensorFlow's has one for each argument of each signature."""
    known = dict.fromkeys(f"({describe(*c.structured_input_signature)})" for c in concretes)
    listed = " or ".join([*known][:4])
    return ValueError(f"it was saved for {listed}, not for ({describe(args, kwargs)})")


def _without_name(spec):
    """Loaded functions have forgotten the names of their tensors, and refuse others."""
    return tf.TensorSpec(spec.shape, spec.dtype) if isinstance(spec, tf.TensorSpec) else spec


def _list_assigned(concrete) -> set[int]:
    """The addresses of the captured handles whose variables a function may assign."""
    read, inputs = set(read_only_inputs(concrete.graph)), concrete.inputs
    captured = concrete.captured_inputs
    places = range(len(inputs) - len(captured), len(inputs))
    return {
        id(handle)
        for place, handle in zip(places, captured, strict=True)
        if place not in read and variable_behind(handle) is not None
    }


def _resources_of(loaded) -> list:
    """Tables, assets and initialisers, and the variables that these set; no weights of ours."""
    things, held = graph_view.ObjectGraphView(loaded).breadth_first_traversal()[0], []
    weights = {id(weight) for thing in things for weight in loaded_weights(thing)}
    for thing in things:
        if id(thing) in weights:
            continue
        initialise = getattr(thing, "_init_fn", None)  # Of a model that came as a graph alone.
        ops = initialise and {op.type for op in initialise.graph.get_operations()}
        if initialise and ops <= {"Const", "NoOp", "Placeholder"}:
            continue  # It only names things, though it captures every variable.
        if isinstance(thing, (resource.CapturableResource, asset.Asset)):
            held += [thing, *getattr(initialise, "variables", ())]
    return held


def _close(concrete, example):
    """The signature with the sizes of `example` where it leaves some open; else None.

    Batches that were open stay open.

    Args:
        concrete: a signature of a loaded SavedModel: named arguments, all of them tensors.
        example: a tensor or array for each argument: a mapping of names, a list, or one alone.

    Raises:
        ValueError: an example that the signature does not take.
    """
    specs = concrete.structured_input_signature[1]
    fitting = close_sizes(specs, example)
    if not has_open_sizes(specs):
        return None
    known = {
        name: of_any_batch(spec) if specs[name].shape[:1] == [None] else spec
        for name, spec in fitting.items()
    }
    return tf.function(lambda **named: concrete(**named), autograph=False).get_concrete_function(
        **known
    )


def sizes(concrete) -> str:
    """The shapes of a signature's arguments: "image (None, 64, 64, 3)"."""
    specs = concrete.structured_input_signature[1]
    return ", ".join(f"{name} {spec.shape}" for name, spec in sorted(specs.items()))


def _fingerprint(function) -> tuple:
    """Equal for signatures that are one graph under two names, as Keras exports them.

    Node names carry running numbers, so nodes are compared by their position.
    """
    graph = function.graph.as_graph_def()
    position = {node.name: str(index) for index, node in enumerate(graph.node)}

    def edge(name: str) -> str:
        head, colon, port = name.removeprefix("^").partition(":")
        return ("^" if name.startswith("^") else "") + position[head] + colon + port

    for node in graph.node:
        node.name, node.input[:] = position[node.name], map(edge, node.input)
        node.ClearField("experimental_debug_info")
        for key in _SHOWN_ONLY:
            node.attr.pop(key, None)
    return (
        graph.SerializeToString(deterministic=True),
        (*sorted(function.structured_outputs), *(edge(t.name) for t in function.outputs)),
        tuple(map(id, function.captured_inputs)),
        str(function.structured_input_signature),
    )
