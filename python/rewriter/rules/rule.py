"""A rule is one function of TensorFlow's ops, the formula.

    def swish(tf, x, beta=1.0):
        return x * tf.Sigmoid(x * beta)

    SWISH = Rule(swish, make, beta=Number())

It is read three times. Traced when the rule is created, it is a pattern: `tf.Name(..)` is an op,
one Python object is one tensor, a parameter whose default is neutral may be absent. Run on
TensorFlow's ops it tests the rule (tests/python/rewriter/rules), and the support page prints it.
What may stand for a parameter that is no tensor is in kinds.py. The guards that all rules
share are stated here, once.
"""

import inspect
from collections.abc import Callable

from ...graph import (
    Any,
    Axes,
    Body,
    Node,
    OneOf,
    Op,
    Ref,
    Reshaped,
    Scope,
    Viewed,
    dtype,
    dtype_name,
    is_float32,
    sizes_of,
)
from ...graph import Match as Bound
from ...ops.records import Record
from ..context import Context
from .replacement import Replacement

# What another name says, too.
_SYNONYMS = {
    "AddV2": "Add|AddV2",
    "Reciprocal": "Inv|Reciprocal",
    "SelectV2": "Select|SelectV2",
}


class Declined(Exception):
    """Why a match is left to TensorFlow, in one line; an empty reason is not reported."""


def require(holds: bool, reason: str = "") -> None:
    """Raises Declined where something does not hold."""
    if not holds:
        raise Declined(reason)


class Reader:
    """The `tf` of a formula that is traced: axes of x from either end, a reshape by any op, ..."""

    either, reshape, viewed, axes, sizes = OneOf, Reshaped, Viewed, Axes, staticmethod(sizes_of)

    def __init__(self):
        self.named = {"squeeze_dims"}  # the attributes that are looked at

    def __getattr__(self, name: str) -> Callable[..., Op]:
        def op(*args, **attributes) -> Op:
            self.named |= attributes.keys()
            return Op(_SYNONYMS.get(name, name), *args, **attributes)

        return op


class Match:
    """A match of a rule: `match["gamma"]` is what stands for the parameter gamma.

    Attributes:
        root: the node whose result it computes.
        nodes: all nodes of the formula.
    """

    def __init__(self, rule: "Rule", root: Node, body: Body, context: Context, bound: Bound):
        self.root, self.body, self.context = root, body, context
        values = {name: value for name, value in bound.values.items() if value is not None}
        self.nodes, self._known = frozenset(bound.nodes), rule.defaults | bound.refs | values

    def __getitem__(self, name: str):
        return self._known[name]

    def node(self, ops) -> Node:
        """The matched node that has one of the ops."""
        return next(n for n in map(self.body.view.node, self.nodes) if n.op in ops)

    def shape(self, name: str = "x") -> tuple:
        """The shape of the tensor that stands for a parameter; empty where it is not known."""
        return self.body.shapes.shape(self[name]) or ()

    def channels(self, name: str = "x") -> int:
        """Its last size."""
        require(shape := self.shape(name), "the input's rank is not known")
        known = isinstance(shape[-1], int) and shape[-1]
        require(known, "the number of input channels is not known")
        return shape[-1]

    def check(self, rule: "Rule") -> None:
        """Raises Declined where the guards or a kind do not let it be."""
        view, like = self.body.view, self._known.get(rule.like)
        for ref in (self.root.ref, *map(self._known.get, rule.tensors)):
            if not is_float32(view, ref):
                kind = dtype_name(dtype(view, ref))
                raise Declined(f"dtype {kind}, only float32 is implemented")
        varies = not isinstance(like, Ref) or not self.body.constants.is_constant(like)
        require(varies, f"{rule.like} is constant")
        for name, kind in rule.kinds.items():
            if kind and self._known.get(name) is not None:
                self._known[name] = kind.check(self, name, self[name])
        if rule.like and not self.body.shapes.equal(self.root.ref, like):
            raise Declined(f"its result is not known to have the shape of {rule.like}")
        is_hidden = view.is_hidden(self.nodes - {self.root.name}, self.nodes)
        require(is_hidden, "a part of it is read elsewhere, fetched or ordered")


class Rule:
    """A formula, and what is planned instead of it.

    Args:
        formula: (tf, parameters) -> the result.
        make: what is planned of a `Match`: a Record whose inputs are the tensors among the
            parameters in their order, or all of what `find` returns. It may raise Declined.
        like: the parameter whose shape the result has; None: it has another.
        kinds: of each parameter that is no tensor; None of one that may be anything.

    Attributes:
        ROOTS, NAMED: as of all patterns (replacement.py).
        tries, hits: how often it was asked, and matched.
    """

    def __init__(self, formula: Callable, make: Callable, *, like: str | None = "x", **kinds):
        _, *parameters = inspect.signature(formula).parameters.values()
        self.formula, self.make, self.like, self.kinds = formula, make, like, kinds
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.parameters = [p.name for p in parameters]
        self.tensors = [name for name in self.parameters if name not in kinds]
        operands = [Any(name, self.defaults.get(name)) for name in self.parameters]
        reader, self.__doc__ = Reader(), formula.__doc__
        self.pattern = formula(reader, *operands)
        self.ROOTS, self.NAMED = tuple(sorted(self.pattern.ops)), frozenset(reader.named)
        self.tries = self.hits = 0

    def find(self, root: Node, body: Body, context: Context | None = None, tells: bool = False):
        """What is planned for `root`; a str: why not; None: it is something else.

        A formula of several nodes that is not quite there is that mostly, too, unless `tells`.
        """
        self.tries += 1
        reason = ""
        for bound in Scope(body).proven(self.pattern, root.ref):
            match = Match(self, root, body, context, bound)
            try:
                match.check(self)
                planned = self.make(match)
            except Declined as declined:
                if tells or len(match.nodes) == 1:
                    reason = reason or str(declined)
                continue
            self.hits += 1
            if isinstance(planned, Record):
                inputs = dict(
                    zip(planned.operands, map(match.__getitem__, self.tensors), strict=False)
                )
                return Replacement(planned, inputs, root.name, match.nodes)
            return planned
        return reason or None

    def why_not(self, root: Node, body: Body, context: Context | None = None) -> str:
        """Where the way ends that comes nearest to the formula, or which guard forbids it."""
        scope = Scope(body, nearest=(0, self.pattern, root.ref))
        if any(True for _ in scope.proven(self.pattern, root.ref)):
            return str(
                self.find(root, body, context, tells=True) or "a parameter is none of its kind"
            )
        _, pattern, ref = scope.nearest
        return f"{ref} is made by {body.view.producer(ref).op}, not by {pattern}"
