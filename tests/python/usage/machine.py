"""The machine that draws what a user does with an original, its results and its files."""

import contextlib
import copy
import dataclasses
import functools
import gc
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import fresh
import keras
import numpy as np
import originals
import tensorflow as tf
import tf_keras
import ways
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
)
from hypothesis.stateful import rule as rule_of_machine

import tf_blockdnn as bd

# name -> (options of bd.optimize, largest difference relative to the magnitude of a result).
# Autotune is not among them, since it decides by times.
OPTIONS = {
    "none": ({}, 1e-4),
    "live": ({"weights": "live"}, 1e-4),
    "verify": ({"verify": True}, 1e-4),
    "low memory": ({"options": bd.Options(memory="low")}, 1e-4),
    "direct": ({"options": bd.Options(algorithm="direct")}, 1e-4),
    "library scratchpad": ({"options": bd.Options(scratchpad_mode="library")}, 1e-4),
    "deterministic": ({"options": bd.Options(deterministic=True)}, 1e-4),
    "exclude": ({"exclude": [".*"]}, 1e-4),
    "bf16-weights": ({"precision": "bf16-weights"}, 0.05),
    "bf16": ({"precision": "bf16"}, 0.1),
}

# What is not mended yet: (which uses of results, why). A use is left out if all that is named fits.
EXCLUSIONS = [
    (
        {"kind": "keras recurrent", "option": "exclude", "way": "forward_mode"},
        "TensorFlow has no forward mode of a traced loop, which the excluded function is",
    ),
]

# What an original may raise in a program that is right.
FAULTS_OF_TENSORFLOW = [
    "of a variable without handle data",  # a second gradient of a loop that was loaded
    "type=PartitionedCall>, [",  # a Jacobian of a custom gradient that was loaded
]


def is_excluded(**use):
    return any(named.items() <= use.items() for named, _ in EXCLUSIONS)


@dataclasses.dataclass
class Subject:
    """What is used, and the oracle that has to do the same."""

    is_result: bool
    target: Any  # an original, a result of bd.optimize, or what was loaded
    twin: Any
    entry: Callable  # what is called
    oracle: Callable
    calls: dict[str, Callable]  # name -> function from an image to arguments
    saves: tuple  # the subject's and the oracle's way to be saved in a folder
    weights: list | None = None  # those of the snapshot, or None: the twin's of now
    option: str = "none"
    made: dict = dataclasses.field(default_factory=dict)

    def pair(self, call):
        """The same call of the subject and of the oracle."""
        if call not in self.made:
            arguments = self.calls[call]
            self.made[call] = ways.Call(self.entry, arguments), ways.Call(self.oracle, arguments)
        return self.made[call]


def outcome(run, *arguments):
    """What it gives, or the error that it raises."""
    try:
        return run(*arguments)
    except Exception as error:  # any: it is compared
        return error


def image(batch, seed):
    return np.random.default_rng(seed).standard_normal((batch, 8, 8, 3)).astype(np.float32)


def leaf_type(leaf):
    return tf.Tensor if isinstance(leaf, tf.Tensor) else type(leaf)


def compare(got, wanted, tolerance):
    """Structure, types, shapes, masks, numbers."""
    tf.nest.assert_same_structure(wanted, got)
    for old, new in zip(tf.nest.flatten(wanted), tf.nest.flatten(got), strict=True):
        assert leaf_type(new) is leaf_type(old), f"{leaf_type(new)}, not {leaf_type(old)}"
        if old is None:
            continue
        old_mask, new_mask = (getattr(leaf, "_keras_mask", None) for leaf in (old, new))
        assert (old_mask is None) == (new_mask is None), "one has a mask, the other has none"
        if old_mask is not None:
            np.testing.assert_array_equal(new_mask, old_mask)
        old, new = np.asarray(old), np.asarray(new)
        is_same = (new.dtype, new.shape) == (old.dtype, old.shape)
        assert is_same, f"{new.dtype}{new.shape}, not {old.dtype}{old.shape}"
        if old.dtype.kind != "f":
            np.testing.assert_array_equal(new, old)
        elif tolerance is not None:
            largest = np.max(np.abs(old[np.isfinite(old)]), initial=0.01)
            np.testing.assert_allclose(new, old, rtol=0, atol=tolerance * largest)


