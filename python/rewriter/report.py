"""What the rewriter did, and what it left alone and why."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from . import summary
from .precision.lowering import Layer


@dataclass(frozen=True)
class Converted:
    """One of our ops in the rewritten graph.

    Attributes:
        node: the graph node that it replaces (the last one of a fused chain).
        op: the kind, such as "BlockdnnConv".
        shape: its logical output shape, NHWC order; None where a size is dynamic.
        algorithm: what was asked for: "auto", "direct" ...; empty where there is no choice.
        details: kernel, strides, layouts, fused steps, in one line.
        chosen: what will run: "winograd4x4" for example, or "direct at batch 1" where the
            batch is open; empty where other sizes are, or where there is no choice.
        packed, scratchpad: the bytes of its packed weights and of its temporary memory, of batch 1
            where that is open; 0 where other sizes are.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> (convolution,) = bd.optimize(model).report.converted
        >>> convolution.op, convolution.shape
        ('BlockdnnConv', (None, 6, 6, 8))
    """

    node: str
    op: str
    shape: tuple[int | None, ...] | None
    algorithm: str
    details: str
    chosen: str = ""
    packed: int = 0
    scratchpad: int = 0


@dataclass(frozen=True)
class RegionTime:
    """The milliseconds of one region, run alone on the tensors that reach it.

    Attributes:
        node: the region's op in the rewritten graph.
        original_ms: what TensorFlow takes for the same tensors; None where the original does
            not have those at the region's edges.
        optimized_ms: what the region takes.
        ratio: how many times faster the region is, the first over the second.
    """

    node: str
    original_ms: float | None
    optimized_ms: float

    @property
    def ratio(self) -> float | None:
        return self.original_ms and self.original_ms / self.optimized_ms


@dataclass(frozen=True)
class PartTime:
    """The milliseconds of the whole function, with and without a part that has reorders.

    Attributes:
        nodes: the part's convolutions.
        optimized_ms: with the part converted.
        without_ms: with the part left to TensorFlow.
    """

    nodes: tuple[str, ...]
    optimized_ms: float
    without_ms: float


@dataclass(frozen=True)
class Measured:
    """What `tf-blockdnn inspect --benchmark` measures.

    Attributes:
        original_ms, optimized_ms: of the whole function.
        regions: each region alone, in the order in which they run.
        parts: the function without each part that has reorders.
    """

    original_ms: float
    optimized_ms: float
    regions: list[RegionTime]
    parts: list[PartTime]

    @property
    def ratio(self) -> float:
        """How many times faster: the original's time over the optimised one's."""
        return self.original_ms / self.optimized_ms


@dataclass(frozen=True)
class OutputLoss:
    """What an output of the function loses on the data that were held back.

    Attributes:
        name: in the structure of the outputs.
        snr: signal to noise against the original, in dB.
        agreement: how often the largest of each row is the same, for outputs [N, classes].
    """

    name: str
    snr: float
    agreement: float | None = None


@dataclass(frozen=True)
class Precision:
    """What low precision costs.

    Attributes:
        precision: one of those of `Options`: what was asked for, or what the model is of.
        layers: each convolution, product and recurrent layer that the precision is for.
        left: (node, reason) of each matmul that this precision does not change.
        outputs: what the outputs lose; empty without calibration data.
        samples: how many were held back to judge by.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> images = np.random.rand(16, 8, 8, 3).astype("float32")
        >>> precision = bd.optimize(model, precision="int8", calibration=images).report.precision
        >>> precision.layers[0].dtype, precision.outputs[0].snr > 30
        ('uint8', True)
    """

    precision: str
    layers: list[Layer]
    outputs: list[OutputLoss]
    samples: int
    left: list[tuple[str, str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many layers work in low precision."""
        return sum(layer.dtype != "float32" for layer in self.layers)

    @property
    def loss(self) -> float:
        """The energy of all outputs' errors, each relative to the output's energy."""
        return sum(10 ** (-output.snr / 10) for output in self.outputs)

    def is_within(self, loss: float) -> bool:
        """Whether no output loses more than that part of its magnitude (root mean squares)."""
        return all(10 ** (-output.snr / 20) <= loss for output in self.outputs)


_MEMORY = ("weights", "packed", "shared", "scratchpad", "arena")


