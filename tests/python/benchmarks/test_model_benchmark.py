"""The model benchmark: what it sets up and once only, what it says about those that failed."""

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console


@pytest.fixture
def prepare(monkeypatch, tmp_path):
    from measuring import prepare

    monkeypatch.setattr(prepare, "BUILD", tmp_path)
    return prepare


def numbers(milliseconds):
    return {
        "min_ms": milliseconds,
        "median_ms": milliseconds * 2,
        "memory_bytes": 1 << 20,
        "relative_difference": 1e-6,
    }


def a_result(**peers):
    return {
        "model": "resnet50",
        "batch": 1,
        "threads": 2,
        "cores_busy_elsewhere": 0.0,
        "peers": peers,
    }


def text_of(table):
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_ratio_is_to_the_fastest_that_was_measured():
    from measuring import results

    result = a_result(
        tf_blockdnn=numbers(8), tensorflow=numbers(20), openvino=numbers(10), litert={"error": "x"}
    )
    result["peers"]["tf_blockdnn-keyword"] = numbers(7)
    result["peers"]["tensorflow-plain"] = numbers(15)
    assert results.best_tensorflow(result) == "tensorflow-plain"
    assert "15.00 (30.00)" in text_of(results.summary([result]))
    assert results.best_peer(result) == "openvino"
    # Like is compared with like.
    result["peers"] |= {"openvino-int8": numbers(1), "tf_blockdnn-int8": numbers(2)}
    assert results.best_peer(result) == "openvino"
    assert results.ratio(result) == 1.25
    assert results.ratio(result, precision="int8") == 0.5
    assert results.ratio(result, precision="bf16") is None
    assert "0.50x (0.50x)" in text_of(results.summary([result], "int8"))


@pytest.mark.parametrize(
    "peers", [{"tf_blockdnn": numbers(8)}, {"tensorflow": numbers(8)}, {"tf_blockdnn": {}}]
)
def test_no_ratio_without_two_to_compare(peers):
    from measuring import results

    assert results.ratio(a_result(**peers)) is None


def test_failures_are_shown():
    from measuring import results

    result = a_result(tf_blockdnn=numbers(8), litert={"error": "no wheel [x]"})
    row = next(line for line in text_of(results.table(result)).splitlines() if "LiteRT" in line)
    assert "failed" in row
    (line,) = results.failures([result])
    assert line.endswith(r"no wheel \[x]") and "ResNet-50, batch 1, threads 2, LiteRT" in line


def test_every_row_can_be_set_up(benchmarks):
    from formats import FORMATS, SAVED_MODEL
    from models import ZOO
    from peers.networks import PEERS

    for peer in PEERS.values():
        assert {*peer.networks, *peer.other_formats} <= set(ZOO)
        assert {peer.format, *peer.other_formats.values()} <= {*FORMATS, SAVED_MODEL}
    for builder in {network.builder for network in ZOO.values()} - {"transformers"}:
        assert callable(importlib.import_module(f"models.{builder}").save)
    for row in FORMATS.values():
        assert (benchmarks / "formats" / f"{row.writer}.py").exists()
        assert row.source in {*FORMATS, SAVED_MODEL}
    for row in [*PEERS.values(), *FORMATS.values()]:
        assert row.venv is None or (benchmarks / f"requirements-{row.venv}.txt").exists()


def test_files_are_made_once_and_again_when_their_source_is_newer(prepare, tmp_path):
    said = []
    workshop = prepare.Workshop(said.append, said.append)
    source, target = tmp_path / "source", tmp_path / "made" / "target"
    source.touch()
    made = []

    def write(path):
        made.append(path)
        path.write_text("whole")

    for _ in range(2):
        assert workshop._made(target, [source], write).read_text() == "whole"
    assert len(made) == 1 and made[0] != target
    os.utime(source, (target.stat().st_mtime + 1,) * 2)
    workshop._made(target, [source], write)
    assert len(made) == 2


def test_a_failed_step_says_why_and_is_not_repeated(prepare, tmp_path):
    said, hints = [], []
    workshop = prepare.Workshop(said.append, hints.append)
    (tmp_path / "source").touch()
    tries = []

    def write(path):
        tries.append(path)
        workshop.run(
            [sys.executable, "-c", "print('begun', flush=True); raise SystemExit('no luck')"], path
        )

    for _ in range(2):
        with pytest.raises(prepare.SetUpError, match="no luck"):
            workshop._made(tmp_path / "target", [tmp_path / "source"], write)
    assert len(tries) == 1
    assert hints == ["begun", "no luck"]
    assert not (tmp_path / "target").exists()


def test_pictures_differ_from_each_other_in_the_mean():
    from models import pictures

    one, other = pictures(2, (30, 50), spread=128).mean(axis=(1, 2))
    assert np.abs(one - other).max() > 5


def test_a_worker_says_why_it_ended(benchmarks, tmp_path):
    from measuring.workers import Workers
    from peers.networks import PEERS

    image = np.zeros([1, 2, 2, 3], np.float32)
    with Workers(benchmarks, "peers.networks", {"image": image}, threads=1) as workers:
        assert not workers.start("tensorflow", PEERS["tensorflow"], tmp_path / "none")
        assert "SavedModel file does not exist" in workers.problems["tensorflow"]


def test_the_reference_always_runs_and_everything_is_written(benchmarks, tmp_path):
    command = [sys.executable, benchmarks / "run_models.py", "--models", "mobilenetv2"]
    command += ["--peers", "tf_blockdnn", "--batch", "1", "--threads", "1", "--runs", "1"]
    subprocess.run([*command, "--output", tmp_path / "m.json"], check=True, capture_output=True)
    document = json.loads((tmp_path / "m.json").read_text())
    assert {"date", "machine", "commit", "runs", "command", "results"} <= set(document)
    assert document["tensorflow_default"] in ("tensorflow", "tensorflow-plain")
    (result,) = document["results"]
    assert list(result["peers"]) == ["tf_blockdnn", "tensorflow"]
    assert result["peers"]["tf_blockdnn"]["relative_difference"] < 1e-3
    assert result["peers"]["tensorflow"]["relative_difference"] == 0
    assert all(row["min_ms"] > 0 and row["memory_bytes"] > 0 for row in result["peers"].values())
    assert result["threads"] == 1
