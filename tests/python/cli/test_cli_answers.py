"""What the commands print: JSON as docs/cli.md lists it, examples, colours, the table of peers."""

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import rich.console

from tf_blockdnn.python import cli
from tf_blockdnn.python.cli import tables
from tf_blockdnn.python.showing.peers import compare, libraries

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text()
ANSWERS = {
    name: re.findall(r"`([a-z_]+)`", cells)
    for name, cells in re.findall(r"^\| `([a-z]+(?: --peers)?)` \| (.*) \|$", PAGE, re.MULTILINE)
}


@pytest.fixture
def call(call):
    """The same, and returns what it printed."""

    def run(*arguments):
        code, printed, error = call(*arguments)
        assert not code, error
        return printed

    return run


@pytest.mark.parametrize(
    "command",
    [
        ("optimize", "{tiny}", "{place}/out"),
        ("inspect", "{tiny}"),
        ("benchmark", "{tiny}", "--runs", 1, "--size", 16, "--inter-op-threads", 0),
        ("layout", "nChw8c"),
        ("info",),
    ],
)
def test_the_page_lists_the_keys_of_each_answer(call, tiny, tmp_path, command):
    arguments = [str(part).format(tiny=tiny, place=tmp_path) for part in command]
    answer = json.loads(call(*arguments, "--json"))
    listed = ANSWERS[command[0]]
    assert answer["format"] == 1
    if command[0] in ("optimize", "inspect"):  # and those of the report, which its page lists
        assert set(listed) <= set(answer)
    else:
        assert set(listed) == set(answer)


@pytest.mark.parametrize("name", [command.__name__ for command in cli.COMMANDS])
def test_help_ends_with_an_example_that_parses(call, name):
    text = " ".join(call(name, "--help").split())
    example = text.partition("Example: ")[2].split()
    assert example[:2] == ["tf-blockdnn", name]
    options = re.findall(r"--[a-z-]+", " ".join(example))
    assert all(option in text.partition("Example: ")[0] for option in options)


def test_completion_names_the_commands():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tf_blockdnn.python.cli import app; app(prog_name='tf-blockdnn')",
        ],
        env=os.environ
        | {
            "_TF_BLOCKDNN_COMPLETE": "complete_bash",
            "COMP_WORDS": "tf-blockdnn in",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["inspect", "info"], done.stderr


# A table of peers for the tests: one that computes as TensorFlow does, one that does not.
_TABLE = """
from libraries import *

def _scaled(model, inputs, threads):
    run = tensorflow(model, inputs, threads)
    return lambda: {name: 2 * value for name, value in run().items()}

PEERS["same"] = Library("Same", tensorflow, packages=("numpy",), modules=("tensorflow",))
PEERS["other"] = Library("Other", _scaled)
"""


@pytest.fixture
def table(monkeypatch, tmp_path):
    """PEERS with two more and one that is not installed, without those that may be here."""
    source = pathlib.Path(libraries.__file__).read_text()
    (tmp_path / "libraries.py").write_text(source)
    (tmp_path / "peers_of_test.py").write_text(_TABLE)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = dict(importlib.import_module("peers_of_test").PEERS)
    for name in ("onnxruntime", "openvino", "litert", "tensorflow-plain"):
        del rows[name]
    rows["absent"] = libraries.Library("Absent", print, modules=("no_such_module",))
    monkeypatch.setattr(compare, "PEERS", rows)
    monkeypatch.setattr(tables, "PEERS", rows)
    workers = compare.Workers
    monkeypatch.setattr(
        compare, "Workers", lambda root, table, *a, **k: workers(tmp_path, "peers_of_test", *a, **k)
    )
    return rows


def test_peers_take_turns_and_must_agree(call, tiny, table, monkeypatch):
    results = []
    compare_peers = compare.compare_peers
    monkeypatch.setattr(
        compare,
        "compare_peers",
        lambda *a, **k: results.append(compare_peers(*a, **k)) or results[0],
    )
    options = ("--peers", "--runs", 5, "--size", 16, "--threads", 1, "--inter-op-threads", 0)
    answer = json.loads(call("benchmark", tiny, *options, "--signature", "serve", "--json"))
    assert set(answer) == set(ANSWERS["benchmark --peers"])
    assert set(answer["peers"]) == {"tf_blockdnn", "tensorflow", "same"}
    assert answer["not_timed"]["absent"] == "not installed: no_such_module"
    assert answer["not_timed"]["other"].startswith("other outputs: off by 1.0e+00")
    assert answer["threads"] == 1 and answer["peers"]["tf_blockdnn"]["ratio"] == 1
    assert answer["peers"]["same"]["relative_difference"] < 1e-5
    assert answer["peers"]["same"]["runs"] == 5
    assert all(-1 << 20 < row["memory_bytes"] < 128 << 20 for row in answer["peers"].values())
    console = rich.console.Console(width=120)
    with console.capture() as captured:
        console.print(tables.peers(results[0]))
    shown = captured.get()
    assert "Absent: not installed: no_such_module" in shown
    assert "5 runs of each, in turn; 1 thread\n" in shown
    assert re.search(r"^ +Same +[\d.]+ .*x (fast|slow)er +\d+ ", shown, re.MULTILINE)
