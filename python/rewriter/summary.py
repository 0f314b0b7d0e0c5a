"""A report as text that fits a screen, and in full."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from ..ops.records import RECORDS

_MOST_REASONS = 8
_MOST_REORDERS = 6
_MOST_REGIONS = 6
_MOST_LAYERS = 6  # of those that lose most
AT_BATCH_1 = " at batch 1"
# What moves channels, by the op that does.
_MOVES = {
    "channel shuffles": ("GatherV2", "Pack", "Transpose"),
    "splits": ("Slice", "Split", "SplitV", "StridedSlice", "Unpack"),
    "concatenations": ("ConcatV2",),
}


def short(report) -> str:
    """What matters, on less than a screen: share of the work, regions, reorders, reasons."""
    cut = report.prefix
    lines = [headline(report)]
    if report.converted:
        lines.append("  " + _kinds(item.op for item in report.converted))
    lines += _algorithms(report)
    lines += _memory(report)
    if report.blocked:
        lines.append(f"blocked already: {_kinds(op for _, op in report.blocked)}")
    if report.joined:
        lines.append(f"  concatenations written in place: {len(report.joined)}")
    if report.folded:
        lines.append(f"  folded into weights: {_folded(report)}")
    lines += precision_lines(report, cut)
    lines += _reorders(report, cut)
    for heading, entries in (
        ("left to TensorFlow", report.declined),
        ("element-wise work not fused", report.unfused),
    ):
        lines += grouped(heading, entries, cut)
    lines += _times(report, cut)
    lines += [f"warning: {warning}" for warning in report.warnings]
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines)


def precision_lines(report, cut: str = "") -> list[str]:
    """What low precision covers, and what it costs."""
    precision = report.precision
    if precision is None:
        return []
    lines = [
        f"{precision.precision}: {precision.count} of {counted(len(precision.layers), 'layer')}"
    ]
    judged = counted(precision.samples, "sample")
    for output in precision.outputs:
        agrees = "" if output.agreement is None else f", same class {100 * output.agreement:.4g} %"
        off = f"off by {100 * 10 ** (-output.snr / 20):.2g} %"
        lines.append(f"  {output.name}: {off}, {output.snr:.1f} dB{agrees} ({judged})")
    rated = [layer for layer in precision.layers if layer.snr is not None]
    worst = sorted(rated, key=lambda layer: layer.snr)[:_MOST_LAYERS]
    lines += [f"  {layer_line(layer, cut)}" for layer in worst]
    return lines + grouped("left in float32", precision.left, cut)


def layer_line(layer, cut: str = "") -> str:
    """ "stem/conv: uint8, mse, scale 0.0235, zero point 0, 38.2 dB"."""
    words = [layer.dtype, layer.method]
    if layer.scale is not None:
        words += [f"scale {layer.scale:.3g}", f"zero point {layer.zero_point}"]
    words.append("" if layer.snr is None else f"{layer.snr:.1f} dB")
    return f"{brief(layer.node, cut)}: {', '.join(filter(None, words))}"


def counted(count: int, word: str) -> str:
    """ "1 layer", "2 layers"."""
    return f"{count} {word}{'s' * (count != 1)}"


def faster(ratio: float) -> str:
    """ "1.80x faster": how many times as long the other takes; "1.10x slower" below 1."""
    return f"{ratio:.2f}x faster" if ratio >= 1 else f"{1 / ratio:.2f}x slower"


def time_of(times) -> str:
    """The time of a region or of a whole function, next to TensorFlow's where it is known."""
    ours = f"{times.optimized_ms:.3g} ms"
    if times.original_ms is None:
        return ours
    return f"{ours}, TensorFlow {times.original_ms:.3g} ms: {faster(times.ratio)}"


def full(report) -> str:
    """Every op of ours, and each node that stayed, with the reason."""
    cut, lines = report.prefix, [short(report)]
    if cut:
        lines += ["", f"names below are without {cut}"]
    sections = (
        ("converted", [(c.node, _kind(c.op), c.details) for c in report.converted]),
        ("blocked already", [(node, _kind(op)) for node, op in report.blocked]),
        ("concatenations written in place", report.joined),
        ("folded into weights", report.folded),
        ("left to TensorFlow", report.declined),
        ("not fused", report.unfused),
        ("precision", [(layer_line(item),) for item in getattr(report.precision, "layers", ())]),
    )
    for heading, rows in sections:
        if rows:
            lines += ["", f"{heading}:"]
            lines += ["  " + "  ".join([brief(row[0], cut), *map(str, row[1:])]) for row in rows]
    return "\n".join(lines)


def headline(report) -> str:
    """ "converted: 99.8 % of the multiply-adds, in 1 region (rewritten in 48 ms)"."""
    took = f"(rewritten in {report.seconds * 1e3:.0f} ms"
    traced = report.tracing_seconds
    took += f"; TensorFlow traced it in {traced * 1e3:.0f} ms)" if traced else ")"
    regions = counted(report.regions, "region")
    if not report.converted:
        new = f" new; what is blocked already runs in {regions}" if report.blocked else ""
        return f"converted: nothing{new} {took}"
    total = report.multiply_adds + report.multiply_adds_left
    share = 100 * report.multiply_adds / total if total else 100.0
    if report.multiply_adds_left:
        share = min(share, 99.9)  # "100 %" says that nothing is left
    ops = counted(len(report.converted), "op")  # loops have no count of multiply-adds
    other = "other " if report.blocked else ""
    what = f"{share:.3g} % of the {other}multiply-adds" if total else ops
    return f"converted: {what}, in {regions} {took}"


