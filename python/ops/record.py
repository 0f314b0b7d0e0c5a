"""A record an op: what Python knows of it, said once.

The registration in C++ names the attributes of an op with their types and defaults, and its inputs
with their data types. A record adds what that does not say: in which layout the op reads and writes
each tensor, which post-ops it takes in, what people call it, how a Python argument becomes an
attribute. Its instances are planned ops: nodes that the rewriter decides about, before they become
NodeDefs (`node`). Called by users it runs (`run`).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
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
from ..layout import NHWC
from ..native import library
from ..tensorflow_private import run_op
from .arguments import READERS, padding_attrs
from .bundle import Bundle
from .steps import Step, write_chain

Layout = Literal["nhwc", "nChw16c", "nc"]
Quantization = tuple[float, int] | tuple[()]  # of what is not uint8: nothing
RECORDS: dict[str, type["Record"]] = {}  # by the op


@dataclass(frozen=True, kw_only=True)
class Record:
    """A planned op: the node it came from, logical output channels, the steps it takes in.

    Each subclass is a dataclass, too, frozen and of keywords. A field or property that is called as
    an attribute of the op is that attribute.

    Attributes:
        op: as it is registered; default: Blockdnn and the name of the class.
        title: what people call it, and many of them if that is not one with an "s".
        function: of bd.ops, which calls it.
        optional: the arguments of that function that may be None.
        operands: the roles of the inputs, in the order of the op; steps name others.
        other_types: role -> data type, of plain inputs beside the source, where it is not float32
            or the source may be blocked.
        readers: argument -> how the attribute of that name comes from (name, what users pass),
            where that differs from `READERS`.
        takes_steps: whether it fuses a chain of post-ops.
        keeps: whether the result consists of values of the source alone, none of another sign,
            and so has the same quantization.
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
    optional: ClassVar[frozenset[str]] = frozenset()
    operands: ClassVar[tuple[str, ...]] = ("src",)
    other_types: ClassVar[dict[str, int]] = {}
    takes_steps: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    readers: ClassVar[dict[str, Callable]] = {}
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
        dataclass(frozen=True, kw_only=True)(cls)
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
        """The data types that the op takes as the input that the registration calls `role`."""
        (arg,) = (arg for arg in definition(cls.op).input_arg if arg.name == role)
        if arg.type:
            return frozenset({tf.dtypes.as_dtype(arg.type)})
        name = arg.type_attr or arg.type_list_attr
        (attr,) = (attr for attr in definition(cls.op).attr if attr.name == name)
        return frozenset(map(tf.dtypes.as_dtype, attr.allowed_values.list.type))

    # What is planned.

    @property
    def chain(self) -> tuple[Step, ...]:
        """The entries of the post-op chain."""
        return self.steps

    def layout_of(self, role: str) -> Layout:
        """The layout in which the input of that role is read."""
        return NHWC if role in self.other_types else self.src_layout

    def dtype_of(self, role: str) -> int:
        """The data type that the input of that role must have."""
        types = {"src": self.src_dtype, "into": self.dtype} | self.other_types
        return types.get(role, FLOAT32)

    def quantization_of(self, role: str) -> Quantization:
        """What the input of that role must stand for."""
        by_role = {"src": self.src_quantization, "into": self.dst_quantization}
        return by_role.get(role, ())

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
        """Those that it reads of the source."""
        return self.channels

    def fault(self) -> str | None:
        """Where attributes do not agree with each other, in one line."""
        for part, channels in ((self.src_part, 0), (self.dst_part, self.channels)):
            if part and part[0] + channels > part[1]:
                return f"{channels} channels from {part[0]} on are no part of {part[1]}"
        reads = [("reads", self.src_dtype, q) for q in self._src_quantizations()]
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
    def is_low_precision(self) -> bool:
        """Whether it reads or writes another type than float32."""
        return (self.src_dtype, self.dtype) != (FLOAT32, FLOAT32)

    @property
    def makes_numbers(self) -> bool:
        """Whether one that keeps values has others between them in the result."""
        return False

    @property
    def dst_type(self) -> int:
        return self.dtype

    @property
    def into_type(self) -> int:
        return self.dtype

    def attributes(self) -> dict:
        """Those of the op that say what it is."""
        attributes = {name: getattr(self, name, None) for name in attribute_types(self.op)}
        if attributes.get("padding") in ("SAME", "VALID"):
            attributes.pop("explicit_paddings", None)
        return {name: value for name, value in attributes.items() if value is not None}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref | list[Ref]]]:
        """All attributes and the inputs of the op in their order; adds arrays to `bundle`."""
        attributes, tensors = self.attributes(), [inputs[role] for role in self.operands]
        if self.takes_steps:
            attributes["post_ops"], args = write_chain(self.chain, inputs, bundle)
            tensors.append(args)
        return attributes, tensors

    def node(self, planned: Node, bundle: Bundle, scratchpad_mode: str) -> Node:
        """The node of the op in place of the planned one."""
        inputs = planned.by_role
        attributes, tensors = self.write(inputs, bundle)
        if self.has("num_into"):
            tensors.append([inputs["into"]] if "into" in inputs else [])
        if self.has("scratchpad_mode"):
            attributes["scratchpad_mode"] = scratchpad_mode
        node = make_node(
            planned.name, self.op, tensors, planned.controls, T=self.src_dtype, **attributes
        )
        node.payload = self
        return node

    # The call.

    @classmethod
    def run(cls, *inputs, name: str | None = None, **arguments):
        """What the op makes of `inputs`, those that are lists as lists.

        Args:
            name: of the op.
            **arguments: the attributes, as users pass them.
        """
        attributes, usual = {}, defaults(cls.op)
        for key, value in arguments.items():
            if value is None and key in cls.optional:
                continue
            if key == "padding":
                attributes |= padding_attrs(value)
                continue
            read = cls.readers.get(key) or READERS.get(key)
            value = read(key, value) if read else value
            # TensorFlow asks the node for the type of a result.
            if key == "dst_type" or key not in usual or usual[key] != value:
                attributes[key] = value
        return run_op(cls.op, inputs, attributes, name, _generated)


@dataclass(frozen=True, kw_only=True)
class WithSum:
    """Before a record: an op that may add one operand of another type than float32.

    Attributes:
        sum_role: the role of that operand.
        sum_dtype, sum_quantization: of that operand.
    """

    sum_role: str | None = None
    sum_dtype: int = FLOAT32
    sum_quantization: Quantization = ()

    @property
    def sum_type(self) -> int:
        return self.sum_dtype

    def dtype_of(self, role: str) -> int:
        return self.sum_dtype if role == self.sum_role else super().dtype_of(role)

    def quantization_of(self, role: str) -> Quantization:
        return self.sum_quantization if role == self.sum_role else super().quantization_of(role)


@functools.cache
def _generated(op: str) -> Callable:
    """The function that TensorFlow generates for the op."""
    words = "".join(f"_{c.lower()}" if c.isupper() else c for c in op)
    return getattr(library(), words[1:])


class InPlace(Record):
    """An op that reads and writes one layout."""

    layout: Layout = BLOCKED

    @property
    def src_layout(self) -> Layout:
        return self.layout

    @property
    def dst_layout(self) -> Layout:
        return self.layout
