"""One self-contained HTML page: the ops of a function before and after it was rewritten."""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
import pathlib
from collections.abc import Callable, Mapping

from ..graph import GraphView, Node, flatten
from ..rewriter.capture import capture
from ..rewriter.regions import REGION, is_ours
from ..rewriter.summary import brief, time_of
from ..saved_model import distinct

_BAR = 300  # pixels: the longest bar
# What is no computation, or what both graphs only name.
_SILENT = frozenset(("Const", "NoOp", "ReadVariableOp", "Identity", "IdentityN", "VarHandleOp"))
_HEAD = "region"  # the kind of the row above the ops of a region


@dataclasses.dataclass
class Row:
    """One op of a graph, or the heading of a region.

    Attributes:
        node, op: name and type.
        name: the part of the name that tells it from others.
        kind: "input", "ours", "reorder", "left", "unfused" or "plain", or "region" for a heading.
        note: a few words after the name.
        inputs: rows that it reads.
        region: the number of the region that it belongs to, from 1 on; 0 outside of regions.
    """

    node: str
    op: str
    name: str
    kind: str
    note: str
    inputs: list[int]
    region: int = 0


def write_page(path: pathlib.Path, title: str, originals: Mapping, functions: Mapping, report):
    """Writes the page for all signatures that were rewritten, each distinct graph once.

    Args:
        path: the file.
        title: what was rewritten.
        originals, functions: signature name -> ConcreteFunction, before and after.
        report: the SavedModelReport.
    """
    parts = []
    for names, part in distinct(report):
        after = rows_after(functions[names[0]], part)
        before = rows_before(originals[names[0]], part, after)
        parts.append(section(", ".join(names), part, before, after))
    path.write_text(_PAGE.format(title=html.escape(title), style=_STYLE, body="\n".join(parts)))


def rows_after(concrete, report) -> list[Row]:
    """The ops of the rewritten function in a runnable order, those of each region together."""
    module = capture(concrete)
    describe = _describer(report)
    times = {time.node: time for time in report.measured.regions} if report.measured else {}
    rows: list[Row] = []
    place: dict[str, list[int]] = {}  # node -> the rows that stand for it
    regions = itertools.count(1)
    for node in module.main.view.topological():
        if not (is_ours(node) or node.op == REGION):
            _add(rows, place, node, describe)
            continue
        number = next(regions)
        time = time_of(times[node.name]) if node.name in times else ""
        rows.append(Row(node.name, node.op, f"region {number}", _HEAD, time, [], number))
        if node.op != REGION:
            _add(rows, place, node, describe, number)
            continue
        body = flatten(module.functions[node.attr["f"].func.name])
        view = GraphView(body.graph_def, body.fetches)
        names = dict(zip(body.inputs, map(str, node.inputs), strict=True))
        inside = {
            name: place.get(ref.node, [])
            for name, ref in zip(body.inputs, node.inputs, strict=True)
        }
        for inner in view.topological():
            if inner.name not in body.inputs:
                _add(rows, inside, inner, describe, number, names)
        place[node.name] = [row for ref in body.fetches for row in inside.get(ref.node, ())]
    return rows


def rows_before(concrete, report, after: list[Row]) -> list[Row]:
    """The ops of the original, each under the region that it became a part of.

    Args:
        after: the rows of the result.
    """
    describe, kept = _describer(report), {(row.node, row.op) for row in after}
    rows: list[Row] = []
    place: dict[str, list[int]] = {}
    for node in capture(concrete).main.view.topological():
        _add(rows, place, node, describe)
    for row in rows:
        if row.kind == "plain" and (row.node, row.op) not in kept:
            row.kind = "ours"
    _find_regions(rows, {row.node: row.region for row in after})
    return _with_headings(rows, report)


def _find_regions(rows: list[Row], regions: Mapping[str, int]) -> None:
    """An op that is gone belongs where what reads it went."""
    readers: dict[int, list[int]] = {}
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        row.region = regions.get(row.node, 0)
        if row.node not in regions and row.kind == "ours":
            row.region = next((rows[i].region for i in readers.get(index, ()) if rows[i].region), 0)
        for source in row.inputs:
            readers.setdefault(source, []).append(index)