@dataclass
class Report:
    """What was done to one function, and what was not.

    Attributes:
        converted: our ops in the order in which they run, each with `node`, `op`, `shape`,
            `algorithm`, `details`, `chosen`, `packed` and `scratchpad`; reorders are in `reorders`.
        blocked: (node, op) of each op of ours that the function had before: in a model of
            `bd.layers`, or one that has been optimised already. They run in regions, too, and
            count neither as converted nor among the multiply-adds.
        declined: (node, reason) of what stays with TensorFlow.
        unfused: (node, reason) of element-wise work that follows a convolution or an inner
            product but runs by itself: reads and writes its tensor once more.
        joined: (concatenation, how many of its values are written in place, "3 of 4") for those
            that do not copy all of them.
        folded: (node, op) of each shuffle, split or concatenation of channels that went into the
            weights before and after it, so that nothing is moved.
        reorders: (tensor, "nhwc->nChw16c" or back) of each reorder that remains.
        reorder_causes: for each of them, the op that makes or needs the plain tensor.
        reorder_bytes: what all of them read for one sample, in bytes; an unknown height or width
            counts as 64.
        regions: how many parts were converted; each runs as one op.
        multiply_adds, multiply_adds_left: how many are converted, and how many are left outside
            of loops. Unknown sizes count as 64: only the ratio means something.
        weights: the bytes of the function's weights as they are; of these, kernels that have packed
            theirs read nothing more.
        memory: bytes of "weights", of the "packed" forms that kernels read, and of those of both
            that are "shared" by processes, as they lie in files of a SavedModel; of the largest
            "scratchpad"; and of the "arena" in which that and the tensors between our ops lie. At
            batch 1 where the batch is open; ops with other open sizes are not counted.
        warnings: what was asked for and changed nothing, passes that failed and were left out,
            and settings that cost speed; all but the last are Python warnings, too.
        notes: what a caller should know.
        error: the traceback, where the rewriter failed: a pass, which was left out, or all of
            it, and the function stayed as it was.
        seconds: how long the rewrite took.
        tracing_seconds: how long TensorFlow took before that to trace the function, often most of
            what `optimize` takes; 0 for a ConcreteFunction.
        precision: what low precision costs, where it was asked for or the model has it.
        measured: the times, where they were asked for.
        prefix: the scopes that most names begin with, "a/b/", without which summaries show them.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> report = bd.optimize(model).report
        >>> report.counts()
        {'BlockdnnConv': 1}
        >>> print(report.summary().split(" (")[0])
        converted: 100 % of the multiply-adds, in 1 region
    """

    converted: list[Converted] = field(default_factory=list)
    blocked: list[tuple[str, str]] = field(default_factory=list)
    declined: list[tuple[str, str]] = field(default_factory=list)
    unfused: list[tuple[str, str]] = field(default_factory=list)
    joined: list[tuple[str, str]] = field(default_factory=list)
    folded: list[tuple[str, str]] = field(default_factory=list)
    reorders: list[tuple[str, str]] = field(default_factory=list)
    reorder_causes: list[str] = field(default_factory=list)
    reorder_bytes: int = 0
    regions: int = 0
    multiply_adds: int = 0
    multiply_adds_left: int = 0
    weights: int = 0
    memory: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_MEMORY, 0))
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str | None = None
    seconds: float = 0.0
    tracing_seconds: float = 0.0
    precision: Precision | None = None
    measured: Measured | None = None
    prefix: str = ""

    def decline(self, node: str, reason: str) -> None:
        if (node, reason) not in self.declined:
            self.declined.append((node, reason))

    def labelled(self, label: Callable[[str], str]) -> "Report":
        """The same account, each node under the name that `label` gives it."""
        entries = {
            key: [(label(name), text) for name, text in getattr(self, key)]
            for key in ("declined", "unfused", "joined", "folded", "reorders")
        }
        converted = [replace(item, node=label(item.node)) for item in self.converted]
        return replace(self, converted=converted, **entries)

    def extend(self, other: "Report") -> None:
        """Adds the entries of another body of the same function."""
        lists = ("converted", "declined", "unfused", "joined", "folded", "reorders")
        for key in (*lists, "reorder_causes", "warnings", "notes"):
            getattr(self, key).extend(getattr(other, key))
        if other.precision and self.precision:
            self.precision.layers.extend(other.precision.layers)
        self.precision = self.precision or other.precision
        if other.error:
            self.error = (self.error or "") + other.error
        for key in ("regions", "reorder_bytes", "multiply_adds", "multiply_adds_left", "weights"):
            setattr(self, key, getattr(self, key) + getattr(other, key))

    def count(self, op: str) -> int:
        """How many primitives of kind `op` there are."""
        return sum(item.op == op for item in self.converted)

    def counts(self) -> dict[str, int]:
        """op kind -> number of primitives, reorders included."""
        reorders = {"BlockdnnReorder": len(self.reorders)} if self.reorders else {}
        return dict(Counter(item.op for item in self.converted)) | reorders

    def summary(self, all: bool = False) -> str:
        """The report as text.

        Args:
            all: every op and node, instead of what fits a screen: share of the multiply-adds,
                regions, reorders with their causes, what is left by reason.
        """
        return summary.full(self) if all else summary.short(self)

    def to_json(self, indent: int | None = None) -> str:
        """All attributes and the counts of `counts()`, as JSON text."""
        fields = asdict(self) | {"counts": self.counts()}
        if self.measured is not None:
            fields["measured"]["ratio"] = self.measured.ratio
            entries = fields["measured"]["regions"]
            for region, entry in zip(self.measured.regions, entries, strict=True):
                entry["ratio"] = region.ratio
        return json.dumps(fields, indent=indent)

    def __str__(self) -> str:
        return self.summary()
