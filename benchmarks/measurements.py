"""Writes docs/measurements.md, its picture and the README's table from docs/measurements/*.json.

    python benchmarks/measurements.py                    # writes all three anew
    python benchmarks/measurements.py --check            # says what is out of date

A file in docs/measurements/ is what run_models.py wrote, with "title" (the CPU family) added by
hand. Optional keys: "readme" (a number: this file has a table in the README, in that order),
"notes" (sentences), "versions" ({library: version}), "tensorflow" (what its column shows),
"repeats" and "with_load" (see zen3.json). "ratios" may hold pairs whose times were not kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import re
import sys

from models import ZOO
from peers.networks import PEERS

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "measurements"
PAGE, PICTURE, README = FOLDER.with_suffix(".md"), FOLDER.with_suffix(".svg"), ROOT / "README.md"
OURS, TENSORFLOW = "tf_blockdnn", "tensorflow"
SETTINGS = (TENSORFLOW, "tensorflow-plain")  # with oneDNN and without
BEGIN, END = "<!-- made by benchmarks/measurements.py -->", "<!-- end of what it made -->"
_MIB = 1 << 20

INTRODUCTION = """# Measurements

Whole networks in float32, as `benchmarks/run_models.py` measures them: every library has a process
of its own, and the processes take turns in short bursts, so that drift and disturbance hit all of
them alike. A library is timed only if its outputs agree with TensorFlow's. tf_blockdnn is called as
`fast(x)` with eager tensors, the others in their fastest documented way.

Times are **medians in milliseconds for each call, with the fastest run in parentheses**. A speed-up
is **their time divided by ours**: 1.8x means that tf_blockdnn is 1.8 times as fast. Bold marks the
fastest other library.

![How many times longer each library takes]({picture})

This page, its picture and the table in the README are written by `make docs` from the files in
[docs/measurements](measurements). To add a measurement, put the JSON file that
`benchmarks/run_models.py` wrote there and give it a `"title"`. Experiments with single layers and
mechanisms stand in [Experiments](experiments.md).
"""


def documents() -> list[dict]:
    """All files, those with a table in the README first, in their order."""
    found = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return sorted(found, key=lambda document: document.get("readme", 99))


def is_ours(peer: str) -> bool:
    return peer.startswith(OURS)


def is_tensorflow(peer: str) -> bool:
    """TensorFlow itself in any setting; plug-ins such as zentf are peers of their own."""
    return peer.startswith(TENSORFLOW)


def fastest(result: dict, wanted) -> str | None:
    """The fastest peer by medians of those that `wanted` accepts; None if none was timed."""
    times = {
        name: row["median_ms"]
        for name, row in result["peers"].items()
        if "median_ms" in row and wanted(name)
    }
    return min(times, key=times.get, default=None)


def speedup(result: dict, peer: str) -> float:
    """Their time divided by ours, by medians."""
    return result["peers"][peer]["median_ms"] / result["peers"][OURS]["median_ms"]


def title(peer: str) -> str:
    return PEERS[peer].title if peer in PEERS else peer


def network(model: str) -> str:
    row = ZOO[model]
    return row.title if row.size[0] < 400 else f"{row.title}, {row.size[0]}x{row.size[1]}"


def milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    numbers = "".join("---:|" for _ in header[1:])
    lines = ["| " + " | ".join(header) + " |", f"|---|{numbers}"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def readme_table(document: dict) -> str:
    """Network, ours, TensorFlow, the fastest other: medians at batch 1, with the speed-up."""
    results = [r for r in document["results"] if r["batch"] == 1 and OURS in r["peers"]]
    settings = {fastest(result, SETTINGS.__contains__) for result in results} - {None}
    rows = []
    for result in results:
        row = [network(result["model"]), milliseconds(result["peers"][OURS]["median_ms"])]
        for peer in (
            fastest(result, SETTINGS.__contains__),
            fastest(result, lambda name: not is_ours(name) and not is_tensorflow(name)),
        ):
            if peer is None:
                row += ["", ""]
                continue
            named = not is_tensorflow(peer) or len(settings) > 1
            name = f"{title(peer).removeprefix('TensorFlow, ')} " if named else ""
            time = milliseconds(result["peers"][peer]["median_ms"])
            row += [f"{name}{time}", f"**{speedup(result, peer):.1f}x**"]
        rows.append(row)
    tensorflow = title(settings.pop()) if len(settings) == 1 else "TensorFlow, faster setting"
    header = [document["title"], "tf_blockdnn", tensorflow, "speed-up"]
    return markdown_table([*header, "fastest other", "speed-up"], rows)


def readme_part(found: list[dict]) -> str:
    """All tables of the README, between its two marks."""
    tables = [readme_table(document) for document in found if "readme" in document]
    return "\n".join([BEGIN, "", *tables, END])


def _columns(results: list[dict], *wanted: str) -> list[str]:
    """Who has a column: whose rows have such a key; tf_blockdnn in one way of calling only."""
    keys = set(wanted)
    return [
        name
        for name in PEERS
        if (name == OURS or not is_ours(name))
        and any(keys & set(result["peers"].get(name, ())) for result in results)
    ]


def times_table(results: list[dict]) -> str:
    """Everybody's median (minimum) for each network."""
    peers = _columns(results, "median_ms", "error")
    rows = []
    for result in results:
        best = fastest(result, lambda name: not is_ours(name))
        row = [network(result["model"])]
        for peer in peers:
            numbers = result["peers"].get(peer, {})
            if "median_ms" not in numbers:
                row.append("failed" if "error" in numbers else "")
                continue
            text = f"{milliseconds(numbers['median_ms'])} ({milliseconds(numbers['min_ms'])})"
            row.append(f"**{text}**" if peer == best else text)
        row.append(f"{speedup(result, best):.2f}x" if best and OURS in result["peers"] else "")
        rows.append(row)
    return markdown_table(["network", *(title(peer) for peer in peers), "speed-up"], rows)