def _with_headings(rows: list[Row], report) -> list[Row]:
    """A heading wherever the ops of a region begin, or go on after others."""
    times = report.measured.regions if report.measured else []
    result: list[Row] = []
    seen = set()
    for row in rows:
        number = row.region
        if number and not (result and result[-1].region == number):
            time = times[number - 1].original_ms if number <= len(times) else None
            words = f"region {number}" + (", continued" if number in seen else "")
            note = f"{time:.3g} ms" if time is not None and number not in seen else ""
            seen.add(number)
            result.append(Row("", REGION, words, _HEAD, note, [], number))
        result.append(row)
    return result


def _describer(report) -> Callable[[Node, str], tuple[str, str, str]]:
    """describe(node, first input) -> (the part of the name to show, the kind, a note)."""
    cut = report.prefix
    reasons, unfused = dict(report.declined), dict(report.unfused)
    details = {item.node: item.details for item in report.converted}
    causes = dict(zip((t for t, _ in report.reorders), report.reorder_causes, strict=False))

    def describe(node: Node, source: str) -> tuple[str, str, str]:
        kind, note = "plain", ""
        if node.op == "Placeholder":
            kind = "input"
        elif node.op == "BlockdnnReorder":
            kind, note = "reorder", causes.get(source, "")
            note = note and f"because of {note.replace(cut, '') if cut else note}"
        elif node.op.startswith("Blockdnn"):
            kind, note = "ours", details.get(node.name, "")
        elif node.name in reasons:
            kind, note = "left", reasons[node.name]
        elif node.name in unfused:
            kind, note = "unfused", unfused[node.name]
        return brief(node.name, cut), kind, note

    return describe


def _add(
    rows: list[Row], place: dict, node: Node, describe, region: int = 0, names: Mapping = {}
) -> None:
    """A row for the node, unless it only names a tensor or is constant.

    Args:
        region: the number of the region that it stands in.
        names: the region's argument -> the tensor that it is outside.
    """
    sources = list(dict.fromkeys(row for ref in node.inputs for row in place.get(ref.node, ())))
    is_input = node.op == "Placeholder" and node.attr["dtype"].type != _RESOURCE
    if node.op not in _SILENT and (sources or is_input):
        source = str(node.inputs[0]) if node.inputs else ""
        name, kind, note = describe(node, names.get(source, source))
        rows.append(Row(node.name, node.op, name, kind, note, sources, region))
        sources = [len(rows) - 1]
    place[node.name] = sources


_RESOURCE = 20  # DT_RESOURCE: the handle of a variable


def section(name: str, report, before: list[Row], after: list[Row]) -> str:
    """One graph: the summary, what low precision costs, and the ops before and after."""
    return (
        f"<section><h2>{html.escape(name)}</h2><pre>{html.escape(report.summary())}</pre>"
        f"{_losses(report)}"
        f'<div class="both">{_column("before", before)}{_column("after", after)}</div></section>'
    )


def _losses(report) -> str:
    """A bar a layer, in the order in which they run, and one an output: signal to noise."""
    precision = report.precision
    layers = [layer for layer in precision.layers if layer.snr is not None] if precision else []
    if not layers:
        return ""
    cut = report.prefix
    rows = [(brief(layer.node, cut), layer.dtype, layer.snr) for layer in layers]
    rows += [(output.name, "output", output.snr) for output in precision.outputs]
    finite = [snr for _, _, snr in rows if math.isfinite(snr)]
    scale = _BAR / max(1.0, *finite)
    bars = []
    for name, kind, snr in rows:
        width = _BAR if snr == math.inf else max(0.0, snr * scale)
        loss = "exact" if snr == math.inf else f"{snr:.1f} dB"
        label = html.escape(f"{name}, {kind}: {loss}")
        bars.append(f'<li class="{kind}"><b style="width:{width:.0f}px"></b> {label}</li>')
    return (
        "<h3>signal to noise by layer <small>a longer bar loses less; 20 dB are an error of 10 %, "
        f'40 dB of 1 %</small></h3><ol class="losses">{"".join(bars)}</ol>'
    )


