"""The command line: results on stdout, one line and exit 2 for what the user can put right."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import rich.console
import tensorflow as tf

from tf_blockdnn.python import native
from tf_blockdnn.python.cli import shared


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Two convolutions with an op in between that has no blocked form."""
    kernel = tf.Variable(tf.random.stateless_normal([3, 3, 16, 16], [1, 2]) * 0.01)
    module = tf.Module()
    module.kernel = kernel

    @tf.function(input_signature=[tf.TensorSpec([1, 40, 40, 16], name="image")])
    def serve(image):
        middle = tf.math.bessel_i0e(tf.tanh(tf.nn.conv2d(image, kernel, 1, "SAME")))
        return {"y": tf.nn.relu(tf.nn.conv2d(middle, kernel, 1, "SAME"))}

    folder = tmp_path_factory.mktemp("several") / "model"
    tf.saved_model.save(module, str(folder), signatures=serve)
    return folder


def test_optimize_writes_and_says_so(call, tiny, tmp_path):
    code, out, err = call("optimize", tiny, tmp_path / "out")
    assert code == 0
    assert "serving_default" in out and str(tmp_path / "out") in out.replace("\n", "")
    assert "optimising signature" in err
    assert set(tf.saved_model.load(str(tmp_path / "out")).signatures) == {
        "serving_default",
        "serve",
        "read",
    }


def test_optimize_as_json(call, tiny, tmp_path):
    code, out, _ = call("optimize", tiny, tmp_path / "out", "--json", "--signature", "serve")
    answer = json.loads(out)
    assert code == 0
    assert answer["destination"] == str(tmp_path / "out")
    assert answer["signatures"]["serve"]["counts"]["BlockdnnConv"] == 2
    assert sorted(answer["kept"]) == ["read", "serving_default"]


def test_inspect_says_why_a_node_is_left(call, several):
    options = ("--exclude", "StatefulPartitionedCall/Conv2D")
    code, out, _ = call("inspect", several, "--why", "Conv2D", *options)
    words = "(Conv2D) is no convolution: excluded by"
    assert code == 0 and words in out and "converted:" not in out
    code, out, _ = call("inspect", several, "--why", "Conv2D", *options, "--json")
    assert code == 0 and any(words in line for line in json.loads(out)["why"])
    code, _, err = call("inspect", several, "--why", "nothing")
    assert code == 2 and "no rule is refused at 'nothing'" in err


def test_inspect(call, tiny):
    code, out, _ = call("inspect", tiny)
    assert code == 0 and "% of the multiply-adds" in out and len(out.splitlines()) < 40
    code, full, _ = call("inspect", tiny, "--all")
    assert code == 0 and "same" in full and len(full) > len(out)
    code, out, _ = call("inspect", tiny, "--json")
    assert code == 0 and set(json.loads(out)["signatures"]) == {"serving_default", "serve", "read"}


def test_names_choose_what_is_converted(call, tiny, tmp_path):
    def convolutions(*options):
        code, out, err = call("inspect", tiny, "--json", "--strict", *options)
        assert code == 0, err
        signatures = json.loads(out)["signatures"]
        return signatures["serve"]["counts"].get("BlockdnnConv", 0)

    assert convolutions() == 2
    assert convolutions("--only", "nothing") == 0
    assert convolutions("--exclude", ".*") == 0
    code, out, _ = call("optimize", tiny, tmp_path / "out", "--json", "--exclude", ".*")
    assert code == 0 and "BlockdnnConv" not in json.loads(out)["signatures"]["serve"]["counts"]
    code, _, err = call("inspect", tiny, "--only", "(")
    assert code == 2 and "only: not a regular expression: '('" in err