def check_error(got, wanted):
    """One line, or what TensorFlow and Keras make of it; never an accident of ours."""
    line = str(got).strip()
    lines_of_others = "Exception encountered when calling", "in user code:", "{{function_node"
    assert isinstance(got, type(wanted)) or (
        line and ("\n" not in line or line.startswith(lines_of_others))
    ), repr(got)


def check_refusal(got, words):
    assert isinstance(got, Exception) and words in str(got), repr(got)
    assert "\n" not in str(got)


def without_samples(leaf):
    if leaf is None:
        return None
    empty, mask = leaf[:0], getattr(leaf, "_keras_mask", None)
    if mask is not None:
        empty._keras_mask = mask[:0]
    return empty


@contextlib.contextmanager
def holding(variables, values):
    """The variables have these values meanwhile; None leaves them as they are."""
    before = [variable.numpy() for variable in variables]
    assign(variables, values or before)
    yield
    assign(variables, before)


def assign(variables, values):
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def values_of(variables):
    return [variable.numpy() for variable in variables]


def chosen(attribute):
    """Draws a name out of a dict of the machine."""
    return st.runner().flatmap(lambda machine: st.sampled_from(list(getattr(machine, attribute))))


def rule(**drawn):
    """A rule of the machine, which notes that it ran, and by what."""

    def noting(function):
        @functools.wraps(function)
        def run(machine, *args, **kwargs):
            choices = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
            machine.steps.add((function.__name__, *choices))
            return function(machine, *args, **kwargs)

        return rule_of_machine(**drawn)(run)

    return noting


