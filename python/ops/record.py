"""A record an op: what Python knows of it, said once.

The registration in C++ names the attributes of an op with their types and defaults, and its inputs
with their data types. A record adds what that does not say: in which layout the op reads and writes
each tensor, which post-ops it takes in, what people call it, how a Python argument becomes an
attribute. Its instances are planned ops: nodes that the rewriter decides about, before they become
NodeDefs. It is read from arguments (`run`), from a tf.Operation (`Called`), and writes a NodeDef
(`node`).
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

import tensorflow as tf

from ..graph import (
    FLOAT32,
    UINT8,
    Node,
    Ref,
    attribute_types,
    defaults,
    definition,
    dtype_name,
    make_node,
)
from ..layout import NCHW16C as BLOCKED
from ..native import library
from ..tensorflow_private import run_op
from .arguments import (
    check_scratchpad_mode,
    padding_argument,
    padding_attrs,
    pair,
    quantization,
    sides,
)
from .bundle import Bundle
from .post_ops import PostOps
from .steps import Step, write_chain

Layout = Literal["nhwc", "nChw16c", "nc"]
Quantization = tuple[float, int] | tuple[()]  # of what is not uint8: nothing
RECORDS: dict[str, type["Record"]] = {}  # by the op


@dataclass(frozen=True, kw_only=True)
class Record:
    """A planned op: the node it came from, its logical output channels, the steps it takes in.

    A field or property that is called as an attribute of the op is that attribute.

    Attributes:
        op: as it is registered; default: Blockdnn and the name of the class.
        title: what people call it, and many of them if that is not one with an "s".
        function: what calls it.
        own: the roles of its own inputs, in the order of its op; steps name others.
        other_types: role -> data type, of the inputs that are not float32.
        readers: argument -> how the attribute of that name comes from (name, what users pass).
        takes_steps: whether it fuses a chain of post-ops.
        keeps: whether its result is made of the values of its source alone, none of another sign,
            and so has its quantization.
        src_layout, dst_layout: in which it reads and writes; a record may make fields of them.
        src_part: (first channel, channels in all) where the source is part of a wider tensor.
        dst_part: the same of the result.
            Its node then may have an input "into": the wider tensor, as the op before left it.
        src_dtype, dtype: the data types of the source and of the result.
        src_quantization, dst_quantization: (scale, zero_point) of each that is uint8.
    """

    op: ClassVar[str]
    title: ClassVar[tuple[str, str]]
    function: ClassVar[Callable]
    own: ClassVar[tuple[str, ...]] = ("src",)
    other_types: ClassVar[dict[str, int]] = {}
    takes_steps: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    readers: ClassVar[dict[str, Callable]] = {
        "crops": sides,
        "dilations": pair,
        "dst_part": pair,
        "dst_quantization": quantization,
        "ksize": pair,
        "paddings": sides,
        "pool": pair,
        "scratchpad_mode": check_scratchpad_mode,
        "src_part": pair,
        "src_quantization": quantization,
        "strides": pair,
        "sum_quantization": quantization,
    }
    src_layout: ClassVar[Layout] = BLOCKED
    dst_layout: ClassVar[Layout] = BLOCKED
    origin: str
    channels: int
    steps: tuple[Step, ...] = ()
    src_part: tuple[int, int] | None = None
    dst_part: tuple[int, int] | None = None
    src_dtype: int = FLOAT32
    dtype: int = FLOAT32
    src_quantization: Quantization = ()
    dst_quantization: Quantization = ()

    def __init_subclass__(cls, op: str | None = None, title: str = "", titles: str = "", **kwargs):
        super().__init_subclass__(**kwargs)
        if title:
            cls.op = op or f"Blockdnn{cls.__name__}"
            cls.title = (title, titles or f"{title}s")
            RECORDS[cls.op] = cls

    # What the registration says.

    @classmethod
    def has(cls, attribute: str) -> bool:
        """Whether the op has an attribute of that name."""
        return attribute in attribute_types(cls.op)

    @classmethod
    def dtypes(cls, role: str) -> frozenset[tf.DType]:
        """The data types that the op takes as the input `role` of its registration."""
        (arg,) = (arg for arg in definition(cls.op).input_arg if arg.name == role)
        if arg.type:
            return frozenset({tf.dtypes.as_dtype(arg.type)})
        name = arg.type_attr or arg.type_list_attr
        (attr,) = (attr for attr in definition(cls.op).attr if attr.name == name)
        return frozenset(map(tf.dtypes.as_dtype, attr.allowed_values.list.type))

    # What is planned.

    @property
    def chain(self) -> tuple[Step, ...]:
        """The entries of its post-op chain."""
        return self.steps

    def layout_of(self, role: str) -> Layout:
        """The layout in which the input of that role is read."""
        return self.src_layout

    def dtype_of(self, role: str) -> int:
        """The data type that the input of that role must have."""
        own = {"src": self.src_dtype, "into": self.dtype}
        return self.other_types.get(role, own.get(role, FLOAT32))

    def quantization_of(self, role: str) -> Quantization:
        """What the input of that role must stand for."""
        own = {"src": self.src_quantization, "into": self.dst_quantization}
        return own.get(role, ())

    def channels_of(self, role: str) -> int | None:
        """The channels that the input of that role must have; None where any will do."""
        if role == "src":
            return self.src_part[1] if self.src_part else self.src_channels
        if role == "into":
            return self.dst_part[1]
        read = [s for s in self.steps if isinstance(s.operand, str) and s.operand == role]
        return self.channels if read and all(s.shape != "scalar" for s in read) else None

    @property
    def src_channels(self) -> int:
        """Those that it reads of its source."""
        return self.channels

    def fault(self) -> str | None:
        """Where its own attributes do not agree, in one line."""
        for part, channels in ((self.src_part, 0), (self.dst_part, self.channels)):
            if part and part[0] + channels > part[1]:
                return f"{channels} channels from {part[0]} on are no part of {part[1]}"
        reads = [("reads", self.src_dtype, one) for one in self._src_quantizations()]
        for verb, dtype, stands_for in (*reads, ("writes", self.dtype, self.dst_quantization)):
            if bool(stands_for) != (dtype == UINT8):
                return f"it {verb} {dtype_name(dtype)} with quantization {stands_for}"
        return None

    def _src_quantizations(self) -> tuple[Quantization, ...]:
        return (self.src_quantization,)

    def shape(self, node, shapes):
        """The logical shape of the node that it is the payload of; None where it is not known."""
        return None

    def details(self) -> str:
        """One line for the report: what it is, without values."""
        return "; ".join([self._kind(), *(step.text() for step in self.steps), *self._parts()])

    def _kind(self) -> str:
        return f"{self.channels} channels"

    def _parts(self) -> list[str]:
        sides = {"reads": self.src_part, "writes": self.dst_part}
        return [f"{verb} from channel {p[0]} of {p[1]}" for verb, p in sides.items() if p]

    # The NodeDef.

    @property
    def is_narrow(self) -> bool:
        """Whether it reads or writes another type than float32."""
        return (self.src_dtype, self.dtype) != (FLOAT32, FLOAT32)

    @property
    def makes_numbers(self) -> bool:
        """Whether one that keeps values has others between them in its result."""
        return False

    @property
    def dst_type(self) -> int:
        return self.dtype

    @property
    def into_type(self) -> int:
        return self.dtype

    def attributes(self) -> dict:
        """Those of its op that say what it is."""
        found = {name: getattr(self, name, None) for name in attribute_types(self.op)}
        if found.get("padding") in ("SAME", "VALID"):
            found.pop("explicit_paddings", None)
        return {name: value for name, value in found.items() if value is not None}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref | list[Ref]]]:
        """All attributes and the inputs of its op in their order; adds its arrays to `bundle`."""
        attributes, given = self.attributes(), [inputs[role] for role in self.own]
        if self.takes_steps:
            attributes["post_ops"], args = write_chain(self.chain, inputs, bundle)
            given.append(args)
        return attributes, given

    def node(self, planned: Node, bundle: Bundle, scratchpad_mode: str) -> Node:
        """The node of its op in place of the planned one."""
        inputs = planned.by_role
        attributes, given = self.write(inputs, bundle)
        if self.has("num_into"):
            given.append([inputs["into"]] if "into" in inputs else [])
        if self.has("scratchpad_mode"):
            attributes["scratchpad_mode"] = scratchpad_mode
        made = make_node(
            planned.name, self.op, given, planned.controls, T=self.src_dtype, **attributes
        )
        made.payload = self
        return made

    # The call.

    @classmethod
    def run(cls, *inputs, given: Mapping = MappingProxyType({}), **arguments):
        """What the op makes of `inputs`, those that are lists as lists.

        Args:
            given: `locals()` of the function that users call: all in it that is named like an
                attribute is that, or what users pass in its place (`into` and the keys of
                `readers`). None is the default of the op where users may give it. `name` is that
                of the op.
            **arguments: attributes that go before those.
        """
        attributes, readers = {}, cls.readers
        known, usual = attribute_types(cls.op), defaults(cls.op)
        for key, value in (given | arguments).items():
            if key not in known:
                if key == "into":
                    inputs = (*inputs, [] if value is None else [tf.convert_to_tensor(value)])
            elif value is None and key in _OPTIONAL:
                continue
            elif key == "padding":
                attributes |= padding_attrs(value)
            else:
                value = readers[key](key, value) if key in readers else value
                # TensorFlow asks the node for the type of a result.
                if key == "dst_type" or key not in usual or usual[key] != value:
                    attributes[key] = value
        return run_op(cls.op, inputs, attributes, given.get("name"), _generated)


_OPTIONAL = frozenset(
    (
        *("channels", "dst_part", "dst_quantization", "layout", "pool", "scales", "size"),
        *("src_blocks", "src_part", "src_quantization", "sum_quantization"),
    )
)


@dataclass(frozen=True, kw_only=True)
class InPlace(Record):
    """An op that reads and writes one layout."""

    layout: Layout = BLOCKED

    @property
    def src_layout(self) -> Layout:
        return self.layout

    @property
    def dst_layout(self) -> Layout:
        return self.layout


@functools.cache
def _generated(op: str) -> Callable:
    """The function that TensorFlow generates for the op."""
    words = "".join(f"_{c.lower()}" if c.isupper() else c for c in op)
    return getattr(library(), words[1:])


def function_of(record: type[Record]) -> Callable:
    """Marks the function of bd.ops that calls the op of `record`."""

    def note(function: Callable) -> Callable:
        record.function = function
        return function

    return note


class Called:
    """An op that was called, with its inputs and attributes by name.

    `called.weights` is that input, `called.args` the list of those inputs, and `called.strides`
    that attribute. A name that is both, such as the bias of some op, is the input.

    Args:
        op: a tf.Operation, or what a tape remembers of one.
    """

    def __init__(self, op):
        self.op, self.dst, self._inputs = op, op.outputs[0], {}
        given, at = list(op.inputs), 0
        for arg in definition(op.type).input_arg:
            if arg.number_attr or arg.type_list_attr:
                count = getattr(self, arg.number_attr or arg.type_list_attr)
                count = len(count) if isinstance(count, list | tuple) else count
                self._inputs[arg.name] = given[at : at + count]
                at += count
            else:
                self._inputs[arg.name] = given[at]
                at += 1

    def __getattr__(self, name: str):
        inputs = self.__dict__.get("_inputs", {})
        if name in inputs:
            return inputs[name]
        try:
            value = self.op.get_attr(name)
        except (KeyError, ValueError):  # a tape remembers what was given
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
        """The argument `padding` of its function."""
        return padding_argument(self.padding, getattr(self, "explicit_paddings", ()))

    def attributes(self) -> dict:
        """All attributes, but for data types and the lengths of lists."""
        counts = {arg.number_attr for arg in definition(self.op.type).input_arg}
        kinds = attribute_types(self.op.type)
        return {k: getattr(self, k) for k in kinds if kinds[k] != "type" and k not in counts}

    def arguments(self) -> dict:
        """Those with which its function calls the op again; its inputs are among them."""
        function, found = RECORDS[self.op.type].function, {}
        for name in inspect.signature(function).parameters:
            if name == "padding":
                found[name] = self.padding_argument
            elif name in ("crops", "paddings"):
                found[name] = padding_argument("EXPLICIT", getattr(self, name))
            elif name.endswith("post_ops"):
                found[name] = PostOps.parse(getattr(self, name))
            elif name == "dtype":
                found[name] = self.dst_type
            elif name not in ("dst", "name"):
                found[name] = getattr(self, name)
                if name not in self._inputs and found[name] == []:
                    found[name] = None
        for name in ("into", "weight_scales"):
            if name in found:
                found[name] = found[name][0] if found[name] else None
        return found

    def place(self, role: str) -> int:
        """The index of that input, or of the first of that list of inputs."""
        return list(self._inputs).index(role)  # other lists stand behind

    def wants(self, role: str) -> bool:
        """Whether the gradient of that input is used; a tape may say that it is not."""
        return self.place(role) not in (getattr(self.op, "skip_input_indices", None) or ())
