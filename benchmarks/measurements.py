"""Writes docs/measurements.md, its chart and the README's part from docs/measurements/*.json.

    python benchmarks/measurements.py                    # writes all three anew
    python benchmarks/measurements.py --check            # says what is out of date

The chart and the README show the files in CHARTED; every file is what run_models.py wrote, and
load-times.json what load_times.py wrote. By hand one may add "title" (instead of the CPU's name)
and "notes" (sentences, which stand above the tables).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import re
import statistics
import sys

import measurements_picture
from measurements_picture import Bar, Group
from measuring.results import OURS, best_peer, fastest, is_ours
from models import CLASSES, ZOO
from peers.networks import PEERS

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "measurements"
PAGE, PICTURE, README = FOLDER.with_suffix(".md"), FOLDER.with_suffix(".svg"), ROOT / "README.md"
# Of one machine, so that classes of networks can be compared.
CHARTED, LOAD_TIMES = ("networks.json", "transformers.json"), "load-times.json"
CHARTED_PEERS = ("onnxruntime", "openvino", "litert")
TENSORFLOW = "tensorflow"
SETTINGS = (TENSORFLOW, "tensorflow-plain")  # with oneDNN and without
BEGIN, END = "<!-- made by benchmarks/measurements.py -->", "<!-- end of what it made -->"
_MIB = 1 << 20

INTRODUCTION = """# Measurements

Whole networks in float32 on made-up pictures with random weights, measured as
[the method](method.md) says. Each section is one machine and one build; its conditions stand above
the tables. `make measure` measures your machine and writes this page.

Times are **medians in milliseconds for each call, with the fastest run in parentheses**. A speed-up
is **the peer's median divided by ours**: 1.8x means that tf_blockdnn is 1.8 times as fast. Bold
marks the fastest peer. TensorFlow was measured with oneDNN on and off; headings say which of the
two it does by default on the CPU.

{chart}
"""
CHART = "![Times of tf_blockdnn, its peers and TensorFlow by class of networks]({picture})"


def documents() -> dict[str, dict]:
    """File name -> what run_models.py wrote, the charted file first."""
    names = sorted((p.name for p in FOLDER.glob("*.json")), key=lambda n: (n != CHARTED[0], n))
    return {n: json.loads((FOLDER / n).read_text()) for n in names if n != LOAD_TIMES}


def load_times() -> dict | None:
    """What load_times.py wrote; None where nobody has run it."""
    path = FOLDER / LOAD_TIMES
    return json.loads(path.read_text()) if path.exists() else None


def is_tensorflow(peer: str) -> bool:
    """TensorFlow itself in any setting; plug-ins such as zentf are peers of their own."""
    return peer.startswith(TENSORFLOW)


def speedup(result: dict, peer: str) -> float:
    """Their time divided by ours, by medians."""
    return result["peers"][peer]["median_ms"] / result["peers"][OURS]["median_ms"]


def title(peer: str, document: dict | None = None) -> str:
    """The name of a library; TensorFlow's default on the document's machine is marked as that."""
    name = PEERS[peer].title if peer in PEERS else peer
    marked = document is not None and peer == document.get("tensorflow_default")
    return f"{name} (its default)" if marked else name


def network(model: str) -> str:
    row = ZOO[model]
    return row.title if row.size[0] < 400 else f"{row.title}, {row.size[0]}x{row.size[1]}"


def milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    numbers = "".join("---:|" for _ in header[1:])
    lines = ["| " + " | ".join(header) + " |", f"|---|{numbers}"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def charted(document: dict) -> list[dict]:
    """What the chart shows: batch 1 on the most threads up to two, where ours was timed."""
    results = [r for r in document["results"] if r["batch"] == 1 and _timed(r, OURS)]
    most = max((r["threads"] for r in results if r["threads"] <= 2), default=0)
    return [r for r in results if r["threads"] == most]


def by_class(found: dict[str, dict]) -> dict[str, list[tuple[dict, dict]]]:
    """Class of networks -> (document, result) of each charted network of that class."""
    rows = [(found[n], result) for n in CHARTED if n in found for result in charted(found[n])]
    return {
        name: [row for row in rows if ZOO[row[1]["model"]].class_name == name]
        for name in CLASSES
        if any(ZOO[row[1]["model"]].class_name == name for row in rows)
    }


def tensorflow_of(document: dict, result: dict) -> str | None:
    """TensorFlow's default where it was timed, or else what was timed of it."""
    default = default_of(document)
    return default if _timed(result, default) else fastest(result, is_tensorflow)


