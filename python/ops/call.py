"""The ops as functions: from a Python call to the registered op, and back.

A function of bd.ops says what the op reads and which attributes differ from the arguments of their
names; `function_of` makes the call, and completes the docstring by what many functions share.
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import tensorflow as tf

from ..graph import attribute_types, defaults, definition
from .arguments import ARGUMENTS, HOW, RAISES, how_words, padding_argument, read_how
from .post_ops import PostOps
from .record import RECORDS, Record


class OpCall(NamedTuple):
    """What a function of bd.ops asks for.

    Attributes:
        inputs: of the op, those that are lists as lists.
        attributes: those that are not the arguments of their names.
        then: what becomes of the result.
    """

    inputs: tuple
    attributes: Mapping = MappingProxyType({})
    then: Callable | None = None


def function_of(record: type[Record], passes: str = "") -> Callable:
    """Makes the function of bd.ops that runs the op of `record`.

    It decorates a function that gives an `OpCall`, or a result that needs no op. Its arguments are
    those of the function of bd.ops, but for `passes` and the name: attributes of the op, by their
    names, that it has nothing to say about. Their types and defaults are those of the registration.
    An argument that is named like an attribute is that; None is the op's default where it is the
    argument's; `into` is the op's last input where that is a list. All that says how the op runs is
    one argument, `how`.
    """

    def decorate(prepare: Callable) -> Callable:
        known, usual = attribute_types(record.op), defaults(record.op)
        declared = inspect.signature(prepare).parameters
        words = how_words(record.op)
        names = [*passes.split(), *["how"] * bool(words), "name"]
        passed = {name: _parameter(name, known, usual) for name in names}
        parameters = dict(declared) | passed
        positional = [p.name for p in declared.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        required = [p.name for p in passed.values() if p.default is p.empty]
        record.optional = frozenset(p.name for p in parameters.values() if p.default is None)
        # What users need not pass, and the op does not default to.
        fixed = {
            name: p.default
            for name, p in declared.items()
            if name in known and p.default not in (p.empty, None, usual.get(name))
        }
        lists = [a for a in definition(record.op).input_arg if a.number_attr or a.type_list_attr]
        takes_into = "into" in [arg.name for arg in lists]

        @functools.wraps(prepare)
        def function(*args, **options):
            for name in required:
                if name not in options:
                    raise TypeError(f"{prepare.__name__}() needs the argument {name!r}")
            call = prepare(*args, **{k: v for k, v in options.items() if k not in passed})
            if not isinstance(call, OpCall):
                return call
            inputs, arguments = call.inputs, dict(zip(positional, args, strict=False)) | options
            if takes_into:
                into = arguments.get("into")
                inputs = (*inputs, [] if into is None else [tf.convert_to_tensor(into)])
            values = {name: value for name, value in arguments.items() if name in known}
            how = read_how(words, arguments.get("how", ""))
            attributes = fixed | values | how | call.attributes
            result = record.run(*inputs, name=arguments.get("name"), **attributes)
            return result if call.then is None else call.then(result)

        record.function = function
        function.__signature__ = inspect.signature(prepare).replace(
            parameters=list(parameters.values())
        )
        if prepare.__doc__:
            function.__doc__ = documented(inspect.getdoc(prepare), parameters, words)
        return function

    return decorate


def _parameter(name: str, known: Mapping, usual: Mapping) -> inspect.Parameter:
    """The keyword argument that is that attribute: None where the default is an empty list, and one
    number where all of the list are the same."""
    default = usual.get(name, inspect.Parameter.empty if name in known else None)
    if name == "how":
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=str)
    if isinstance(default, list):
        default = default[0] if default else None
    kinds = {"string": str, "int": int, "bool": bool, "float": float}
    annotation = kinds.get(known.get(name), inspect.Parameter.empty)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def documented(text: str, parameters: Mapping, words: Mapping = MappingProxyType({})) -> str:
    """A docstring with all arguments in their order, those that it leaves out from `ARGUMENTS`, and
    with the errors that all ops raise unless it names others.

    Args:
        words: those of `how`; it says what the docstring does not say of them.
    """
    head, *sections = re.split(r"\n\n(?=[A-Z]\w+:)", text)
    by_title = {section.partition(":")[0]: section for section in sections}
    entries = re.split(r"\n  (?! )", by_title.pop("Args", "Args:"))[1:]
    described = {name: entry for entry in entries for name in entry.partition(":")[0].split(", ")}
    if words:
        said = " ".join(described.get("how", "how: words in any order.").split())
        shared = [
            f' "{w}": {text}.' for w, text in HOW.items() if w in words and f'"{w}"' not in said
        ]
        described["how"] = _entry(said + "".join(shared))
    lines = dict.fromkeys(
        described.get(name) or _entry(f"{name}: {ARGUMENTS[name]}") for name in parameters
    )
    by_title = {"Args": "\n  ".join(["Args:", *lines])} | by_title
    if "Raises" not in by_title:
        before = list(by_title)[: list(by_title).index("Source")]
        by_title = {k: by_title[k] for k in before} | {"Raises": RAISES} | by_title
    return "\n\n".join([head, *by_title.values()])


def _entry(text: str) -> str:
    return textwrap.fill(text, 94, subsequent_indent="    ", break_on_hyphens=False)


class Called:
    """An op that was called, with inputs and attributes by name.

    `called.weights` is that input, `called.args` the list of those inputs, and `called.strides`
    that attribute. A name that is both, such as the bias of some op, is the input.

    Args:
      op: a tf.Operation, or what a tape remembers of one.
    """

    def __init__(self, op):
        self.op, self.dst, self._inputs = op, op.outputs[0], {}
        tensors, at = list(op.inputs), 0
        for arg in definition(op.type).input_arg:
            if arg.number_attr or arg.type_list_attr:
                count = getattr(self, arg.number_attr or arg.type_list_attr)
                count = len(count) if isinstance(count, list | tuple) else count
                self._inputs[arg.name] = tensors[at : at + count]
                at += count
            else:
                self._inputs[arg.name] = tensors[at]
                at += 1

    def __getattr__(self, name: str):
        inputs = self.__dict__.get("_inputs", {})
        if name in inputs:
            return inputs[name]
        try:
            value = self.op.get_attr(name)
        except (KeyError, ValueError):  # a tape remembers what was passed
            value = defaults(self.op.type).get(name)
            if value is None:
                raise AttributeError(f"{self.op.type} has no {name}") from None
        return value.decode() if isinstance(value, bytes) else value

    @property
    def inputs(self) -> list:
        """All inputs, in their order."""
        return list(self.op.inputs)

    @property
    def padding_argument(self):
        """The argument `padding` of the op's function."""
        return padding_argument(self.padding, getattr(self, "explicit_paddings", ()))

    @property
    def how(self) -> str:
        """The argument `how` of the op's function."""
        words = how_words(self.op.type)
        return " ".join(
            word for word, (name, value) in words.items() if getattr(self, name) == value
        )

    def attributes(self) -> dict:
        """All attributes, but for data types and the lengths of lists."""
        counts = {arg.number_attr for arg in definition(self.op.type).input_arg}
        kinds = attribute_types(self.op.type)
        return {k: getattr(self, k) for k in kinds if kinds[k] != "type" and k not in counts}

    def arguments(self) -> dict:
        """Those with which the op's function calls it again; inputs are among them."""
        function, arguments = RECORDS[self.op.type].function, {}
        for name in inspect.signature(function).parameters:
            if name == "padding":
                arguments[name] = self.padding_argument
            elif name in ("crops", "paddings"):
                arguments[name] = padding_argument("EXPLICIT", getattr(self, name))
            elif name.endswith("post_ops"):
                arguments[name] = PostOps.parse(getattr(self, name))
            elif name == "dtype":
                arguments[name] = self.dst_type
            elif name == "how":
                arguments[name] = self.how
            elif name not in ("dst", "name"):
                arguments[name] = getattr(self, name)
                if name not in self._inputs and arguments[name] == []:
                    arguments[name] = None
        for name in ("into", "volumes", "weight_scales"):
            if name in arguments:
                arguments[name] = arguments[name][0] if arguments[name] else None
        return arguments

    def place(self, role: str) -> int:
        """The index of that input, or of the first of that list of inputs."""
        return list(self._inputs).index(role)  # other lists come after it

    def wants(self, role: str) -> bool:
        """Whether the gradient of that input is used; a tape may say that it is not."""
        return self.place(role) not in (getattr(self.op, "skip_input_indices", None) or ())
