"""The README's parts: its example's times; the chart, what each class wins, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from measuring.results import OURS, fastest

from . import chart
from .document import (
    by_class,
    dates,
    heading,
    is_peer,
    markdown_table,
    network,
    speedup,
    tensorflow_of,
    timed,
    title,
)

_BEGIN, _END = "<!-- made by benchmarks/measurements: {} -->", "<!-- end of what it made -->"
CHART = "![Times of tf_blockdnn, its peers and TensorFlow by class of networks]({picture})"
LOADED = f"{OURS}-tf.saved_model.load"


def text(old: str, document: dict) -> str:
    """The README with what stands between its marks written anew.

    Raises:
      ValueError: it lacks marks.
    """
    for name, part in {"example": example(document), "classes": classes(document)}.items():
        begin = _BEGIN.format(name)
        before, found, rest = old.partition(begin)
        _, ended, after = rest.partition(_END)
        if not (found and ended):
            raise ValueError(f"the README lacks {begin} or its {_END}")
        old = f"{before}{begin}\n\n{part.rstrip()}\n{_END}{after}"
    return old


def example(document: dict) -> str:
    """What the example prints, by the row of its network."""
    (row,) = [r.row for r in by_class(document)["Mobile CNNs"] if r.row["model"] == "mobilenetv2"]
    sides = {"TensorFlow": document["tensorflow_default"], "tf_blockdnn": OURS}
    lines = (f"{name:12} {row['peers'][who]['median_ms']:5.1f} ms" for name, who in sides.items())
    return (
        "```text\n" + "\n".join(lines) + "\n```\n\n"
        f"({row['threads']} threads of an {heading(document)}, {row['date']}.)\n"
    )


def classes(document: dict) -> str:
    """The chart, the table of classes, and the costs."""
    found = by_class(document)
    table = [
        [
            f"{name}: {chart.group(name, each).networks}",
            _span(speedup(r.row, peer) for r in each if (peer := tensorflow_of(r))),
            _span(speedup(r.row, peer) for r in each if (peer := fastest(r.row, is_peer))),
        ]
        for name, each in found.items()
    ]
    shown = [result.row for each in found.values() for result in each]
    commits = sorted({row["commit"] for row in shown})
    threads = shown[0]["threads"]
    lines = [
        CHART.format(picture="docs/measurements.svg"),
        "",
        "How many times faster, by medians (bars are geometric means of each class):",
        "",
        markdown_table(["networks", "than TensorFlow", "than the fastest peer"], table),
        f"One image, text or batch of sequences a call, {threads} threads, {heading(document)}, "
        f"{' and '.join(dates(shown))}, commit {' and '.join(commits)}. "
        "[Measurements](docs/measurements.md) has every network, peer and way of calling; "
        "[the method](docs/method.md) says how they were measured.",
        "",
        *_costs(document),
    ]
    return "\n".join(lines)


def _span(ratios: Iterable[float]) -> str:
    texts = [f"{ratio:.2f}x" for ratio in sorted(ratios)]
    return f"{texts[0]} to {texts[-1]}" if len(texts) > 1 else "".join(texts)


def _costs(document: dict) -> list[str]:
    """What it costs in memory and time, and where the lead is small; nothing that no row says."""
    costs = [
        f"{network(row['model'])} takes {row['optimised']['mib']:.0f} MiB above the imports "
        f"(TensorFlow: {row['original']['mib']:.0f}) and {row['optimised']['seconds']:.1f} s to "
        f"its first result ({row['original']['seconds']:.1f})"
        for row in document["loading"]
    ]
    lines = []
    if costs:
        longest = max(row["optimised"]["import_s"] for row in document["loading"])
        lines.append(
            f"What it costs: loaded from a saved result, {', '.join(costs)}. "
            f"`import tf_blockdnn` adds {longest:.1f} s to TensorFlow's.\n"
        )
    small = min(
        (r.row for each in by_class(document).values() for r in each),
        key=_lead(OURS),
    )
    says = "Where a peer is faster" if _lead(OURS)(small) < 1 else "Where the lead is smallest"
    lines.append(f"{says}: {_compared(small, OURS, 'fast(x)')}")
    loaded = [row for row in document["networks"] if timed(row, LOADED) and row["batch"] == 1]
    if loaded:
        row = min(loaded, key=_lead(LOADED))
        lines[-1] += f"; called through {_compared(row, LOADED, 'tf.saved_model.load')}"
    lines[-1] += ".\n"
    return lines


def _lead(ours: str) -> Callable[[dict], float]:
    def lead(row: dict) -> float:
        best = fastest(row, is_peer)
        return speedup(row, best, ours) if best else float("inf")

    return lead


def _compared(row: dict, ours: str, way: str) -> str:
    best = fastest(row, is_peer)
    text = f"{network(row['model'])} runs at {speedup(row, best, ours):.2f} times the speed of "
    through = "" if ours == OURS else f"`{way}` "
    return f"{through}{text}{title(best)}"