def group(name: str, rows: list[tuple[dict, dict]]) -> Group:
    """The bars of a class: geometric means of time as a multiple of ours."""
    networks = ", ".join(ZOO[result["model"]].title.partition(",")[0] for _, result in rows)
    settings = {tensorflow_of(*row) for row in rows} - {None}
    tensorflow = [speedup(r, tensorflow_of(d, r)) for d, r in rows if tensorflow_of(d, r)]
    peers = [
        (PEERS[peer].title, "peer", [speedup(r, peer) for _, r in rows if _timed(r, peer)])
        for peer in CHARTED_PEERS
    ]
    peers.append((" and ".join(map(title, sorted(settings))), "tensorflow", tensorflow))
    bars = [
        Bar(
            who if len(ratios) == len(rows) else f"{who} ({len(ratios)} of {len(rows)})",
            statistics.geometric_mean(ratios),
            kind,
        )
        for who, kind, ratios in peers
        if ratios
    ]
    return Group(name, networks, [Bar("tf_blockdnn", 1.0, "ours"), *sorted(bars, key=_ratio)])


def _ratio(bar: Bar) -> float:
    return bar.ratio


def chart(found: dict[str, dict]) -> str:
    """The SVG."""
    subject = heading(found[CHARTED[0]])
    return measurements_picture.svg(
        f"Time of a call as a multiple of tf_blockdnn's, {subject}: geometric means",
        [group(name, rows) for name, rows in by_class(found).items()],
        fingerprint(found),
    )


def _timed(result: dict, peer: str) -> bool:
    return "median_ms" in result["peers"].get(peer, {})


def heading(document: dict) -> str:
    """The machine, as titles name it."""
    machine = document["machine"]
    return document.get("title") or f"{machine['cpu']}, {machine['isa']}"


def readme_part(found: dict[str, dict]) -> str:
    """The chart, and what each class of networks wins and costs, between the README's marks."""
    document = found[CHARTED[0]]
    results = charted(document)
    rows = []
    for name, each in by_class(found).items():
        tensorflow = [speedup(r, tensorflow_of(d, r)) for d, r in each if tensorflow_of(d, r)]
        peers = [speedup(r, best) for _, r in each if (best := best_peer_of(r))]
        networks = group(name, each).networks
        rows.append([f"{name}: {networks}", _span(tensorflow), _span(peers)])
    dates = sorted({found[name]["date"][:10] for name in CHARTED if name in found})
    lines = [
        BEGIN,
        "",
        CHART.format(picture=f"docs/{PICTURE.name}"),
        "",
        "How many times faster:",
        "",
        markdown_table(["networks", "than TensorFlow", "than the fastest peer"], rows),
        f"One image or text, {_threads(results[0]['threads'])}, {heading(document)}, "
        f"{' and '.join(dates)}, TensorFlow {versions(document)['TensorFlow']}; medians. "
        "[Measurements](docs/measurements.md) has every network, peer and way of calling; [the "
        "method](docs/method.md) says how they were measured.",
        "",
        costs(found),
        "",
        END,
    ]
    return "\n".join(lines)


def costs(found: dict[str, dict]) -> str:
    """Memory, the time to the first result, and where the lead is small, in sentences."""
    document = found[CHARTED[0]]
    peers = {r["model"]: r["peers"] for r in charted(document)}
    default, loaded = default_of(document), f"{OURS}-tf.saved_model.load"
    memory = [round(peers["resnet50"][who]["peak_bytes"] / _MIB) for who in (OURS, default)]
    start = [peers["resnet50"][who]["ready_seconds"] for who in (OURS, default)]
    mobile = next(r for r in charted(document) if r["model"] == "mobilenetv2")
    best = best_peer_of(mobile)
    small = mobile["peers"][best]["median_ms"] / mobile["peers"][loaded]["median_ms"]
    return (
        f"What it cost in these runs: a process with ResNet-50 took {memory[0]:,} MiB in all, and "
        f"{memory[1]:,} with TensorFlow alone; its first result came after {start[0]:.1f} s, and "
        f"after {start[1]:.1f}. Where it gained least: MobileNetV2 called through "
        f"`tf.saved_model.load` ran at {small:.2f} times the speed of {title(best)}."
    )


def best_peer_of(result: dict) -> str | None:
    """The fastest library that is not TensorFlow."""
    return fastest(result, lambda name: not is_ours(name) and not is_tensorflow(name))


def _span(ratios: list[float]) -> str:
    least, most = (f"{pick(ratios):.2f}" for pick in (min, max))
    return f"{least}x" if least == most else f"{least}x to {most}x"


