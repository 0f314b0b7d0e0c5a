"""What all planned primitives have in common."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ...graph import Ref
from ...layout import NCHW16C as BLOCKED
from .bundle import Bundle
from .steps import Step, write_chain

Layout = Literal["nhwc", "nChw16c", "nc"]


@dataclass(frozen=True, kw_only=True)
class Primitive:
    """Common to all: the graph node it came from, its logical output channels, its steps.

    Attributes:
        src_part: (first channel, channels in all) where the source is part of a wider tensor.
        dst_part: the same of the result.
            Its node then may have an input "into": the wider tensor, as the op before left it.
        own: the roles of its own inputs, in the order of its op; steps name others.
    """

    op: ClassVar[str]
    origin: str
    channels: int
    steps: tuple[Step, ...] = ()
    src_part: tuple[int, int] | None = None
    dst_part: tuple[int, int] | None = None
    takes_steps: ClassVar[bool] = False
    takes_scratchpad: ClassVar[bool] = False
    own: ClassVar[tuple[str, ...]] = ("src",)

    @property
    def chain(self) -> tuple[Step, ...]:
        """The entries of its post-op chain."""
        return self.steps

    @property
    def dst_layout(self) -> Layout:
        return BLOCKED

    def layout_of(self, role: str) -> Layout:
        """The layout in which the input of that role is read."""
        return BLOCKED

    def attributes(self) -> dict:
        """Those of its op that say what it is."""
        return {}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        """All attributes and the inputs of its op in their order; adds its arrays to `bundle`."""
        attributes, given = self.attributes(), [inputs[role] for role in self.own]
        if self.takes_steps:
            attributes["post_ops"], args = write_chain(self.chain, inputs, bundle)
            attributes["num_args"] = len(args)
            given += args
        return attributes, given

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


def pair_text(sizes: tuple[int, int]) -> str:
    """ "2", or "2x1" where the two differ."""
    return str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}x{sizes[1]}"


def padding_text(window) -> str:
    """Of a convolution or a pooling, for the report."""
    explicit = f"pad {list(window.explicit_paddings)}"
    return explicit if window.padding == "EXPLICIT" else window.padding.lower()


def padding_attributes(window) -> dict:
    """Of a convolution or a pooling."""
    explicit = window.padding == "EXPLICIT"
    return {
        "padding": window.padding,
        "explicit_paddings": list(window.explicit_paddings) if explicit else [],
    }