class Usage(RuleBasedStateMachine):
    """`state = Usage("counting function")`, and then what a failure printed.

    `steps` gets what each step was, so that who draws programs can see that they differ.
    """

    subjects = Bundle("subjects")

    def __init__(self, kind, steps=None):
        super().__init__()
        self.steps = set() if steps is None else steps
        self.name, self.kind = kind, originals.KINDS[kind]
        self.original, self.twin = self.kind.make(), (self.kind.twin or self.kind.make)()
        self.is_keras = isinstance(self.original.target, (keras.Model, tf_keras.Model))
        of_keras = ways.OF_KERAS if self.is_keras else []
        self.ways = [way.__name__ for way in ways.CALLS + ways.OF_SOMETHING + of_keras]
        self.gradients = [way.__name__ for way in ways.GRADIENTS]
        without = self.kind.without
        if self.original.state:  # calls at the same time have no order
            without = (*without, "in_a_parallel_map")
        for names in (self.ways, self.gradients):
            names[:] = [name for name in names if name not in without]
        self.calls, self.forms = list(self.kind.calls), ways.FORMS
        self.copies = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": by_pickle}
        if self.is_keras:
            self.copies |= {"clone_model": by_clone, "Keras's file": self.by_keras_file}
        self.folders = tempfile.TemporaryDirectory()

    def teardown(self):
        self.folders.cleanup()
        keras.utils.clear_session()

    def folder(self):
        return tempfile.mkdtemp(dir=self.folders.name) + "/model"

    # What there is to use.

    def subject(self, target, twin, is_result, weights=None, option="none"):
        """It and its oracle, called and saved as the kind is."""
        entry, oracle = self.original.entry(target), self.twin.entry(twin)
        save = target.save if is_result else functools.partial(self.original.save, target)
        saves = save, functools.partial(self.twin.save, twin)
        calls = self.kind.calls
        return Subject(is_result, target, twin, entry, oracle, calls, saves, weights, option)

    @initialize(
        target=subjects,
        option=st.sampled_from(list(OPTIONS)),
        misfits=st.booleans(),
        program=st.integers(0, 2**16),
    )
    def start(self, option="none", misfits=False, program=1):
        """With `misfits` the program has odd arguments, and no threads."""
        if not program:  # Hypothesis's first takes the first of all choices at each step.
            reject()
        self.misfits = misfits
        if misfits:
            self.forms = ways.ALL_FORMS
            self.ways = [way for way in self.ways if ways.WAYS[way] not in ways.IN_THREADS]
        original = self.subject(self.original.target, self.twin.target, False)
        return multiple(original, self.optimise(option))

    @rule(target=subjects, option=st.sampled_from(list(OPTIONS)))
    @precondition(lambda self: self.original)
    def optimise(self, option):
        fast = bd.optimize(self.original.target, **OPTIONS[option][0])
        self.check_state()
        follows = option == "live" or self.is_kept(option)
        weights = None if follows else values_of(self.twin.weights)
        return self.subject(fast, self.twin.target, True, weights, option)

    def is_kept(self, option):
        """What has nothing of ours is the original itself; a converted model has our layers."""
        return option == "exclude" and self.name != "keras converted"

    # Ways to use it.

    def is_left_out(self, subject, call, way, form="tensor"):
        if not subject.is_result:
            return False
        use = {"kind": self.name, "option": subject.option, "call": call, "way": way, "form": form}
        return is_excluded(**use)

    @rule(
        subject=subjects,
        call=chosen("calls"),
        way=chosen("ways"),
        form=chosen("forms"),
        batch=st.sampled_from([2, 1, 0, 3]),
        seed=st.integers(0, 3),
    )
    def call(self, subject, call, way="eager", form="tensor", batch=2, seed=0):
        if call not in subject.calls:  # of a signature, which has one, and nothing of Keras
            call = next(iter(subject.calls))
            way = "eager" if ways.WAYS[way] in ways.OF_KERAS else way
        if not subject.is_result or ways.WAYS[way] not in ways.CALLS or form == "lists":
            batch = max(batch, 1)  # An empty list has one axis.
        if self.is_left_out(subject, call, way, form):
            return
        ours, theirs = subject.pair(call)
        run, make = ways.WAYS[way], ways.ALL_FORMS[form]
        # TensorFlow with oneDNN gives empty batches of convolutions a wrong shape. The twin gets an
        # image instead, which its answer loses.
        with holding(self.twin.weights, subject.weights):
            wanted = outcome(run, theirs, make(image(batch or 1, seed)))
        if batch == 0 and not isinstance(wanted, Exception):
            wanted = tf.nest.map_structure(without_samples, wanted)
        self.check(subject, outcome(run, ours, make(image(batch, seed))), wanted, way)

    @rule(
        subject=subjects,
        call=chosen("calls"),
        way=chosen("gradients"),
        form=st.sampled_from(["tensor", "array", "variable"]),
        batch=st.sampled_from([2, 1]),
    )
    def differentiate(self, subject, call, way, form, batch):
        self.call(subject, call, way, form, batch)

    def check(self, subject, got, wanted, way):
        if isinstance(wanted, Exception):
            if any(words in str(wanted) for words in FAULTS_OF_TENSORFLOW):
                return
            if not self.misfits:
                raise wanted  # a fault of the program itself
            assert isinstance(got, Exception), f"the original raises {wanted!r}"
            check_error(got, wanted)
            self.check_state()
            return
        loose = OPTIONS[subject.option][1] > 1e-4 and ways.WAYS[way] in ways.GRADIENTS
        says = ("has no gradient", "Gradient explicitly disabled")
        if loose and isinstance(got, Exception) and any(words in str(got) for words in says):
            return  # as low precision says
        if isinstance(got, Exception):
            raise got
        if subject.is_result and not self.is_kept(subject.option):
            report = subject.target.report
            assert report.count("BlockdnnConv") or report.blocked, report.summary()
        compare(got, wanted, None if loose else OPTIONS[subject.option][1])
        self.check_state()

    def check_state(self):
        if self.original:
            compare(values_of(self.original.state), values_of(self.twin.state), 0)

    @rule(subject=subjects)
    @precondition(lambda self: self.original)
    def differentiate_by_weights(self, subject):
        """Those of the original are none of a result's."""
        call = next(iter(subject.calls))
        if self.is_left_out(subject, call, "by weight"):
            return
        ours, theirs = subject.pair(call)
        x = tf.constant(image(2, 1))
        wanted = outcome(ways.by_weight, theirs, x, self.twin.weights[0])
        got = outcome(ways.by_weight, ours, x, self.original.weights[0])
        if subject.is_result and not self.is_kept(subject.option):
            check_refusal(got, "an optimised function has no gradient by")
        else:
            self.check(subject, got, wanted, "gradient")

    @rule(subject=subjects)
    @precondition(lambda self: self.kind.forks)
    def fork(self, subject):
        """Functions of TensorFlow do not survive a fork; a region does."""
        if subject.is_result and subject.option in ("none", "direct", "low memory"):
            ours, theirs = subject.pair(next(iter(subject.calls)))
            x = tf.constant(image(2, 1))
            with holding(self.twin.weights, subject.weights):
                wanted = tf.nest.map_structure(np.asarray, theirs(x))
            compare(ways.in_a_fork(ours, x), wanted, 1e-4)

    # What becomes of the original.

    @rule(how=st.sampled_from(["assign", "load", "train"]), seed=st.integers(1, 9))
    @precondition(lambda self: self.original)
    def change_weights(self, how, seed):
        for side in (self.original, self.twin):
            if how == "train":
                train(side, self.kind.calls, image(4, seed))
            elif how == "assign":
                originals.fill(side.weights, seed)
            else:
                self.load_weights(side, seed)
        values = values_of(self.original.weights)
        compare(values, values_of(self.twin.weights), 1e-3)
        assign(self.twin.weights, values)

    def load_weights(self, side, seed):
        """From a file that another object of its class wrote, by Keras or TensorFlow."""
        other = self.kind.make() if side is self.original else (self.kind.twin or self.kind.make)()
        originals.fill(other.weights, seed)
        file = f"{self.folder()}.weights.h5"
        if self.is_keras:
            other.target.save_weights(file)
            side.target.load_weights(file)
        else:
            path = tf.train.Checkpoint(weights=list(other.weights)).write(file)
            tf.train.Checkpoint(weights=list(side.weights)).read(path).assert_consumed()

    @rule(subject=consumes(subjects))
    @precondition(lambda self: len(self.bundle("subjects")) > 1)
    def delete(self, subject):
        """With the original goes all that holds it, here."""
        if not subject.is_result and subject.target is getattr(self.original, "target", None):
            self.original = None
        vars(subject).clear()
        gc.collect()

    # Files and copies.

    @rule(
        target=subjects,
        subject=subjects,
        through=st.sampled_from(["save", "optimize_saved_model"]),
        load=st.sampled_from(["bd.load", "tf.saved_model.load", "fresh process"]),
    )
    def save_and_load(self, subject, through, load):
        folder, plain = self.folder(), self.folder()
        save, save_oracle = subject.saves
        with holding(self.twin.weights, subject.weights):
            wanted = outcome(save_oracle, plain)
        got = outcome(save, folder)
        if isinstance(wanted, Exception):
            assert isinstance(got, Exception), f"the original raises {wanted!r}"
            return multiple()
        if isinstance(got, Exception):
            raise got
        if through == "optimize_saved_model":
            bd.optimize_saved_model(folder, folder := folder + "_fast")
        oracle = tf.saved_model.load(plain)
        name = max(oracle.signatures)  # serving_default, not serve
        calls = {"signature": functools.partial(arguments_of, oracle.signatures[name])}
        if load == "fresh process":
            x = image(2, 1)
            wanted = ways.Call(oracle.signatures[name], calls["signature"])(x)
            values = {key: value.numpy() for key, value in wanted.items()}
            got = in_a_fresh_process(folder, name, calls["signature"](x)[1])
            compare(got, values, OPTIONS[subject.option][1])
            return multiple()
        loaded = (bd.load if load == "bd.load" else tf.saved_model.load)(folder)
        # Keras's export adds "serve".
        assert set(loaded.signatures) | {"serve"} == set(oracle.signatures) | {"serve"}
        saves = loaded.save if load == "bd.load" else save_again(loaded), save_again(oracle)
        entries = loaded.signatures[name], oracle.signatures[name]
        endpoints = {} if subject.is_result else endpoints_of(oracle)
        if "signature" in subject.calls:  # It may come from a result, which saves that alone.
            endpoints = {k: f for k, f in endpoints.items() if hasattr(subject.target, k)}
        if endpoints:
            name, function = max(endpoints.items())
            entries = getattr(loaded, name), function
            concrete = getattr(function, "concrete_functions", [function])[0]
            calls = {"signature": functools.partial(arguments_of, concrete)}
        return Subject(False, loaded, oracle, *entries, calls, saves, None, subject.option)

    @rule(target=subjects, subject=subjects, how=chosen("copies"))
    @precondition(lambda self: self.original)
    def copy(self, subject, how):
        if "signature" in subject.calls:
            return multiple()
        with holding(self.twin.weights, subject.weights):
            wanted = outcome(self.copies[how], subject.twin)
        got = outcome(self.copies[how], subject.target)
        if subject.is_result and how not in ("copy", "deepcopy"):
            if not self.is_keras:
                check_refusal(got, "an optimised")
            elif isinstance(wanted, Exception):
                assert isinstance(got, Exception), f"the original raises {wanted!r}"
            elif isinstance(got, Exception):
                raise got
            else:  # made anew of the original and the weights of now
                # A clone of some results is a model that has the result as a layer.
                is_result = hasattr(got, "report")
                written = self.subject(
                    got, subject.twin, is_result, subject.weights, subject.option
                )
                self.call(written, next(iter(written.calls)))
            return multiple()
        if subject.is_result:  # a copy of which shares what does not change
            wanted = subject.twin
        if isinstance(wanted, Exception):
            assert isinstance(got, Exception), f"the original raises {wanted!r}"
            return multiple()
        if isinstance(got, Exception):
            # TensorFlow copies no function once it is traced, as optimising traces it.
            if not subject.is_result and "pickle 'FuncGraph'" in str(got):
                return multiple()
            raise got
        return self.subject(got, wanted, subject.is_result, subject.weights, subject.option)

    def by_keras_file(self, model):
        file = self.folder() + ".keras"
        model.save(file)
        library = tf_keras if isinstance(model, tf_keras.Model) else keras
        names = {"Subclassed": originals.Subclassed}
        return library.models.load_model(file, custom_objects=names, compile=False)