def test_inspect_as_a_page(call, tiny, tmp_path):
    code, _, _ = call("inspect", tiny, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert code == 0 and page.count("<ol>") == 4  # before and after, of two distinct graphs
    assert "http" not in page and "<script" not in page and 'name="viewport"' in page
    assert '<li class="ours in' in page and "serving_default, serve" in page


def test_inspect_measures_each_region(call, several, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = call("inspect", several, "--benchmark", "--html", page)
    times = r"[\d.e-]+ ms, TensorFlow [\d.e-]+ ms: [\d.]+x (fast|slow)er"
    assert code == 0 and re.search(rf"^measured: {times}$", out, re.MULTILINE)
    shown = [re.search(rf"^  region {n}: ({times})$", out, re.MULTILINE)[1] for n in (1, 2)]
    headings = re.findall(r'<li class="region[^>]*>region (\d) <i>([^<]*)</i>', page.read_text())
    before, after = headings[:2], headings[2:]
    assert after == [("1", shown[0]), ("2", shown[1])]
    # On the left stands what TensorFlow takes for the same tensors.
    theirs = [re.search("TensorFlow (.*):", time)[1] for time in shown]
    assert before == [("1", theirs[0]), ("2", theirs[1])]
    code, out, _ = call("inspect", several, "--benchmark", "--json")
    (one,) = json.loads(out)["signatures"].values()
    assert [region["ratio"] > 0 for region in one["measured"]["regions"]] == [True, True]


def test_the_page_shows_what_is_in_a_region(call, several, tmp_path):
    code, _, _ = call("inspect", several, "--html", tmp_path / "page.html")
    before, after = (tmp_path / "page.html").read_text().split("<h3>after")
    assert code == 0 and before.count('class="region') == after.count('class="region') == 2
    assert after.count("<b>Conv</b>") == 2 and before.count("<b>Conv2D</b>") == 2
    # Each reorder stands in its region with the op that causes it; what is between is outside, and
    # gets from the convolution what it stores plain.
    reorders = re.findall(r'<li class="reorder in[01]".*?because of ([^<,"]+)', after)
    assert reorders == ["the input image", "BesselI0e bessel_i0e/BesselI0e"]
    assert re.search(r'<li class="plain" [^>]*><b>BesselI0e</b>', after)
    assert "because of BesselI0e bessel_i0e/BesselI0e, which has no blocked form here" in after


def test_a_keras_file(call, tmp_path):
    import keras

    (tmp_path / "doubling.py").write_text(
        "import keras\n\nclass Doubling(keras.layers.Layer):\n"
        "    def call(self, x):\n        return 2 * x\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from doubling import Doubling
    finally:
        sys.path.remove(str(tmp_path))
    layers = [keras.Input([8, 8, 3], name="x"), keras.layers.Conv2D(16, 3), Doubling()]
    model, file = keras.Sequential(layers), tmp_path / "model.keras"
    model.save(file)
    code, _, err = call("optimize", file, tmp_path / "out")
    assert code == 2 and "custom object Doubling" in err and "--custom-objects" in err
    options = ("--custom-objects", "doubling", "--verify", "1e-4", "--strict")
    assert call("optimize", file, tmp_path / "out", *options)[0] == 0
    image = tf.random.normal([2, 8, 8, 3])
    (got,) = (
        tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"](image).values()
    )
    np.testing.assert_allclose(got, model(image), atol=1e-5)
    code, out, _ = call("inspect", file, "--custom-objects", "doubling")
    assert code == 0 and "1 convolution" in out


def test_verify_finds_other_numbers(call, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("tf_blockdnn.python.rewriter.verify.difference", lambda a, b: 0.5)
    code, _, err = call("optimize", tiny, tmp_path / "out", "--verify", "1e-4")
    assert code == 2 and "differs by 0.5" in err and not (tmp_path / "out").exists()


def test_benchmark(call, tiny):
    # TensorFlow is running already, too late for its thread settings.
    command = ("benchmark", tiny, "--runs", 3, "--inter-op-threads", 0)
    code, out, _ = call(*command, "--size", "10x20", "--batch", 2)
    assert code == 0 and "[2, 10, 20, 3]" in out and "x faster" in out
    code, out, _ = call(*command, "--size", "16", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["inputs"]["image"] == {"shape": [1, 16, 16, 3], "dtype": "float32"}
    assert (answer["convolutions"], answer["convolutions_left"]) == (2, 0)
    assert answer["relative_difference"] < 1e-5
    assert answer["ratio"] == answer["original"]["min_ms"] / answer["optimized"]["min_ms"]


def test_info(call):
    code, out, _ = call("info", "--json")
    assert code == 0 and json.loads(out)["tensorflow"] == tf.__version__
    code, out, _ = call("info")
    assert code == 0 and tf.__version__ in out
    assert os.fspath(native.LIBRARY_PATH) in out.splitlines()[3]  # in one piece, to copy
    assert "onednn" in out and "caches" in out and "threads source" in out


def test_layout(call, tmp_path):
    command = ("layout", "nChw8c", "--dims", "2,17,5,4")
    code, out, _ = call(*command)
    assert code == 0 and "n*480 + c/8*160 + h*32 + w*8 + c%8" in out and "░" in out
    code, out, _ = call(*command, "--svg", tmp_path / "x.svg")
    assert (code, out) == (0, f"written: {tmp_path / 'x.svg'}\n") and (
        tmp_path / "x.svg"
    ).read_text().startswith("<svg")
    code, out, _ = call(*command, "--json", "--dtype", "int8")
    answer = json.loads(out)
    assert (answer["size_bytes"], answer["padded_dims"]) == (960, [2, 24, 5, 4])
    code, out, _ = call("layout", "--dims", "3x4", "--strides", "6,1", "--offset", 5)
    assert code == 0 and "offset(i, j) = 5 + i*6 + j" in out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["layout"], "name a LAYOUT, such as nChw16c, or give --strides"),
        (["layout", "nChw9c"], 'unknown layout "nChw9c"'),
        (["layout", "nchw", "--dims", "big"], "--dims big: not integers, such as 2,17,5,4"),
        (["layout", "nchw", "--dims", "2,3"], "layout nchw has 4 dimensions, n, c, h, w"),
        (["layout", "nchw", "--strides", "1,-2,3,4"], "strides"),
        (["layout", "nchw", "--dtype", "float99"], "dtype must be"),
        (["layout", "nchw", "--svg", "nowhere/x.svg"], "nowhere/x.svg: No such file or directory"),
        (["optimize", "nowhere", "out"], "nowhere: no such file or folder"),
        (["optimize", "empty", "out"], "empty: not a SavedModel"),
        (["optimize", "broken", "out"], "broken: saved_model.pb cannot be read"),
        (["inspect", "full/model.onnx"], "model.onnx: an ONNX file: onnx2tf makes a SavedModel"),
        (["benchmark", "full/a.tflite"], "a.tflite: not a LiteRT file (it does not begin as one)"),
        (["inspect", "full/pytorch.pt"], "pytorch.pt: weights of PyTorch: write the model as ONNX"),
        (["inspect", "full/m.weights.h5"], "m.weights.h5: weights without their model: build"),
        (["optimize", "{tiny}", "/proc/out"], "/proc/out: cannot be written (/proc takes no new"),
        (["optimize", "{tiny}", "/proc", "--force"], "/proc: a mounted folder; name a new one"),
        (
            ["optimize", "{tiny}", "out", "--calibration", "full"],
            "--calibration is for --precision",
        ),
        (["inspect", "{tiny}", "--calibration", "full"], "--calibration is for --precision"),
        (["optimize", "{tiny}", "full"], "full: exists and is not empty"),
        (["optimize", "{tiny}", "out", "--signature", "x"], "no signature 'x'; it has read, serve"),
        (["inspect", "nowhere"], "nowhere: no such file or folder"),
        (["inspect", "none.keras"], "none.keras: no such file"),
        (["optimize", "{tiny}", "full/letter.txt/out"], "letter.txt takes no new folder"),
        (["inspect", "{tiny}", "--html", "no/x.html"], "--html no/x.html: no such folder"),
        (["inspect", "{tiny}", "--html", "full"], "--html full: a folder; name a file to write"),
        (["inspect", "{tiny}", "--html", "/proc/x.html"], "error: --html /proc/x.html: "),
        (["inspect", "{tiny}", "--frobnicate"], "--frobnicate"),
        (["optimize", "{tiny}"], "Missing argument 'OUT'; see tf-blockdnn optimize --help"),
        (["optimize", "{tiny}", "out", "--memory", "little"], "'little'"),
        (["benchmark", "{tiny}", "--batch", "0"], "'--batch'"),
        (["frobnicate"], "No such command 'frobnicate'; see tf-blockdnn --help"),
        (["inspect", "{tiny}", "--custom-objects", "no_such"], "--custom-objects no_such: Module"),
        (["benchmark", "{tiny}", "--size", "big"], "--size big: not H,W"),
        (["benchmark", "{tiny}", "--size", "0,4"], "--size 0,4: not H,W, both at least 1"),
        (
            ["benchmark", "{tiny}", "--signature", "read", "--inter-op-threads", "0"],
            "input 'words' is string",
        ),
        (
            ["demo", "nowhere.jpg", "--inter-op-threads", "0"],
            "nowhere.jpg: no such file",
        ),
        (
            ["demo", "full/letter.txt", "--inter-op-threads", "0"],
            "letter.txt: not a picture",
        ),
        (["demo", "full", "--inter-op-threads", "0"], "full: no pictures there"),
        (["benchmark", "{tiny}", "--threads", "2"], "--threads belongs to --peers"),
        (
            ["benchmark", "{tiny}", "--size", "8", "--example", "x"],
            "--batch and --size are for made",
        ),
        (["benchmark", "{tiny}", "--peers", "--inter-op-threads", "2"], "is not for --peers"),
    ],
)
def test_bad_input(call, tiny, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    for name in ("letter.txt", "model.onnx", "a.tflite", "pytorch.pt", "m.weights.h5"):
        (tmp_path / "full" / name).write_text("dear")
    for name, file in (("broken", "saved_model.pb"), ("empty", None)):
        (tmp_path / name).mkdir()
        if file:
            (tmp_path / name / file).write_text("dear")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call(*(text.replace("{tiny}", str(tiny)) for text in arguments))
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if "error:" in line]
    assert len(lines) == 1 and message in lines[0] and err.strip().endswith(lines[0])
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before


def test_no_arguments_are_help(call):
    code, out, err = call()
    assert (code, err) == (0, "") and "benchmark" in out


def test_a_process_of_its_own(tiny):
    """It has one inter-op thread, and no colours where nobody looks. TensorFlow's notices stay
    away, and --verbose brings back what it has to say on this CPU."""
    notices = ("oneDNN", "cuda", "INFO", "WARNING")
    ours = ("TF_CPP", "FORCE_COLOR", "NO_COLOR")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}

    def run(*arguments):
        command = [sys.executable, "-m", "tf_blockdnn", *map(str, arguments)]
        env = environment | {"TERM": "xterm-256color"}
        return subprocess.run(command, capture_output=True, text=True, env=env, check=True)

    for quiet in (run("inspect", tiny), run("--help")):
        assert quiet.stdout and "\x1b" not in quiet.stdout + quiet.stderr
        assert not [notice for notice in notices if notice in quiet.stderr]
    loud = run("benchmark", tiny, "--runs", 2, "--size", 16, "--json", "--verbose")
    assert json.loads(loud.stdout)["inter_op_threads"] == 1
    assert [notice for notice in notices if notice in loud.stderr]


def test_help_and_bad_paths_do_not_wait_for_tensorflow():
    script = (
        "import sys; sys.argv[:] = ['tf-blockdnn', 'optimize', 'nowhere', 'out']\n"
        "from tf_blockdnn.python import cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: print(end.code, 'tensorflow' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "2 False"


def test_low_precision(call, several, tmp_path):
    images = np.random.default_rng(0).standard_normal((4, 40, 40, 16)).astype("float32")
    np.savez(tmp_path / "images.npz", image=images)
    given = ("--precision", "int8", "--calibration", tmp_path / "images.npz")
    code, out, err = call("optimize", several, tmp_path / "out", *given)
    assert code == 0
    assert "serving_default: int8: 2 of 2 layers" in out and " dB (1 sample)" in out
    assert "━━━━━━━━━━ 4 of 4 batches" in err
    code, out, _ = call("optimize", several, tmp_path / "json", *given, "--json")
    layers = json.loads(out)["signatures"]["serving_default"]["precision"]["layers"]
    assert code == 0 and [layer["dtype"] for layer in layers] == ["uint8", "uint8"]


@pytest.mark.parametrize(
    ("precision", "kind"),
    [
        ("bf16", "bfloat16"),
        ("int8-dynamic", "int8"),
        ("int8-weights", "int8"),
        ("int4-weights", "int4"),
    ],
)
def test_low_precision_of_products(call, tmp_path, precision, kind):
    """None of these asks for data; what is written computes so."""
    module = tf.Module()
    module.kernel = tf.Variable(tf.random.stateless_normal([160, 96], [1, 2]))
    serve = tf.function(lambda row: {"y": row @ module.kernel})
    signature = serve.get_concrete_function(tf.TensorSpec([None, 160], name="row"))
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=signature)
    code, out, _ = call("optimize", tmp_path / "model", tmp_path / "out", "--precision", precision)
    assert code == 0 and f"serving_default: {precision}: 1 of 1 layer" in out
    code, out, _ = call("inspect", tmp_path / "model", "--precision", precision, "--json")
    layers = json.loads(out)["signatures"]["serving_default"]["precision"]["layers"]
    assert code == 0 and [layer["dtype"] for layer in layers] == [kind]
    rows = tf.random.stateless_normal([7, 160], [3, 4])
    got = tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"](row=rows)["y"]
    lost = tf.norm(got - rows @ module.kernel) / tf.norm(got)
    assert 1e-4 < lost < 0.15


@pytest.mark.parametrize(
    "program, is_it",
    [
        ("/usr/bin/tf-blockdnn", True),
        ("/usr/lib/tf_blockdnn/__main__.py", True),  # as `python -m tf_blockdnn` says it
        ("/usr/lib/other/__main__.py", False),
        ("serve.py", False),
    ],
)
def test_a_process_knows_whether_it_is_the_command_line(monkeypatch, program, is_it):
    """Its own threads are no warning of the model's."""
    from tf_blockdnn.python import _launch

    monkeypatch.setattr("sys.argv", [program, "info"])
    assert _launch.is_command_line() is is_it


def test_warnings_are_lines_of_their_own(call, several, tmp_path):
    """Of what was asked for in vain; how many threads this process has concerns nobody."""
    asked = ("--precision", "int8-weights", "--exclude", ".*", "--signature", "serving_default")
    code, out, err = call("optimize", several, tmp_path / "out", *asked)
    (line,) = (line for line in err.splitlines() if "warning: " in line)
    assert code == 0 and line.startswith(
        'tf-blockdnn: warning: precision="int8-weights" changed nothing: '
    )
    assert "excluded by '.*'" in line and "inter-op" not in err
    code, out, err = call("inspect", several, *asked)
    assert code == 0 and "warning: " not in err and "inter-op" not in out
    assert out.count("warning: ") == out.count("changed nothing") == 1


def test_what_options_cannot_do_is_a_line(call, tiny, tmp_path):
    given = ("--signature", "serve", "--exclude", "nothere")
    code, out, err = call("optimize", tiny, tmp_path / "out", *given)
    assert code == 0
    assert "warning: exclude: no node or layer matches 'nothere'; tf-blockdnn inspect lists" in err
    code, out, err = call("optimize", tmp_path / "out", tmp_path / "again", "--signature", "serve")
    assert code == 0 and "warning: it was optimised before: OUT is a copy of it" in err


@pytest.mark.parametrize("option", ["--batch", "--size"])
def test_a_size_that_the_model_has_is_an_error(call, tmp_path, option):
    """What would be measured is not what was asked for."""
    module = tf.Module()
    image = tf.TensorSpec([1, 16, 16, 3], name="image")
    module.see = tf.function(lambda image: {"out": image + 1}, input_signature=[image])
    tf.saved_model.save(module, str(tmp_path / "fixed"), signatures=module.see)
    code, _, err = call("benchmark", tmp_path / "fixed", option, "8", "--inter-op-threads", "0")
    assert code == 2 and f"{option} changes nothing: it takes image [1, 16, 16, 3]" in err


def test_an_example(call, tiny, tmp_path):
    image = np.random.default_rng(0).standard_normal((1, 24, 20, 3)).astype("float32")
    np.savez(tmp_path / "call.npz", image=image)
    given = ("--example", tmp_path / "call.npz", "--signature", "serving_default", "--json")
    code, out, err = call("optimize", tiny, tmp_path / "out", *given)
    assert code == 0, err
    report = json.loads(out)["signatures"]["serving_default"]
    note = "takes the sizes of example alone: image (None, 24, 20, 3)"
    assert report["notes"][0] == note
    code, out, _ = call("optimize", tiny, tmp_path / "table", *given[:-1])
    assert code == 0 and note in " ".join(out.split())
    code, out, err = call("inspect", tiny, *given)
    here = ("--inter-op-threads", "0")  # They are set already.
    assert code == 0 and json.loads(out)["signatures"]["serving_default"]["notes"][0] == note, err
    code, out, err = call("benchmark", tiny, "--runs", "1", *here, *given)
    assert code == 0 and json.loads(out)["inputs"]["image"]["shape"] == [1, 24, 20, 3], err
    np.savez(tmp_path / "other.npz", image=image[..., :2])
    code, _, err = call("benchmark", tiny, *here, "--example", tmp_path / "other.npz")
    assert code == 2 and "image is (None, None, None, 3), not" in " ".join(err.split())
    code, _, err = call("optimize", tiny, tmp_path / "all", *given[:2])  # "read" takes words, too
    assert code == 2 and "the arguments are" in " ".join(err.split())
    code, _, err = call("optimize", tiny, tmp_path / "all", "--example", tmp_path / "none.npz")
    assert code == 2 and "none.npz: no such file" in " ".join(err.split())


def test_the_page_shows_what_each_layer_loses(call, several, tmp_path):
    images = np.random.default_rng(0).standard_normal((4, 40, 40, 16)).astype("float32")
    np.savez(tmp_path / "images.npz", image=images)
    given = ("--precision", "int8", "--calibration", tmp_path / "images.npz")
    code, out, _ = call("inspect", several, *given, "--html", tmp_path / "page.html")
    assert code == 0 and "int8: 2 of 2 layers" in out
    page = (tmp_path / "page.html").read_text()
    assert page.count('<ol class="losses"') == 1 and "http" not in page
    bars = re.findall(r'<li class="(\w+)"><b style="width:(\d+)px"', page)
    assert [kind for kind, _ in bars] == ["uint8", "uint8", "output"]
    assert max(int(width) for _, width in bars) == 300
    assert len(re.findall(r"(?:uint8|output): [\d.]+ dB</li>", page)) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--precision", "int8"], "--precision int8 needs --calibration"),
        (["--precision", "int8", "--calibration", "nowhere"], "nowhere: no such file"),
        (["--precision", "bf16", "--max-loss", "0.1"], "needs calibration"),
        (["--precision", "bf16", "--deterministic"], "exclude each other"),
        (["--max-loss", "0.1"], "max_loss is for a precision"),
    ],
)
def test_what_low_precision_needs(call, several, tmp_path, options, words):
    code, _, err = call("optimize", several, tmp_path / "out", *options)
    assert code == 2
    assert words in err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_long_path_leaves_the_time_its_room(monkeypatch, capsys):
    monkeypatch.setattr(shared._launch, "load_tensorflow", lambda **_: None)
    console = rich.console.Console(force_terminal=True, width=60)
    monkeypatch.setattr(shared, "progress_console", console)
    with shared.steps(verbose=True) as step:
        step(f"writing {'/folder' * 9}")
    lines = [line for line in capsys.readouterr().out.splitlines() if "writing" in line]
    assert lines and all("0:00:00" in line for line in lines)
