"""docs/zoo.md says what docs/zoo.json holds, and the networks in it are those of the zoo."""

import json

import pytest


@pytest.fixture
def zoo():
    import zoo

    return zoo


def a_row(ours=1.0, on=2.0, off=3.0):
    times = {"tf_blockdnn": ours, "tensorflow": on, "tensorflow-plain": off}
    return {
        "convolutions": 9,
        "converted": 8,
        "reorders": 2,
        "difference": 3e-6,
        "version": "2.21.0",
        **{name: {"min_ms": time / 2, "median_ms": time} for name, time in times.items()},
    }


def test_the_page_is_made_from_the_measurements(zoo):
    document = json.loads((zoo.DOCS / "zoo.json").read_text())
    hub = json.loads((zoo.DOCS / "backbones.json").read_text())
    face = json.loads((zoo.DOCS / "huggingface.json").read_text())
    sections = zoo.backbones.section(hub) + zoo.huggingface.section(face)
    assert (zoo.DOCS / "zoo.md").read_text() == zoo.page(document) + sections
    for name, row in face["models"].items():
        assert row["difference"] <= zoo.huggingface.TOLERANCE, name
    for name, row in hub["networks"].items():
        assert row["difference"] <= zoo.backbones.TOLERANCE, name
        assert zoo.backbones.ratio(row) <= zoo.backbones.MOST, name
    assert set(document["networks"]) <= set(zoo.ZOO)
    for row in document["networks"].values():
        assert row["difference"] <= zoo.TOLERANCE
        assert row["converted"] <= row["convolutions"]


def test_the_speed_up_is_over_the_faster_tensorflow(zoo):
    assert zoo.speedup(a_row(ours=1.0, on=4.0, off=2.0)) == 2
    assert zoo.speedup(a_row(ours=1.0, on=2.0, off=4.0)) == 2
    times = ["1.00 (0.50)", "2.00 (1.00)", "3.00 (1.50)"]
    assert zoo.cells(a_row()) == ["8 / 9", "2", "3e-06", *times, "2.0x"]


def test_rows_are_kept_one_by_one(zoo, tmp_path):
    given = {"output": tmp_path / "zoo.json", "batch": 1, "threads": 2, "runs": 20}
    options = type("Options", (), given)
    facts = {"machine": {"cpu": "Z80"}, "commit": "abc", "tensorflow_default": "tensorflow-plain"}
    zoo._keep("unet", a_row(), facts, options)
    zoo._keep("ssd", a_row(), facts, options)
    zoo._keep("ssd", {"error": "broken"}, facts, options)  # what was measured before stays
    zoo._keep("unet", a_row(ours=1.5), facts, options)
    document = json.loads(options.output.read_text())
    noted = {key: document["networks"]["ssd"].pop(key) for key in ("date", "commit", "runs")}
    assert noted["commit"] == "abc" and noted["runs"] == 20
    assert document["networks"]["ssd"] == a_row()  # of an older build, which noted nothing
    assert document["networks"]["unet"] == a_row(ours=1.5) | noted
    page = zoo.page(document)
    assert "Z80; 2 threads;" in page and "commit abc or not noted" in page
    assert "runs of each: 20 or not noted" in page and "default\nhere is oneDNN off" in page
    assert "| U-Net | 8 / 9 | 2 | 3e-06 | 1.50 (0.75) | 2.00 (1.00) | 3.00 (1.50) | 1.3x |" in page
    assert page.index("U-Net") < page.index("SSD-style heads")


def test_a_row_of_a_backbone(zoo):
    times = {"min_ms": 10.0, "median_ms": 12.0}
    row = {
        "converted": 0.25,
        "reorders": 1,
        "difference": 3e-6,
        "rewriting_s": 1.5,
        "tf_blockdnn": times,
        "tensorflow": {"min_ms": 20.0, "median_ms": 22.0},
    }
    expected = "| text/x | 25 % | 1 | 3e-06 | 12.00 (10.00) | 22.00 (20.00) | 1.8x | 1.5 |"
    assert zoo.backbones.line("text/x", row) == expected
    assert "| none |" in zoo.backbones.line("x", row | {"converted": None})
    networks = {"x": row | {"calls": 6}, "y": row | {"calls": 9}}
    document = {"networks": networks, "hub": "1", "note": ""}
    page = zoo.backbones.section(document | {"missing": ["text/z"]})
    assert "6 to 9 calls of each" in page and "\nNot measured: text/z.\n" in page
    assert "Not measured" not in zoo.backbones.section(document | {"missing": []})
    assert zoo.backbones._difference([[1.0, -4.0]], [[1.0, -3.0]]) == 0.25


def test_a_network_of_strangers_fails_by_any_of_its_bounds():
    import strangers

    def judged(**changed):
        times = {name: {"min_ms": 2.0, "median_ms": 3.0} for name in strangers.TIMES}
        row = {
            "converted": 0.5,
            "reorders": 8,
            "difference": 1e-5,
            "noise": 0.0,
            "rewriting_s": 1.0,
        }
        row |= {"rewriting_s": 1.0} | times | changed
        assert strangers.line("x", row).count("|") == len(strangers.HEADS) + 1
        return strangers.judged(row)

    assert judged() == judged(difference=1e-3, noise=1e-4) == judged(converted=None) == []
    assert judged(difference=2e-5, noise=1e-6) == ["is wrong"]
    assert judged(difference=float("nan"), noise=float("nan")) == ["is wrong"]
    assert judged(reorders=9, reordering=0.02) == []
    assert judged(reorders=9, reordering=0.04) == ["loses time by reorders"]
    assert judged(ours={"min_ms": 2.1, "median_ms": 1.0}) == ["is slower than TensorFlow"]
    assert strangers.judged({"error": "it ended"}) == ["failed"]