def by_clone(model):
    library = tf_keras if isinstance(model, tf_keras.Model) else keras
    with keras.saving.custom_object_scope({"Subclassed": originals.Subclassed}):
        clone = library.models.clone_model(model)
    if not hasattr(clone, "report"):  # A result has no weights to set.
        clone.set_weights(model.get_weights())
    return clone


def by_pickle(target):
    return pickle.loads(pickle.dumps(target))


def train(side, calls, x):
    """One step by a tape."""
    args, kwargs = next(iter(calls.values()))(x)
    model = side.entry(side.target)
    if isinstance(model, (keras.Model, tf_keras.Model)):
        kwargs = {**kwargs, "training": True}
    with tf.GradientTape() as tape:
        loss = ways.loss(model(*args, **kwargs))
    for variable, gradient in zip(side.weights, tape.gradient(loss, side.weights), strict=True):
        if gradient is not None:
            variable.assign_sub(tf.clip_by_norm(gradient, 1.0) * 0.1)


def arguments_of(concrete, x):
    """An image, gains and words for what the specs of a function look like."""
    words = np.array(["dog", "cow"])
    values = {0: np.float32(2.0), 1: words, 2: originals.gains(x), 4: x}

    def value(spec):
        return values[spec.shape.rank] if isinstance(spec, tf.TensorSpec) else spec

    return tf.nest.map_structure(value, concrete.structured_input_signature)