def _column(heading: str, rows: list[Row]) -> str:
    items = "".join(map(_item, rows))
    count = sum(row.kind != _HEAD for row in rows)
    return f"<div><h3>{heading} <small>{count} ops</small></h3><ol>{items}</ol></div>"


def _item(row: Row) -> str:
    op, name, note = (html.escape(text) for text in (row.op, row.name, row.note))
    inside = f" in{row.region % 2}" if row.region else ""
    if row.kind == _HEAD:
        return f'<li class="{_HEAD}{inside}">{name} <i>{note}</i></li>'
    title = html.escape(f"{row.node}: {row.op} {row.note}", quote=True)
    return (
        f'<li class="{row.kind}{inside}" title="{title}">'
        f"<b>{op.removeprefix('Blockdnn')}</b> <span>{name}</span> <i>{note}</i></li>"
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: before and after</title><style>{style}</style></head><body>
<header><h1>{title}</h1>
<p class="key"><span class="ours">op of tf_blockdnn, or op that it replaces</span>
<span class="reorder">reorder</span> <span class="left">left to TensorFlow, with the reason</span>
<span class="unfused">not fused</span> <span class="plain">other op of TensorFlow</span></p>
<p>Each region runs as one op. Its ops stand below its name, and have the same colour before and
after.</p>
</header>
{body}
</body></html>
"""

_STYLE = """
:root{--ours:#1769aa;--reorder:#c2410c;--left:#a16207;--unfused:#7c3aed;--plain:#64748b}
*{box-sizing:border-box}
body{margin:0 auto;padding:16px;max-width:1400px;font:14px/1.5 system-ui,sans-serif;color:#1e293b}
h1{font-size:22px;margin:0;overflow-wrap:anywhere}h2{font-size:17px;margin:24px 0 8px}
h3{font-size:14px;margin:0 0 8px}small{font-weight:normal;color:#64748b}
pre{background:#f1f5f9;padding:12px;margin:0 0 16px;white-space:pre-wrap;overflow-wrap:anywhere}
.both{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:24px}
.losses b{display:inline-block;height:12px;background:var(--ours)}
.losses .float32 b{background:var(--plain)}.losses .output b{background:var(--reorder)}
ol{list-style:none;margin:0;padding:0}
li{line-height:24px;padding-left:8px;border-left:3px solid transparent;
white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
@media(max-width:760px){.both{grid-template-columns:minmax(0,1fr)}
li{white-space:normal;overflow-wrap:anywhere}}
li span{color:#475569}li i{color:#64748b;font-size:12px}
.region i,.left i,.reorder i,.unfused i{display:block;line-height:15px;white-space:normal;
overflow-wrap:anywhere}
li.region{font-weight:600;color:var(--ours)}
li.region i{font-style:normal;font-size:13px;color:inherit}
.in0{border-color:#93c5fd;background:#f0f7ff}.in1{border-color:var(--ours);background:#e3effc}
.key span{display:inline-block;margin-right:12px}
.ours b,.key .ours{color:var(--ours)}.reorder b,.key .reorder{color:var(--reorder)}
.left b,.left i,.key .left{color:var(--left)}.unfused b,.key .unfused{color:var(--unfused)}
.plain b,.input b,.key .plain{color:var(--plain)}
@media(prefers-color-scheme:dark){
:root{--ours:#7cc4ff;--reorder:#fb923c;--left:#facc15;--unfused:#c4b5fd;--plain:#94a3b8}
body{background:#0f172a;color:#e2e8f0}pre{background:#1e293b}li span{color:#cbd5e1}
.in0{background:#14243d}.in1{background:#1a2f4f}}
"""
