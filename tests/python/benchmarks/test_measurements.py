"""The page of measurements, its chart and the README say what docs/measurements/*.json say."""

import importlib
import json
import types

import pytest


@pytest.fixture
def measurements():
    names = ("chart", "document", "page", "plan", "readme")
    return types.SimpleNamespace(**{n: importlib.import_module(f"measurements.{n}") for n in names})


@pytest.fixture
def copies(measurements, monkeypatch, tmp_path):
    """The modules on copies of their files, to change."""
    for path in measurements.document.FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(measurements.document, "FOLDER", tmp_path)
    for name in ("PAGE", "PICTURE", "README"):
        original = getattr(measurements.page, name)
        (tmp_path / original.name).write_text(original.read_text())
        monkeypatch.setattr(measurements.page, name, tmp_path / original.name)
    return measurements


def a_row(model="resnet50", threads=2, batch=1, **medians):
    peers = {name: {"median_ms": value, "min_ms": value / 2} for name, value in medians.items()}
    about = {"batch": batch, "threads": threads, "commit": "abc", "date": "2026-01-02", "runs": 7}
    return {"model": model, "peers": peers} | about


def a_document(*networks, **more):
    return {
        "machine": {"cpu": "Some CPU", "isa": "AVX2", "cores": 2, "system": "S"},
        "tensorflow_default": "tensorflow-plain",
        "networks": list(networks),
        "low_precision": [],
        "recurrent": [],
        "loading": [],
        "serving": [],
        "training": [],
    } | more


def test_everything_is_up_to_date(measurements):
    assert measurements.page.outdated() == [], "run `make docs`"


def test_a_changed_number_is_noticed(copies):
    (path,) = [
        path
        for path in copies.document.FOLDER.glob("*.json")
        if json.loads(path.read_text()) == copies.document.documents()[0]
    ]
    document = json.loads(path.read_text())
    for result in document["networks"]:
        result["peers"]["tf_blockdnn"]["median_ms"] *= 2
    path.write_text(json.dumps(document))
    assert copies.page.outdated() == ["measurements.md", "measurements.svg", "README.md"]
    copies.page.write()
    assert copies.page.outdated() == []


def test_a_section_says_how_it_was_measured(measurements):
    row = a_row(tf_blockdnn=10, **{"tensorflow": 30, "tensorflow-plain": 20, "litert": 15})
    row["peers"]["litert"] |= {"peak_bytes": 7 << 20, "versions": {"ai-edge-litert": "2.3.0"}}
    row["peers"]["openvino"] = {"error": "no wheel"}
    one = a_row(threads=1, tf_blockdnn=20, tensorflow=50)
    text = measurements.page.section(a_document(row, one))
    assert "TensorFlow, oneDNN off (its default)" in text
    assert "oneDNN on (its default)" not in text
    assert "| ResNet-50 | 1.50x | 10.0 (5.00) | 30.0 (15.0) | 20.0 (10.0) | failed |" in text
    assert "**15.0 (7.50)** |" in text
    assert "LiteRT 2.3.0" in text and "| ResNet-50 |  |  |  |  | 7 |" in text
    for fact in ("Some CPU (AVX2)", "7 runs", "2026-01-02", "commit abc"):
        assert fact in text, fact
    two_threads, one_thread = "Networks: batch 1, 2 threads\n", "Networks: batch 1, 1 thread\n"
    assert text.index(two_threads) < text.index("10.0 (5.00)") < text.index(one_thread)
    assert text.index(one_thread) < text.index("20.0 (10.0) | **50.0")


def test_servers_are_compared_with_the_original(measurements):
    sides = {
        side: {"requests/s": rate, "p50, ms": 1000 / rate, "p99, ms": 3000 / rate}
        for side, rate in {"original": 50.0, "optimised": 118.0}.items()
    }
    row = a_row("mobilenetv2", threads=1) | {"servers": {"grpc": sides}}
    text = measurements.page.section(a_document(serving=[row]))
    line = "| MobileNetV2, grpc_server.py | 2.36x | 50; 20, 60 ms | 118; 8, 25 ms |"
    assert line in text


def test_rows_of_another_build_are_marked(measurements):
    rows = a_row(tf_blockdnn=10), a_row("vgg16", tf_blockdnn=10) | {"commit": "def"}
    text = measurements.page.section(a_document(*rows))
    assert "batch 1, 2 threads (abc)" in text and "batch 1, 2 threads (def)" in text


def test_ways_of_calling_have_a_table_of_their_own(measurements):
    row = a_row(tf_blockdnn=10, **{"tf_blockdnn-numpy": 12, "tensorflow": 30, "litert": 18})
    text = measurements.page.section(a_document(row))
    assert "| ResNet-50 | 1.80x | 10.0 (5.00) | 30.0 (15.0) | **18.0 (9.00)** |" in text
    assert "| `fast(x)` | 10.0 (5.00), 1.80x |" in text
    assert "| `numpy` | 12.0 (6.00), 1.50x |" in text


def test_types_are_compared_with_their_like(measurements):
    """The fastest of int8 and the fastest of bf16 are bold, never one of float32."""
    times = {"tf_blockdnn": 3, "tf_blockdnn-int8": 2, "litert-int8": 1, "tf_blockdnn-bf16": 4}
    row = a_row(**times, tensorflow=0.5)
    text = measurements.page.section(a_document(low_precision=[row]))
    assert "| ResNet-50 | 3.00 (1.50) | **4.00 (2.00)** | 2.00 (1.00) | **1.00 (0.500)** |" in text


