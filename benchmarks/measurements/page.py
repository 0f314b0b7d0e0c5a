"""Writes docs/measurements.md, its chart and the README's part from docs/measurements/*.json."""

from __future__ import annotations

import statistics

from load_test import SERVERS
from measuring.results import OURS, fastest, is_ours
from peers.networks import PEERS
from peers.rnn import PEERS as RECURRENT_PEERS
from peers.training import PEERS as TRAINING_PEERS

from . import chart, readme
from .document import (
    FOLDER,
    ROOT,
    dates,
    documents,
    heading,
    is_peer,
    is_tensorflow,
    markdown_table,
    network,
    precision,
    rows,
    speedup,
    timed,
    times,
    title,
)

PAGE, PICTURE, README = FOLDER.with_suffix(".md"), FOLDER.with_suffix(".svg"), ROOT / "README.md"
_MIB = 1 << 20
_SIDES = ("original", "optimised")  # of a load

INTRODUCTION = """# Measurements

Whole networks and recurrent layers on made-up inputs with random weights, measured as
[the method](method.md) says. There is one section for each machine. `make measure` measures your
machine and writes this page.

Times are **milliseconds of a call, median (minimum)**. A speed-up is **the peer's median divided by
ours**: 1.8x means that tf_blockdnn is 1.8 times as fast. Bold marks the fastest peer. TensorFlow
was measured with oneDNN on and off; headings say which of the two it does by default on the CPU.

{chart}
"""


def page(found: list[dict]) -> str:
    """docs/measurements.md."""
    shown = readme.CHART.format(picture=PICTURE.name)
    return "\n".join([INTRODUCTION.format(chart=shown), *map(section, found)])


def section(document: dict) -> str:
    """One file: the machine, then a part for each condition and build."""
    parts = [f"## {heading(document)}\n\n{_conditions(document)}"]
    for each in _grouped(document["networks"], "commit", "threads", "batch"):
        parts.append(_networks(document, each))
    for each in _grouped(document["low_precision"], "commit"):
        parts.append(_low_precision(document, each))
    for each in _grouped(document["recurrent"], "commit"):
        columns = [p for p in RECURRENT_PEERS if any(p in row["peers"] for row in each)]
        about = f"Layers that return all steps, {_threads(each[0]['threads'])}"
        parts += [_heading("Recurrent layers", document, each, about)]
        parts.append(_times_table(document, each, columns))
    for each in _grouped(document["loading"], "commit"):
        parts.append(_loading(document, each))
    for each in _grouped(document["serving"], "commit"):
        parts.append(_serving(document, each))
    for each in _grouped(document["training"], "commit"):
        parts.append(_training(document, each))
    return "\n".join(parts)