def kept_tables(results: list[dict]) -> str:
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
            tables.append("\n" + markdown_table([name, *map(title, peers)], rows))
    return "".join(tables)


def ways_table(results: list[dict]) -> str:
    """The ways of calling tf_blockdnn: median (minimum), and the speed-up by medians."""
    results = [result for result in results if sum(map(is_ours, result["peers"])) > 1]
    ways = [name for name in PEERS if is_ours(name) and any(name in r["peers"] for r in results)]
    rows = []
    for way in ways:
        row = [f"`{'fast(x)' if way == OURS else way.removeprefix(OURS + '-')}`"]
        for result in results:
            best = fastest(result, lambda name: not is_ours(name))
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
        "\nThe ways of calling an optimised model, and how many times as fast each is as the"
        " fastest other library:\n\n" + markdown_table(header, rows)
    )


def ratios_table(document: dict) -> str:
    """Speed-ups of which only ratios were kept, a column for each batch and number of threads."""
    timed = {(result["model"], result["batch"]) for result in document["results"]}
    ratios = [
        ratio
        for ratio in document.get("ratios", [])
        if ratio.get("median")
        and ("threads" in ratio or (ratio["model"], ratio["batch"]) not in timed)
    ]
    if not ratios:
        return ""
    columns = list(
        dict.fromkeys((r["batch"], r.get("threads", document["threads"])) for r in ratios)
    )
    cells: dict[str, dict] = {}
    for ratio in ratios:
        peer = f" ({title(ratio['best_peer'])})" if ratio.get("best_peer") else ""
        column = ratio["batch"], ratio.get("threads", document["threads"])
        cells.setdefault(ratio["model"], {})[column] = f"{1 / ratio['median']:.1f}x{peer}"
    header = [f"batch {batch}, {_threads(threads)}" for batch, threads in columns]
    rows = [[network(model), *(row.get(c, "") for c in columns)] for model, row in cells.items()]
    return "\nSpeed-up over the fastest other library, by medians:\n\n" + markdown_table(
        ["network", *header], rows
    )