def grouped(heading: str, entries, cut: str) -> list[str]:
    """Entries of (node, reason) by their reason, the most frequent first."""
    if not entries:
        return []
    nodes = defaultdict(list)
    for node, reason in entries:
        nodes[reason].append(brief(node, cut))
    lines = [f"{heading}: {len(entries)}"]
    ordered = sorted(nodes.items(), key=lambda item: -len(item[1]))
    for reason, names in ordered[:_MOST_REASONS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(f"  {len(names):3} x {reason} ({names[0]}{more})")
    if len(ordered) > _MOST_REASONS:
        rest = sum(len(names) for _, names in ordered[_MOST_REASONS:])
        lines.append(f"  {rest:3} x {len(ordered) - _MOST_REASONS} other reasons")
    return lines


def _folded(report) -> str:
    """ "3 channel shuffles, 2 splits"; reshapes around them do not count."""
    counts = Counter(op for _, op in report.folded)
    sums = {kind: sum(counts[op] for op in ops) for kind, ops in _MOVES.items()}
    return ", ".join(f"{n} {kind[:-1] if n == 1 else kind}" for kind, n in sums.items() if n)


def _algorithms(report) -> list[str]:
    """The algorithms that will run, by whether they hold for any batch or for one sample."""
    lines = []
    for batch in (AT_BATCH_1, ""):
        names = (item.chosen for item in report.converted if item.chosen)
        counts = Counter(
            n.removesuffix(batch) for n in names if n.endswith(AT_BATCH_1) == bool(batch)
        )
        if counts:
            each = (f"{count} {name}" for name, count in counts.most_common())
            lines.append(f"  algorithms{batch}: {', '.join(each)}")
    return lines


def _memory(report) -> list[str]:
    """Of networks whose weights are worth a line."""
    if report.weights < 1 << 20:
        return []
    sizes = {key: f"{size / 2**20:.1f} MiB" for key, size in report.memory.items()}
    shared = f", {sizes['shared']} of both shared by processes" if report.memory["shared"] else ""
    return [
        f"  memory: {sizes['weights']} of weights, {sizes['packed']} packed{shared}, "
        f"{sizes['arena']} between ops"
    ]


def _times(report, cut: str) -> list[str]:
    """What was measured: the whole, the slowest regions, and what parts with reorders gain."""
    measured = report.measured
    if measured is None:
        return []
    lines = [f"measured: {time_of(measured)}"]
    numbered = list(enumerate(measured.regions, 1))
    slowest = sorted(numbered, key=lambda pair: -pair[1].optimized_ms)[:_MOST_REGIONS]
    lines += [f"  region {number}: {time_of(region)}" for number, region in sorted(slowest)]
    if len(numbered) > _MOST_REGIONS:
        lines.append(f"  and {len(numbered) - _MOST_REGIONS} regions that take less")
    for part in measured.parts:
        more = f" and {len(part.nodes) - 1} more" if len(part.nodes) > 1 else ""
        lines.append(
            f"  with {brief(part.nodes[0], cut)}{more} left to TensorFlow: "
            f"{part.without_ms:.3g} ms instead of {part.optimized_ms:.3g}"
        )
    return lines


def _reorders(report, cut: str) -> list[str]:
    if not report.reorders:
        return []
    causes = report.reorder_causes or [""] * len(report.reorders)
    moved = f", {report.reorder_bytes / 1e6:.2g} MB a sample" if report.reorder_bytes else ""
    lines = [f"reorders: {len(report.reorders)}{moved}"]
    rows = list(zip(report.reorders, causes, strict=True))
    for (tensor, direction), cause in rows[:_MOST_REORDERS]:
        because = f", because of {cause.replace(cut, '') if cut else cause}" if cause else ""
        lines.append(f"  {direction} of {brief(tensor, cut)}{because}")
    if len(rows) > _MOST_REORDERS:
        lines.append(f"  and {len(rows) - _MOST_REORDERS} more")
    return lines


def common_prefix(names: Iterable[str]) -> str:
    """The scopes that all names begin with, "a/b/"; a few that differ do not count."""
    scoped = [name for name in names if "/" in name]
    prefix: list[str] = []
    while scoped:
        parts = Counter(
            name.split("/")[len(prefix)] for name in scoped if name.count("/") > len(prefix)
        )
        if not parts:
            break
        part, count = parts.most_common(1)[0]
        if count < 0.9 * len(scoped):
            break
        prefix.append(part)
        start = "/".join(prefix) + "/"
        scoped = [name for name in scoped if name.startswith(start)]
    return "".join(part + "/" for part in prefix)


def brief(name: str, cut: str) -> str:
    """The name without the common prefix."""
    return name[len(cut) :] if cut and name.startswith(cut) else name


def _kinds(ops) -> str:
    """ "2 convolutions, 1 pooling", the most frequent first."""
    return ", ".join(f"{n} {_titles(op)[n > 1]}" for op, n in Counter(ops).most_common())


def _kind(op: str) -> str:
    return re.sub(r" \(.*\)", "", _titles(op)[0])


def _titles(op: str) -> tuple[str, str]:
    """What people call an op, and many of them."""
    return RECORDS[op].title if op in RECORDS else (op, op)
