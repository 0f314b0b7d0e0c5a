"""The chart: a group of bars for each class of networks, as an SVG.

It is written by hand, not by a library: its colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import html
import statistics
from typing import NamedTuple

from .document import Result, by_class, dates, heading, network, rows, speedup, tensorflow_of, timed
from .document import title as title_of

PEERS = ("onnxruntime", "openvino", "litert", "torch")


class Bar(NamedTuple):
    """One library in one class of networks.

    Attributes:
      name: of the library, and what else has to be said of it.
      ratio: its time as a multiple of ours.
      kind: "ours", "peer" or "tensorflow".
    """

    name: str
    ratio: float
    kind: str


class Group(NamedTuple):
    """A class of networks: its name, the networks in it, and the bars from the top down."""

    name: str
    networks: str
    bars: list[Bar]


# Pixels: the whole, legible on a phone; left of the bars; right of the longest.
_WIDTH, _NAMES, _RIGHT = 500, 165, 55
_BAR, _HEADING, _GAP = 22, 24, 14  # pixels from one bar to the next, of a heading, between groups
_TOP = 52
_STYLE = """
text { font: 13px sans-serif; fill: #22303c; }
.title, .group, .ours-text { font-weight: bold; }
.soft { fill: #5b6a76; }
.page { fill: #ffffff; }
.ours { fill: #2e8b57; } .peer { fill: #8aa4c0; } .tensorflow { fill: #b9c2ca; }
@media (prefers-color-scheme: dark) {
  text { fill: #e3e7ea; } .soft { fill: #a9b4bc; } .page { fill: #1e2129; }
  .ours { fill: #4cbf80; } .peer { fill: #56789c; } .tensorflow { fill: #5b6570; }
}
"""


def chart(document: dict) -> str:
    """The SVG of a file of measurements."""
    title = "Time of a call relative to tf_blockdnn's: shorter is faster"
    about = f"geometric means; {heading(document)}, {dates(rows(document))[-1]}"
    groups = [group(name, results) for name, results in by_class(document).items()]
    longest = max(bar.ratio for group in groups for bar in group.bars)
    scale = (_WIDTH - _NAMES - _RIGHT) / longest
    parts, top = [], _TOP
    for name, _, bars in groups:
        parts.append(_text(12, top + 16, name, "group"))
        top += _HEADING
        for bar in bars:
            width = bar.ratio * scale
            parts.append(
                f'<rect class="{bar.kind}" x="{_NAMES}" y="{top + 2}" width="{width:.1f}" '
                f'height="{_BAR - 5}" rx="2"/>'
            )
            bold = "ours-text" if bar.kind == "ours" else ""
            parts.append(_text(_NAMES - 10, top + 15, bar.name, bold, anchor="end"))
            parts.append(_text(_NAMES + width + 7, top + 15, f"{bar.ratio:.2f}x", bold))
            top += _BAR
        top += _GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'viewBox="0 0 {_WIDTH} {top}" role="img">',
        f"<title>{html.escape(title)}; {html.escape(about)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{top}" rx="6"/>',
        _text(12, 22, title, "title"),
        _text(12, 42, about, "soft"),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def group(name: str, results: list[Result]) -> Group:
    """The bars of a class: geometric means of time as a multiple of ours."""
    networks = dict.fromkeys(network(r.row["model"]).partition(",")[0] for r in results)
    settings = {peer for r in results if (peer := tensorflow_of(r))}
    tensorflow = [speedup(r.row, peer) for r in results if (peer := tensorflow_of(r))]
    peers = [
        (title_of(peer), "peer", [speedup(r.row, peer) for r in results if timed(r.row, peer)])
        for peer in PEERS
    ]
    peers.append((" and ".join(map(title_of, sorted(settings))), "tensorflow", tensorflow))
    bars = [
        Bar(
            who if len(ratios) == len(results) else f"{who} ({len(ratios)} of {len(results)})",
            statistics.geometric_mean(ratios),
            kind,
        )
        for who, kind, ratios in peers
        if ratios
    ]
    ours = Bar("tf_blockdnn", 1.0, "ours")
    return Group(name, ", ".join(networks), [ours, *sorted(bars, key=lambda bar: bar.ratio)])


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">'
        f"{html.escape(text)}</text>"
    )