def repeats_table(document: dict) -> str:
    """How far speed-ups lie apart in further runs."""
    rows = []
    for repeat in document.get("repeats", []):
        middle = f", middle {1 / repeat['middle']:.2f}x" if "middle" in repeat else ""
        peer = title(repeat["best_peer"]) if "best_peer" in repeat else "the fastest other"
        spans = [
            f"{1 / high:.2f}x" if low == high else f"{1 / high:.2f}x to {1 / low:.2f}x"
            for low, high in (repeat["median"], repeat["min"])
        ]
        rows.append(
            [network(repeat["model"]), peer, str(repeat["runs"]), spans[0] + middle, spans[1]]
        )
    header = ["repeated", "compared with", "runs", "speed-up by medians", "by minima"]
    return "\n" + markdown_table(header, rows) if rows else ""


def load_table(document: dict) -> str:
    """How much longer a call takes while another process holds one core."""
    models: dict[str, dict] = {}
    for row in document.get("with_load", []):
        models.setdefault(row["model"], {})[row["peer"]] = row["slowdown"]
    if not models:
        return ""
    peers = list(dict.fromkeys(peer for row in models.values() for peer in row))
    rows = [[network(m), *(f"{row[p]:.2f}" for p in peers)] for m, row in models.items()]
    header = ["time with one core taken, as a multiple", *(title(peer) for peer in peers)]
    return "\n" + markdown_table(header, rows)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def conditions(document: dict) -> str:
    """A list of what has to be known to measure the same again."""
    machine = document["machine"]
    versions = document.get("versions") or _versions(document)
    settings = [f"`{name}={value}`" for name, value in document.get("environment", {}).items()]
    lines = [
        f"CPU: {machine['cpu']}, {machine['cores']} cores; {machine['system']}.",
        f"Date: {document['date'][:10]}. Threads: {document['threads']}.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
    ]
    if "tensorflow" in document:
        lines.append(f"The TensorFlow column was measured with {document['tensorflow']}.")
    if settings:
        lines.append(f"Environment: {', '.join(settings)}.")
    listed = "".join(f"- {line}\n" for line in lines)
    return f"{listed}- Command: `{document['command']}`\n"


def _versions(document: dict) -> dict[str, str]:
    """What the workers said about themselves."""
    found: dict[str, str] = {}
    for result in document["results"]:
        for row in result["peers"].values():
            found |= {name: v for name, v in row.get("versions", {}).items() if v}
    return found


def section(document: dict) -> str:
    """One file: conditions, times, ratios, notes."""
    parts = [f"## {document['title']}\n\n{conditions(document)}"]
    for batch in sorted({result["batch"] for result in document["results"]}):
        results = [result for result in document["results"] if result["batch"] == batch]
        parts.append(f"\nBatch {batch}, {_threads(document['threads'])}, milliseconds:\n\n")
        parts.append(times_table(results) + ways_table(results) + kept_tables(results))
    parts += [ratios_table(document), repeats_table(document), load_table(document)]
    if document.get("notes"):
        parts.append("\n" + "".join(f"- {note}\n" for note in document["notes"]))
    return "".join(parts)


def page(found: list[dict]) -> str:
    """docs/measurements.md."""
    head = INTRODUCTION.format(picture=PICTURE.name)
    return "\n".join([head, *(section(document) for document in found)])


def fingerprint(found: list[dict]) -> str:
    """Changes with the numbers that the picture shows, and with the way it is drawn."""
    drawn = [document for document in found if "readme" in document]
    source = pathlib.Path(__file__).with_name("measurements_picture.py").read_text()
    return hashlib.sha256((json.dumps(drawn) + source).encode()).hexdigest()[:16]


def outdated() -> list[str]:
    """A line for each file that this script would write otherwise."""
    found = documents()
    stale = []
    if not PAGE.exists() or PAGE.read_text() != page(found):
        stale.append(f"{PAGE.name} is out of date")
    if not PICTURE.exists() or fingerprint(found) not in PICTURE.read_text():
        stale.append(f"{PICTURE.name} is out of date")
    if readme_part(found) not in README.read_text():
        stale.append(f"the table of {README.name} is out of date")
    return [f"{line}: run `make docs`" for line in stale]


def write() -> None:
    """Writes the page, the picture and the README's table."""
    from measurements_picture import draw

    found = documents()
    PAGE.write_text(page(found))
    draw([document for document in found if "readme" in document], PICTURE, fingerprint(found))
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