def default_of(document: dict) -> str:
    """TensorFlow in the setting that it chooses itself on the document's machine."""
    return document["tensorflow_default"]


def _columns(results: list[dict], *wanted: str) -> list[str]:
    """Who has a column: whose rows have such a key; tf_blockdnn in one way of calling only."""
    keys = set(wanted)
    return [
        name
        for name in PEERS
        if (name == OURS or not is_ours(name))
        and any(keys & set(result["peers"].get(name, ())) for result in results)
    ]


def times_table(document: dict, results: list[dict]) -> str:
    """Everybody's median (minimum) for each network."""
    peers = _columns(results, "median_ms", "error")
    rows = []
    for result in results:
        best = best_peer(result, "median_ms")
        row = [network(result["model"])]
        for peer in peers:
            numbers = result["peers"].get(peer, {})
            if "median_ms" not in numbers:
                row.append("failed" if "error" in numbers else "")
                continue
            text = f"{milliseconds(numbers['median_ms'])} ({milliseconds(numbers['min_ms'])})"
            row.append(f"**{text}**" if peer == best else text)
        row.append(f"{speedup(result, best):.2f}x" if best and _timed(result, OURS) else "")
        rows.append(row)
    return markdown_table(["network", *(title(peer, document) for peer in peers), "speed-up"], rows)


def kept_tables(document: dict, results: list[dict]) -> str:
    """Peak memory and the time to the first result, where the benchmark kept them."""
    measures = (
        ("peak memory, MiB", "peak_bytes", lambda value: f"{value / _MIB:.0f}"),
        ("seconds to the first result", "ready_seconds", lambda value: f"{value:.1f}"),
    )
    tables = []
    for name, key, shown in measures:
        peers = _columns(results, key)
        rows = []
        for result in results:
            numbers = [result["peers"].get(peer, {}) for peer in peers]
            cells = (shown(row[key]) if key in row else "" for row in numbers)
            rows.append([network(result["model"]), *cells])
        if peers:
            tables.append(
                "\n" + markdown_table([name, *(title(peer, document) for peer in peers)], rows)
            )
    return "".join(tables)


def ways_table(results: list[dict]) -> str:
    """The ways of calling tf_blockdnn: median (minimum), and the speed-up by medians."""
    results = [result for result in results if sum(map(is_ours, result["peers"])) > 1]
    ways = [name for name in PEERS if is_ours(name) and any(name in r["peers"] for r in results)]
    rows = []
    for way in ways:
        row = [f"`{'fast(x)' if way == OURS else way.removeprefix(OURS + '-')}`"]
        for result in results:
            best = best_peer(result, "median_ms")
            numbers = result["peers"].get(way, {})
            if "median_ms" not in numbers or best is None:
                row.append("")
                continue
            theirs = result["peers"][best]["median_ms"]
            row.append(
                f"{milliseconds(numbers['median_ms'])} ({milliseconds(numbers['min_ms'])}),"
                f" {theirs / numbers['median_ms']:.2f}x"
            )
        rows.append(row)
    if not rows:
        return ""
    header = ["called as", *(network(result["model"]) for result in results)]
    return (
        "\nThe ways of calling an optimised model, and the speed-up of each over the fastest"
        " peer:\n\n" + markdown_table(header, rows)
    )


def not_measured(document: dict, results: list[dict]) -> str:
    """A line that says whom the tables lack, on which networks; empty where they lack nobody."""
    lacking = []
    for peer in _columns(results, "median_ms", "error"):
        names = [network(r["model"]) for r in results if not _timed(r, peer)]
        if names:
            lacking.append(f"{title(peer)} on {', '.join(names)}")
    return f"\nNot measured, or failed: {'; '.join(lacking)}.\n" if lacking else ""


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def conditions(document: dict) -> str:
    """A list of what has to be known to measure the same again."""
    machine = document["machine"]
    named = ", ".join(f"{name} {version}" for name, version in versions(document).items())
    settings = [f"`{name}={value}`" for name, value in document.get("environment", {}).items()]
    lines = [
        f"CPU: {machine['cpu']}, {machine['cores']} cores; {machine['system']}.",
        f"Date: {document['date'][:10]}. Commit: {document.get('commit', 'not noted')}.",
        f"{document['runs']} runs of each, in turn.",
        f"Measured in this run: {measured(document)}, and nothing else.",
        f"Versions: {named}.",
        f"TensorFlow's default here: {title(default_of(document)).removeprefix('TensorFlow, ')}.",
    ]
    if settings:
        lines.append(f"Environment: {', '.join(settings)}.")
    lines += [f"Command: `{document['command']}`", *document.get("notes", [])]
    return "".join(f"- {line}\n" for line in lines)


