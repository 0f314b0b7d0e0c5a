"""Draws the times of tf_blockdnn, the fastest other library and TensorFlow as labelled bars."""

from __future__ import annotations

import pathlib

import matplotlib
from matplotlib.figure import Figure
from measurements import (
    charted,
    default_of,
    heading,
    is_tensorflow,
    milliseconds,
    network,
    speedup,
    title,
)
from measuring.results import OURS, fastest, is_ours

INK, SOFT, GRID = "#22303c", "#66747f", "#e3e7ea"
COLOURS = {"ours": "#c8553d", "other": "#3b7dd8", "default": "#5b6a76", "better": "#a9b4bc"}
_BAR = 0.215  # inches from one bar to the next
_GAP = 0.55  # bars of space between two networks


def bars(document: dict, result: dict) -> list[tuple[str, str, float, str]]:
    """(kind, who, time as a multiple of ours, label) from the top down.

    TensorFlow has a bar for its default, and one more where another setting of it is faster.
    """
    default, better = default_of(document), fastest(result, is_tensorflow)
    other = fastest(result, lambda name: not is_ours(name) and not is_tensorflow(name))
    chosen = {"ours": OURS, "other": other, "default": default, "better": better}
    if better == default or better is None:
        del chosen["better"]
    found = []
    for kind, peer in chosen.items():
        if peer is None or "median_ms" not in result["peers"].get(peer, {}):
            continue
        ratio, time = speedup(result, peer), milliseconds(result["peers"][peer]["median_ms"])
        label = f"{time} ms" if kind == "ours" else f"{title(peer)}  {time} ms, {ratio:.1f}x"
        found.append((kind, peer, ratio, label))
    return found


def draw(document: dict, path: pathlib.Path, fingerprint: str) -> None:
    """Writes an SVG of the charted results."""
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "tf_blockdnn",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
    }
    groups = [(network(r["model"]), bars(document, r)) for r in charted(document)]
    height = sum(len(rows) + _GAP for _, rows in groups)
    widest = max(ratio for _, rows in groups for _, _, ratio, _ in rows)
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(10, height * _BAR + 0.75), facecolor="white")
        panel = figure.subplots()
        place = 0.0
        for name, rows in groups:
            panel.text(-0.08, place + (len(rows) - 1) / 2, name, ha="right", va="center")
            for kind, _, ratio, label in rows:
                panel.barh(place, ratio, height=0.86, color=COLOURS[kind])
                bold = "bold" if kind == "ours" else "normal"
                panel.text(ratio + 0.05, place, label, va="center", fontsize=9, fontweight=bold)
                place += 1
            place += _GAP
        panel.axvline(1, color=GRID, lw=1, zorder=0)
        # A label stands behind its bar; the longest one is some 2.6 inches wide.
        panel.set_xlim(0, widest * 1.45)
        panel.set_ylim(place - _GAP - 0.4, -0.6)
        panel.set_yticks([])
        panel.set_xticks([])
        panel.spines[:].set_visible(False)
        figure.suptitle(
            f"Time of one call as a multiple of tf_blockdnn's: {heading(document)}",
            x=0.012,
            ha="left",
            fontsize=11,
            fontweight="bold",
        )
        keys = {"ours": "tf_blockdnn", "other": "fastest other library"}
        keys |= {"default": "TensorFlow's default", "better": "a faster setting of TensorFlow"}
        shown = {kind for _, rows in groups for kind, *_ in rows}
        figure.legend(
            [matplotlib.patches.Patch(color=COLOURS[kind]) for kind in keys if kind in shown],
            [text for kind, text in keys.items() if kind in shown],
            loc="lower left",
            ncols=4,
            frameon=False,
            fontsize=9,
            bbox_to_anchor=(0.005, 0.0),
        )
        inches = figure.get_figheight()
        figure.subplots_adjust(left=0.13, right=0.995, top=1 - 0.36 / inches, bottom=0.32 / inches)
        figure.savefig(
            path, format="svg", metadata={"Date": None, "Description": f"data {fingerprint}"}
        )