def _grouped(rows: list[dict], *keys: str) -> list[list[dict]]:
    """The rows in groups that agree in these keys, in the order of the file."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.values())


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _conditions(document: dict) -> str:
    machine = document["machine"]
    named = ", ".join(f"{name} {version}" for name, version in versions(document).items())
    default = title(document["tensorflow_default"]).removeprefix("TensorFlow, ")
    lines = [
        f"{machine['cores']} cores; {machine['system']}. TensorFlow's default here: {default}.",
        f"Versions: {named}.",
        *document.get("notes", []),
    ]
    return "".join(f"- {line}\n" for line in lines)


def _heading(name: str, document: dict, each: list[dict], about: str) -> str:
    """The title of a part, and under it the build, the date and how busy the machine was."""
    commits = {row["commit"] for row in rows(document)}
    build = each[0]["commit"]
    busy = max(row.get("cores_busy_elsewhere", 0) for row in each)
    note = f" Other processes kept up to {busy:.1f} cores busy." if busy > 0.1 else ""
    other = f" ({build})" if len(commits) > 1 else ""
    runs = each[0].get("runs")
    counted = f" {runs} runs of each, in turn." if runs else ""
    when = " and ".join(dates(each))
    return f"### {name}{other}\n\n{about}; commit {build}, {when}.{counted}{note}\n"


def versions(document: dict) -> dict[str, str]:
    """What the workers said about themselves; `PEERS` lists TensorFlow's first."""
    names = {"tensorflow": "TensorFlow", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
    names |= {"ai-edge-litert": "LiteRT", "keras": "Keras"}
    found: dict[str, str] = {}
    for row in rows(document):
        for peer, numbers in row.get("peers", {}).items():
            for name, version in numbers.get("versions", {}).items():
                # A plug-in brings a TensorFlow of its own.
                if version and (name != "tensorflow" or is_ours(peer) or is_tensorflow(peer)):
                    found.setdefault(names.get(name, name), version)
    found.pop(OURS, None)
    return found


def _networks(document: dict, results: list[dict]) -> str:
    batch, threads = results[0]["batch"], results[0]["threads"]
    name = f"Networks: batch {batch}, {_threads(threads)}"
    peers = [
        name
        for name in PEERS
        if (name == OURS or not is_ours(name)) and any(name in r["peers"] for r in results)
    ]
    return "\n".join(
        [
            _heading(name, document, results, "float32"),
            _times_table(document, results, peers),
            _ways_table(results),
            _kept_tables(document, results, peers) if (batch, threads) == (1, 2) else "",
        ]
    )


def _cell(row: dict, peer: str, bold: bool = False) -> str:
    if not timed(row, peer):
        return "failed" if "error" in row["peers"].get(peer, {}) else ""
    text = times(row["peers"][peer])
    return f"**{text}**" if bold else text


def _times_table(document: dict, results: list[dict], peers: list[str]) -> str:
    """Everybody's median (minimum) for each network, and our speed-up over the fastest peer."""
    table = []
    for row in results:
        best = fastest(row, lambda peer: is_peer(peer) or is_tensorflow(peer))
        ratio = f"{speedup(row, best):.2f}x" if best and timed(row, OURS) else ""
        cells = (_cell(row, peer, peer == best) for peer in peers)
        table.append([network(row["model"]), ratio, *cells])
    header = ["network", "speed-up", *(title(peer, document) for peer in peers)]
    return markdown_table(header, table)


def _ways_table(results: list[dict]) -> str:
    """The ways of calling tf_blockdnn, and the speed-up of each over the fastest peer."""
    results = [row for row in results if sum(map(is_ours, row["peers"])) > 1]
    ways = [way for way in PEERS if is_ours(way) and any(timed(row, way) for row in results)]
    if not results:
        return ""
    table = []
    for way in ways:
        cells = [f"`{'fast(x)' if way == OURS else way.removeprefix(OURS + '-')}`"]
        for row in results:
            best = fastest(row, is_peer)
            ratio = f", {speedup(row, best, way):.2f}x" if best and timed(row, way) else ""
            cells.append(_cell(row, way) + ratio)
        table.append(cells)
    return "Ways of calling an optimised model:\n\n" + markdown_table(
        ["called as", *(network(row["model"]) for row in results)], table
    )


def _kept_tables(document: dict, results: list[dict], peers: list[str]) -> str:
    """Memory of the processes (of earlier rows the peak) and the time to the first result."""
    measures = (
        ("memory above the imports, MiB", "memory_bytes", lambda value: f"{value / _MIB:.0f}"),
        ("peak memory of the process, MiB", "peak_bytes", lambda value: f"{value / _MIB:.0f}"),
        ("seconds to the first result", "ready_seconds", lambda value: f"{value:.1f}"),
    )
    tables = []
    for name, key, shown in measures:
        table = [
            [
                network(row["model"]),
                *(
                    shown(row["peers"][peer][key]) if key in row["peers"].get(peer, {}) else ""
                    for peer in peers
                ),
            ]
            for row in results
        ]
        if any(any(cells[1:]) for cells in table):
            tables.append(markdown_table([name, *(title(p, document) for p in peers)], table))
    return "\n".join(tables)


def _low_precision(document: dict, results: list[dict]) -> str:
    """int8 with int8, bf16 with bf16; float32 stands beside them."""
    columns = [OURS]
    for of in ("bf16", "int8"):
        columns += [
            p for p in PEERS if precision(p) == of and any(p in r["peers"] for r in results)
        ]
    table = []
    for row in results:
        best = {
            fastest(row, lambda p, of=of: p in columns and precision(p) == of)
            for of in ("bf16", "int8")
        }
        table.append([network(row["model"]), *(_cell(row, p, p in best) for p in columns)])
    about = f"Batch 1, {_threads(results[0]['threads'])}; bold is the fastest of its type"
    names = ("float32" if p == OURS else title(p, document) for p in columns)
    return "\n".join(
        [
            _heading("Low precision", document, results, about),
            markdown_table(["network", *names], table),
        ]
    )


def _loading(document: dict, results: list[dict]) -> str:
    table = [
        [
            network(row["model"]),
            *(f"{row[k]['seconds']:.2f} ({row[k]['least_s']:.2f})" for k in _SIDES),
            *(f"{row[k]['mib']:.0f}" for k in _SIDES),
        ]
        for row in results
    ]
    about = (
        "Seconds from loading a SavedModel to its first result, median (minimum) of processes, and "
        "the memory after three calls above that after the imports; TensorFlow by its default, "
        "optimised models by `bd.load`"
    )
    header = ["network", "original, s", "optimised, s", "original, MiB", "optimised, MiB"]
    return "\n".join([_heading("Loading", document, results, about), markdown_table(header, table)])


def _serving(document: dict, results: list[dict]) -> str:
    table = []
    for row in results:
        for server, sides in row["servers"].items():
            rates = [sides[side]["requests/s"] for side in _SIDES]
            shown = (
                f"{sides[side]['requests/s']:.0f}; {sides[side]['p50, ms']:.0f}, "
                f"{sides[side]['p99, ms']:.0f} ms"
                for side in _SIDES
            )
            name = f"{network(row['model'])}, {SERVERS[server]}"
            table.append([name, f"{rates[1] / rates[0]:.2f}x", *shown])
    about = (
        "Requests a second of one image, by eight clients on the same machine, and the median and "
        "99th percentile of what one takes; two processes of one thread"
    )
    header = ["network, server", "speed-up", *_SIDES]
    return "\n".join([_heading("Servers", document, results, about), markdown_table(header, table)])


def _training(document: dict, results: list[dict]) -> str:
    names = [name for name in TRAINING_PEERS if any(name in row["peers"] for row in results)]
    table = []
    for row in results:
        steps = {n: numbers["step"] for n, numbers in row["peers"].items() if "step" in numbers}
        medians = {name: statistics.median(step) for name, step in steps.items()}
        best = min((medians[n] for n in medians if n != "layers"), default=None)
        ratio = f"{best / medians['layers']:.2f}x" if best and "layers" in medians else ""
        cells = (
            times({"median_ms": medians[n], "min_ms": min(steps[n])}) if n in steps else "failed"
            for n in names
        )
        table.append([network(row["model"]), ratio, *cells])
    about = f"Batch {results[0]['batch']}, {_threads(results[0]['threads'])}, SGD; ms a step"
    header = ["network", "speed-up", *(TRAINING_PEERS[name].title for name in names)]
    return "\n".join(
        [_heading("Training steps", document, results, about), markdown_table(header, table)]
    )


def _files(found: list[dict]) -> dict:
    """Path -> what belongs there."""
    newest = found[0]
    return {
        PAGE: page(found),
        PICTURE: chart.chart(newest),
        README: readme.text(README.read_text(), newest),
    }


def outdated() -> list[str]:
    """The names of the files that `write` would change."""
    return [p.name for p, text in _files(documents()).items() if p.read_text() != text]


def write() -> None:
    """Writes the page, the chart and the README's part."""
    for path, text in _files(documents()).items():
        path.write_text(text)
