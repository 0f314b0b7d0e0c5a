"""The page of measurements, its picture and the README say what docs/measurements/*.json say."""

import json

import pytest


@pytest.fixture
def measurements():
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
    return {"model": "resnet50", "batch": 1, "threads": 2, "peers": peers}


def a_document(*results, **more):
    return {
        "machine": {"cpu": "Some CPU", "isa": "AVX2", "cores": 2, "system": "S"},
        "date": "2026-01-02T03:04:05",
        "commit": "abc",
        "runs": 7,
        "tensorflow_default": "tensorflow-plain",
        "versions": {"TensorFlow": "9.9"},
        "command": "python",
        "results": list(results),
    } | more


def test_everything_is_up_to_date(measurements):
    assert measurements.outdated() == []


def test_a_changed_number_is_noticed(copies):
    path = copies.FOLDER / copies.CHARTED[0]
    document = json.loads(path.read_text())
    for result in document["results"]:
        result["peers"]["tf_blockdnn"]["median_ms"] *= 2
        result["peers"]["tf_blockdnn"]["peak_bytes"] *= 2
    path.write_text(json.dumps(document))
    assert len(copies.outdated()) == 3
    copies.write()
    assert copies.outdated() == []


def test_a_page_says_how_it_was_measured(measurements):
    result = a_result(tf_blockdnn=10, **{"tensorflow": 30, "tensorflow-plain": 20, "litert": 15})
    result["peers"]["litert"] |= {"peak_bytes": 7 << 20, "versions": {"ai-edge-litert": "2.3.0"}}
    result["peers"]["openvino"] = {"error": "no wheel"}
    page = measurements.page({"a.json": a_document(result)}, None)
    assert "TensorFlow, oneDNN off (its default)" in page
    assert "oneDNN on (its default)" not in page
    assert "| ResNet-50 | 10.0 (5.00) | 30.0 (15.0) | 20.0 (10.0) | failed |" in page
    assert "**15.0 (7.50)** | 1.50x |" in page
    assert "LiteRT 2.3.0" in page and "| ResNet-50 | 7 |" in page
    facts = "Some CPU, AVX2", "7 runs", "2026-01-02", "Commit: abc", "batch 1 with 2 threads,"
    for fact in (*facts, "Batch 1, 2 threads"):
        assert fact in page, fact
    # What is missing stands above the table.
    missing = page.index("Not measured, or failed: OpenVINO on ResNet-50.")
    assert missing < page.index("| network |")


def test_each_number_of_threads_has_a_table(measurements):
    one = a_result(tf_blockdnn=20, tensorflow=50) | {"threads": 1}
    two = a_result(tf_blockdnn=10, tensorflow=30)
    page = measurements.page({"a.json": a_document(one, two)}, None)
    assert page.index("Batch 1, 1 thread\n") < page.index("20.0 (10.0)")
    assert page.index("Batch 1, 2 threads\n") < page.index("10.0 (5.00)")
    assert "Measured in this run: batch 1 with 1 and 2 threads, and nothing else." in page
    assert measurements.charted(a_document(one, two)) == [two]


def test_ways_of_calling_have_a_table_of_their_own(measurements):
    result = a_result(tf_blockdnn=10, **{"tf_blockdnn-numpy": 12, "tensorflow": 30, "litert": 18})
    page = measurements.page({"a.json": a_document(result)}, None)
    assert "| ResNet-50 | 10.0 (5.00) | 30.0 (15.0) | **18.0 (9.00)** | 1.80x |" in page
    assert "| `fast(x)` | 10.0 (5.00), 1.80x |" in page
    assert "| `numpy` | 12.0 (6.00), 1.50x |" in page


def test_the_chart_has_a_group_of_bars_for_each_class(measurements):
    """Of geometric means; a library that lacks a network says so."""
    first = a_result(tf_blockdnn=10, **{"tensorflow": 40, "tensorflow-plain": 20, "litert": 15})
    second = a_result(tf_blockdnn=10, **{"tensorflow-plain": 80, "openvino": 5}) | {
        "model": "vgg16"
    }
    first["peers"]["tf_blockdnn-load"] = {"median_ms": 9}  # another way to call us is no peer
    small = a_result(tf_blockdnn=10, tensorflow=30) | {"model": "mobilenetv2"}
    found = {"networks.json": a_document(first, second, small)}
    cnns, mobile = (measurements.group(*row) for row in measurements.by_class(found).items())
    assert (cnns.name, cnns.networks) == ("CNNs", "ResNet-50, VGG-16")
    assert [(bar.name, round(bar.ratio, 3), bar.kind) for bar in cnns.bars] == [
        ("tf_blockdnn", 1, "ours"),
        ("OpenVINO (1 of 2)", 0.5, "peer"),
        ("LiteRT (1 of 2)", 1.5, "peer"),
        ("TensorFlow, oneDNN off", 4, "tensorflow"),
    ]
    # Where the default was not measured, what was.
    assert mobile.name == "Mobile CNNs" and mobile.bars[1].name == "TensorFlow, oneDNN on"
    picture = measurements.chart(found)
    assert "LiteRT (1 of 2)" in picture and "prefers-color-scheme: dark" in picture


def test_times_of_loading_have_a_table(measurements):
    side = {"min_s": 1.0, "median_s": 1.5, "mib": 700.4}
    loads = a_document({"model": "vgg16", "original": side, "optimised": side | {"mib": 900}})
    page = measurements.page({}, loads)
    assert "| VGG-16 | 1.50 (1.00) | 1.50 (1.00) | 700 | 900 |" in page
