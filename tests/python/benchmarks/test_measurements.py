"""The page of measurements, its picture and the README say what docs/measurements/*.json say."""

import json
import pathlib

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def measurements(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import measurements

    return measurements


@pytest.fixture
def copies(measurements, monkeypatch, tmp_path):
    """The module on copies of its files, to change."""
    (tmp_path / "measurements").mkdir()
    for path in measurements.FOLDER.glob("*.json"):
        (tmp_path / "measurements" / path.name).write_text(path.read_text())
    monkeypatch.setattr(measurements, "FOLDER", tmp_path / "measurements")
    for name in ("PAGE", "PICTURE", "README"):
        original = getattr(measurements, name)
        (tmp_path / original.name).write_text(original.read_text())
        monkeypatch.setattr(measurements, name, tmp_path / original.name)
    return measurements


def a_result(**medians):
    peers = {name: {"median_ms": value, "min_ms": value / 2} for name, value in medians.items()}
    return {"model": "resnet50", "batch": 1, "peers": peers}


def a_document(*results, **more):
    return {
        "title": "Some CPU",
        "readme": 1,
        "machine": {"cpu": "C", "cores": 2, "system": "S"},
        "date": "2026-01-02T03:04:05",
        "threads": 2,
        "command": "python",
        "results": list(results),
    } | more


def test_everything_is_up_to_date(measurements):
    assert measurements.outdated() == []


def test_a_changed_number_is_noticed(copies):
    path = copies.FOLDER / "zen4.json"
    document = json.loads(path.read_text())
    document["results"][0]["peers"]["tf_blockdnn"]["median_ms"] *= 2
    path.write_text(json.dumps(document))
    assert len(copies.outdated()) == 3
    copies.write()
    assert copies.outdated() == []


def test_what_run_models_writes_makes_a_page(measurements):
    result = a_result(tf_blockdnn=10, tensorflow=30, litert=15)
    result["peers"]["litert"] |= {"peak_bytes": 7 << 20, "versions": {"ai-edge-litert": "2.3.0"}}
    result["peers"]["litert"]["ready_seconds"] = 1.26
    result["peers"]["openvino"] = {"error": "no wheel"}
    ratios = [{"model": "resnet50", "batch": 1, "best_peer": "litert", "min": 0.7, "median": 0.66}]
    page = measurements.page([a_document(result, ratios=ratios)])
    assert "| ResNet-50 | 10.0 (5.00) | 30.0 (15.0) | failed | **15.0 (7.50)** | 1.50x |" in page
    assert "ai-edge-litert 2.3.0" in page and "| ResNet-50 | 7 |" in page
    assert "| seconds to the first result | LiteRT |" in page and "| ResNet-50 | 1.3 |" in page
    assert (
        "Speed-up over" not in page
    )  # It has times of this network, so the ratio says nothing new.


def test_ways_of_calling_have_a_table_of_their_own(measurements):
    result = a_result(tf_blockdnn=10, **{"tf_blockdnn-numpy": 12, "tensorflow": 30, "litert": 18})
    page = measurements.page([a_document(result)])
    assert "| ResNet-50 | 10.0 (5.00) | 30.0 (15.0) | **18.0 (9.00)** | 1.80x |" in page
    assert "| `fast(x)` | 10.0 (5.00), 1.80x |" in page
    assert "| `numpy` | 12.0 (6.00), 1.50x |" in page


def test_the_readme_shows_the_better_tensorflow(measurements):
    results = [a_result(tf_blockdnn=10, **{"tensorflow": 30, "tensorflow-plain": 25, "litert": 15})]
    table = measurements.readme_table(a_document(*results))
    assert "TensorFlow, oneDNN off" in table
    assert "| ResNet-50 | 10.0 | 25.0 | **2.5x** | LiteRT 15.0 | **1.5x** |" in table
    results.append(a_result(tf_blockdnn=10, **{"tensorflow": 20, "tensorflow-plain": 25}))
    table = measurements.readme_table(a_document(*results))
    assert "| ResNet-50 | 10.0 | oneDNN off 25.0 |" in table
    assert "| ResNet-50 | 10.0 | oneDNN on 20.0 | **2.0x** |  |  |" in table


def test_other_ways_to_call_us_are_no_peers(measurements):
    result = a_result(tf_blockdnn=10, **{"tf_blockdnn-load": 9, "tensorflow": 20, "litert": 12})
    assert "LiteRT 12.0" in measurements.readme_table(a_document(result))