def measured(document: dict) -> str:
    """Which batches were measured with how many threads, such as "batch 1 with 1 and 2 threads"."""
    found: dict[int, list[int]] = {}
    for result in document["results"]:
        threads = found.setdefault(result["batch"], [])
        if result["threads"] not in threads:
            threads.append(result["threads"])
    each = ((batch, " and ".join(map(str, threads))) for batch, threads in found.items())
    return ", ".join(
        f"batch {batch} with {threads} thread{'' if threads == '1' else 's'}"
        for batch, threads in each
    )


_NAMES = {
    "tensorflow": "TensorFlow",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "ai-edge-litert": "LiteRT",
}


def versions(document: dict) -> dict[str, str]:
    """What the workers said about themselves; `PEERS` lists TensorFlow's first."""
    found = dict(document.get("versions", {}))
    for result in document["results"]:
        for peer, row in result["peers"].items():
            for name, version in row.get("versions", {}).items():
                # A plug-in brings a TensorFlow of its own.
                if version and (name != "tensorflow" or is_ours(peer) or is_tensorflow(peer)):
                    found.setdefault(_NAMES.get(name, name), version)
    found.pop(OURS, None)
    return found


def section(document: dict) -> str:
    """One file: conditions, then the tables of each batch and number of threads."""
    parts = [f"## {heading(document)}\n\n{conditions(document)}"]
    for threads, batch in dict.fromkeys((r["threads"], r["batch"]) for r in document["results"]):
        results = [
            r for r in document["results"] if r["batch"] == batch and r["threads"] == threads
        ]
        parts.append(f"\n### Batch {batch}, {_threads(threads)}\n")
        parts.append(not_measured(document, results) + "\n" + times_table(document, results))
        parts.append(ways_table(results) + kept_tables(document, results))
    return "".join(parts)


def load_section(document: dict) -> str:
    """How long a SavedModel takes to its first result, before and after."""
    rows = [
        [
            network(row["model"]),
            *(
                f"{row[k]['median_s']:.2f} ({row[k]['min_s']:.2f})"
                for k in ("original", "optimised")
            ),
            *(f"{row[k]['mib']:.0f}" for k in ("original", "optimised")),
        ]
        for row in document["results"]
    ]
    header = ["network", "original, s", "optimised, s", "original, MiB", "optimised, MiB"]
    return (
        "## Loading\n\nSeconds from the start of loading a SavedModel to its first result, and the "
        "memory of the process then: medians of "
        f"{document['runs']} processes of each (the fastest in parentheses), "
        f"{document['machine']['cpu']}, {document['date'][:10]}, commit {document['commit']}.\n\n"
        + markdown_table(header, rows)
    )


def page(found: dict[str, dict], loads: dict | None) -> str:
    """docs/measurements.md."""
    shown = CHART.format(picture=PICTURE.name)
    parts = [INTRODUCTION.format(chart=shown), *map(section, found.values())]
    return "\n".join([*parts, load_section(loads)] if loads else parts)


def fingerprint(found: dict[str, dict]) -> str:
    """Changes with the numbers that the chart shows."""
    shown = [[found[name]["results"], heading(found[name])] for name in CHARTED if name in found]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]


def outdated() -> list[str]:
    """A line for each file that this script would write otherwise."""
    found = documents()
    stale = []
    if not PAGE.exists() or PAGE.read_text() != page(found, load_times()):
        stale.append(f"{PAGE.name} is out of date")
    if not PICTURE.exists() or PICTURE.read_text() != chart(found):
        stale.append(f"{PICTURE.name} is out of date")
    if readme_part(found) not in README.read_text():
        stale.append(f"the chart's lines in {README.name} are out of date")
    return [f"{line}: run `make docs`" for line in stale]


def write() -> None:
    """Writes the page, the chart and the README's part."""
    found = documents()
    PAGE.write_text(page(found, load_times()))
    PICTURE.write_text(chart(found))
    text = README.read_text()
    part = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not part.search(text):
        sys.exit(f"{README.name} lacks the marks {BEGIN} and {END}")
    README.write_text(part.sub(lambda _: readme_part(found), text))


def main() -> None:
    """Writes, or checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        write()
    elif stale := outdated():
        sys.exit("\n".join(stale))


if __name__ == "__main__":
    main()