def endpoints_of(loaded):
    """The functions that are attributes of what was loaded, but for those that Keras 2 needs."""
    kinds = tf.types.experimental.PolymorphicFunction, tf.types.experimental.ConcreteFunction
    found = {name: value for name, value in vars(loaded).items() if isinstance(value, kinds)}
    own = ("_", "call_and_return_")
    return {name: value for name, value in found.items() if not name.startswith(own)}


def save_again(loaded):
    signatures = dict(loaded.signatures)
    return functools.partial(tf.saved_model.save, loaded, signatures=signatures)


_PROGRAM = """
import sys
import numpy as np
import tensorflow as tf
import tf_blockdnn as bd

folder, name, inputs, outputs = sys.argv[1:]
tensors = {key: tf.constant(value) for key, value in np.load(inputs).items()}
slow, fast = (load(folder).signatures[name](**tensors) for load in (tf.saved_model.load, bd.load))
assert all(np.allclose(slow[key], fast[key], atol=1e-4) for key in slow)
np.savez(outputs, **slow)
"""


def in_a_fresh_process(folder, name, tensors):
    inputs, outputs = f"{folder}_inputs.npz", f"{folder}_outputs.npz"
    np.savez(inputs, **tensors)
    fresh.run(_PROGRAM, folder, name, inputs, outputs)
    return dict(np.load(outputs))
