"""Measures every distinct convolution of the networks against oneDNN's, turn by turn.

    python benchmarks/run_layers.py [resnet50 vgg16 …] [--threads 2] [--batch 1] [--isa avx2]

Gets oneDNN (from PyPI into an environment of its own, or from Debian), builds
benchmarks/cc/conv_layers with Bazel, runs it, prints a table for each network and writes a JSON
file. `.build/bazel-bin/benchmarks/cc/conv_layers --help` says what the options do.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from measuring import machine, turns
from measuring.prepare import BUILD, HERE, SetUpError
from measuring.turns import Say
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

ROOT = HERE.parent
SHAPES = HERE / "shapes"
PROGRAM = ROOT / ".build" / "bazel-bin" / "benchmarks" / "cc" / "conv_layers"

# A ratio above this is shown in red: it is slower than the peer by more than the noise.
SLOWER = 1.03
# Cores that other processes may use while the benchmark runs.
NOISY = 0.1


def main() -> int:
    """Parses the arguments, sets up, measures, prints and writes. Returns the exit code."""
    return turns.run("run_layers", _parse(), 180, _measure)


def _measure(options, say: Say) -> tuple[list[Table], dict]:
    """A table for each network, and what conv_layers prints."""
    _build(_onednn(options.onednn, say), say)
    busy = machine.BusyElsewhere()
    results = _run(options)
    others = busy.cores()
    if others > NOISY:
        say(f"Other processes kept {others:.1f} cores busy: measure again.", style="red")
    document = {"cores_busy_elsewhere": round(others, 2), "results": results}
    return [_table(result) for result in results], document


def _parse() -> argparse.Namespace:
    networks = sorted(path.stem for path in SHAPES.glob("*.txt"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "networks", nargs="*", default=networks, help=f"of {', '.join(networks)}; default: all"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--isa", choices=("generic", "avx2", "avx512"), help="caps both")
    parser.add_argument(
        "--algorithm", choices=("auto", "direct", "winograd", "paired"), default="auto"
    )
    parser.add_argument("--memory", choices=("network", "cold", "hot"), default="network")
    parser.add_argument("--filter", default="", help="part of a layer's name or shape")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each")
    parser.add_argument(
        "--onednn",
        choices=("pypi", "debian"),
        default="pypi",
        help="pypi falls back to debian; Debian 12 has 2.6, which still knows Winograd",
    )
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "layers.json")
    options = parser.parse_args()
    if unknown := [name for name in options.networks if name not in networks]:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(networks)}")
    return options


def _onednn(wanted: str, say: Say) -> pathlib.Path:
    """The folder with oneDNN's include/ and lib/."""
    if wanted == "pypi":
        try:
            return pathlib.Path(turns.workshop(say).interpreter("onednn")).parents[1]
        except SetUpError as error:
            say(f"{error}; trying Debian's libdnnl-dev")
    system = pathlib.Path("/usr")
    if not (system / "include" / "oneapi" / "dnnl" / "dnnl.hpp").exists():
        install = ["apt-get", "install", "-y", "--no-install-recommends", "libdnnl-dev"]
        if os.geteuid():
            install.insert(0, "sudo")
        say(f"==> {' '.join(install)}")
        can_install = shutil.which(install[0]) is not None
        if not can_install or subprocess.run(install, stdout=2, check=False).returncode:
            raise SetUpError("no oneDNN: neither from PyPI nor as Debian's libdnnl-dev")
    return system


def _build(onednn: pathlib.Path, say: Say) -> None:
    environ = os.environ | {"PYTHON_BIN_PATH": sys.executable, "ONEDNN_ROOT": str(onednn)}
    say("==> bazel build //benchmarks/cc:conv_layers")
    command = [ROOT / "build_tools" / "bazel", "build", "//benchmarks/cc:conv_layers"]
    if subprocess.run(command, env=environ, stdout=2, check=False).returncode:
        raise SetUpError("the build failed; what Bazel said is above")


def _run(options: argparse.Namespace) -> list[dict]:
    """A dict a network: {"run", "layers", "total"}, the objects that conv_layers prints."""
    files = [SHAPES / f"{name}.txt" for name in options.networks]
    command = [PROGRAM, "--json", "--filter", options.filter, *files]
    for name in ("threads", "batch", "isa", "algorithm", "memory", "rounds"):
        if value := getattr(options, name):
            command += [f"--{name}", str(value)]
    rows = {path.stem: _count_rows(path) for path in files}
    results: list[dict] = []
    with (
        Progress(console=Console(stderr=True)) as progress,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        task = progress.add_task("layers", total=sum(rows.values()))
        before = 0
        for line in process.stdout:
            message = json.loads(line)
            kind = message.pop("kind")
            if kind == "run":
                network = pathlib.Path(message["shapes"]).stem
                results.append({"run": message | {"shapes": network}, "layers": []})
            elif kind == "layer":
                results[-1]["layers"].append(message)
                progress.update(task, advance=1, description=f"{network} {message['name']}")
            else:
                results[-1]["total"] = message
                before += rows[network]
                progress.update(task, completed=before)
        progress.update(task, completed=sum(rows.values()))
    if process.returncode:
        raise SetUpError("conv_layers failed")
    return results


def _count_rows(path: pathlib.Path) -> int:
    return sum(not line.startswith("#") for line in path.read_text().splitlines())


def _table(result: dict) -> Table:
    run, total = result["run"], result["total"]
    place = f"{run['shapes']}, threads {run['threads']}, {run['isa']}"
    table = Table(
        title=f"{place}: microseconds, min (median)",
        caption=f"oneDNN {run['onednn']}; memory: {run['memory']}; multiply-add peak "
        f"{run['fma_peak_gflops']:.0f} GFLOP/s, reads {run['read_gb_per_s']:.0f} GB/s",
        show_footer=True,
    )
    table.add_column("layer", "total", overflow="fold")
    table.add_column("shape")
    table.add_column("count", str(total["count"]), justify="right")
    table.add_column("algorithm")
    table.add_column("tf_blockdnn", _times(total["ours"]), justify="right")
    table.add_column("oneDNN's", overflow="fold")
    table.add_column("oneDNN", _times(total["onednn"]), justify="right")
    table.add_column("ratio", _ratio(total), justify="right")
    table.add_column("GFLOP/s", f"{total['gflops']:.0f}", justify="right")
    table.add_column("of peak", f"{total['percent_of_peak']:.0f} %", justify="right")
    for layer in result["layers"]:
        table.add_row(
            layer["name"],
            layer["shape"],
            str(layer["count"]),
            layer["ours"]["algorithm"],
            _times(layer["ours"]),
            layer["onednn"]["algorithm"],
            _times(layer["onednn"]),
            _ratio(layer),
            f"{layer['gflops']:.0f}",
            f"{layer['percent_of_peak']:.0f} %",
        )
    return table


def _times(entry: dict) -> str:
    digits = 1 if entry["min_us"] < 1000 else 0
    return f"{entry['min_us']:.{digits}f} ({entry['median_us']:.{digits}f})"


def _ratio(entry: dict) -> str:
    ratio = entry["ours"]["min_us"] / entry["onednn"]["min_us"]
    return f"[red]{ratio:.2f}[/]" if ratio > SLOWER else f"{ratio:.2f}"


if __name__ == "__main__":
    sys.exit(main())
