"""A sample of Keras's own tests of layers with ours in their place; `make test-keras` runs all."""

from keras_own import files_of, outcomes, worse

SAMPLE = ["bidirectional", "depthwise_conv", "global_average_pooling", "rnn"]


def test_a_sample_of_keras_tests(tmp_path):
    with open(tmp_path / "log", "w") as log:
        ours = outcomes("ours", files_of([f"{name}_test.py" for name in SAMPLE]), log)
    assert len(ours) > 50
    assert set(ours.values()) <= {"passed", "skipped"}, (tmp_path / "log").read_text()[-2000:]


def test_what_fails_only_with_ours_is_told():
    theirs = {"same": "passed", "broken": "failed", "missing": "passed", "worse": "passed"}
    assert worse(theirs, {"same": "passed", "worse": "failed"}) == ["missing", "worse"]