def test_the_chart_has_a_group_of_bars_for_each_class(measurements):
    """Of geometric means; a library that lacks a network says so."""
    first = a_row(tf_blockdnn=10, **{"tensorflow": 40, "tensorflow-plain": 20, "litert": 15})
    second = a_row("vgg16", tf_blockdnn=10, **{"tensorflow-plain": 80, "openvino": 5})
    first["peers"]["tf_blockdnn-bd.load"] = {"median_ms": 9}  # another way to call us is no peer
    small = a_row("mobilenetv2", tf_blockdnn=10, tensorflow=30)
    layer = a_row("lstm/1/100/256/256", tf_blockdnn=1, torch=2)
    document = a_document(first, second, small, recurrent=[layer])
    cnns, mobile, layers = (
        measurements.chart.group(*each) for each in measurements.document.by_class(document).items()
    )
    assert (cnns.name, cnns.networks) == ("CNNs", "ResNet-50, VGG-16")
    assert [(bar.name, round(bar.ratio, 3), bar.kind) for bar in cnns.bars] == [
        ("tf_blockdnn", 1, "ours"),
        ("OpenVINO (1 of 2)", 0.5, "peer"),
        ("LiteRT (1 of 2)", 1.5, "peer"),
        ("TensorFlow, oneDNN off", 4, "tensorflow"),
    ]
    # Where the default was not measured, what was.
    assert mobile.name == "Mobile CNNs" and mobile.bars[1].name == "TensorFlow, oneDNN on"
    assert layers == ("Recurrent layers", "LSTM", layers.bars) and layers.bars[1].ratio == 2
    picture = measurements.chart.chart(document)
    assert "LiteRT (1 of 2)" in picture and "prefers-color-scheme: dark" in picture


def test_the_readme_says_what_is_won_and_what_it_costs(measurements):
    row = a_row(tf_blockdnn=10, **{"tensorflow-plain": 20, "litert": 9})
    row["peers"]["tf_blockdnn-tf.saved_model.load"] = {"median_ms": 12, "min_ms": 11}
    side = {"seconds": 1.0, "least_s": 0.9, "mib": 200.4, "import_s": 0.0}
    load = a_row("vgg16") | {"original": side, "optimised": side | {"mib": 300, "import_s": 0.3}}
    document = a_document(row, loading=[load])
    text = measurements.readme.classes(document)
    assert "| CNNs: ResNet-50 | 2.00x | 0.90x |" in text
    assert "VGG-16 takes 300 MiB above the imports (TensorFlow: 200) and 1.0 s to its" in text
    assert "`import tf_blockdnn` adds 0.3 s" in text
    assert "ResNet-50 runs at 0.90 times the speed of LiteRT" in text
    assert "`tf.saved_model.load` ResNet-50 runs at 0.75 times the speed of LiteRT" in text
    assert "| VGG-16 | 1.00 (0.90) | 1.00 (0.90) | 200 | 300 |" in measurements.page.page(
        [document]
    )


def test_training_steps_have_a_table(measurements):
    row = a_row("unet", batch=8)
    row["peers"] = {"layers": {"step": [2.0, 1.0, 3.0]}, "onednn": {"step": [4.0]}, "plain": {}}
    text = measurements.page.section(a_document(training=[row]))
    assert "| U-Net | 2.00x | 2.00 (1.00) | 4.00 (4.00) | failed |" in text


def test_a_file_holds_one_commit(measurements, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(a_document(a_row(tf_blockdnn=1), commit="abc")))
    row = measurements.plan.Row("networks", "resnet50")
    same = measurements.document.of_commit(path, {"commit": "abc"})
    assert measurements.document.has(same, row)
    other = measurements.document.of_commit(path, {"commit": "def"})
    assert not measurements.document.has(other, row)


def test_every_row_of_the_plan_can_be_measured(measurements):
    from load_test import SERVERS
    from models import ZOO
    from peers.networks import PEERS
    from peers.rnn import PEERS as RECURRENT_PEERS
    from peers.training import PEERS as TRAINING_PEERS

    for row in measurements.plan.ROWS:
        assert row.kind in measurements.document.KINDS
        tables = {"recurrent": RECURRENT_PEERS, "training": TRAINING_PEERS, "serving": SERVERS}
        assert set(row.peers) <= set(tables.get(row.kind, PEERS))
        assert row.kind == "recurrent" or row.name in ZOO
    keys = [(row.kind, row.name, row.batch, row.threads) for row in measurements.plan.ROWS]
    assert len(keys) == len(set(keys))


def test_a_package_that_is_missing_is_named_in_a_line(monkeypatch, tmp_path):
    """KerasHub is needed only where a transformer has to be written."""
    from measuring import prepare

    monkeypatch.setattr(prepare, "BUILD", tmp_path)
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    workshop = prepare.Workshop(lambda line: None, lambda line: None)
    with pytest.raises(prepare.SetUpError) as error:
        workshop.model("bert", "saved_model", 1)
    assert str(error.value).endswith("pip install -r benchmarks/requirements-kerashub.txt")


def test_a_readme_without_marks_is_refused(measurements):
    row = a_row("mobilenetv2", tf_blockdnn=1, litert=2, **{"tensorflow-plain": 3})
    with pytest.raises(ValueError, match="lacks <!-- made by benchmarks/measurements: example -->"):
        measurements.readme.text("# Title", a_document(row))
