"""What is printed of the accuracy of low precision: ours and peers' rows are made alike."""

import numpy as np
import pytest


def test_peers_are_an_option(capsys):
    import low_precision

    parser = low_precision._parser()
    assert parser.parse_args([]).peers == []
    given = parser.parse_args(["--peers", "openvino-int8,litert-int8", "--crops", "8"])
    assert given.peers == ["openvino-int8", "litert-int8"]
    for wrong in (["--peers", "tensorflow"], ["--crops", "6"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "6 is no multiple of 4" in capsys.readouterr().err


def test_a_row_is_made_of_two_lists_of_arrays():
    import low_precision

    wanted = [np.float32([[3, 4], [4, 3.9]]), np.float32([[0, 10]])]
    got = [np.float32([[3, 4], [3.9, 4]]), np.float32([[1, 10]])]
    # Noise is 0.02 of 56.21 and 1 of 100: 34.5 dB, 20 dB, and 1.02 of 156.21 together.
    row = "least  20.0 dB, all  21.9 dB, same 66.7 % of 3; 1 ties"
    assert low_precision._row(wanted, got) == row


def test_a_mobilenet_is_judged_by_its_features_and_by_its_classes(tmp_path):
    import keras
    from models import trained

    layers = keras.layers
    image = keras.Input((8, 8, 3))
    x = layers.Conv2D(5, 1)(layers.Conv2D(4, 3, strides=2, padding="same")(image))
    base = keras.Model(image, layers.ReLU(6, name="out_relu")(layers.BatchNormalization()(x)))
    inner = layers.GlobalAveragePooling2D()(base(image))
    path = str(tmp_path / "model.h5")
    keras.Model(image, layers.Dense(7, activation="softmax")(inner)).save(path)
    pictures = np.full([2, 8, 8, 3], 255, np.float32)
    for make, shape in {
        trained.mobilenet_features: (2, 4, 4, 5),
        trained.mobilenet_classes: (2, 7),
    }.items():
        function, prepare = make(path)
        assert prepare(pictures).max() == 1
        got = np.asarray(function(prepare(pictures)))
        assert got.shape == shape
        assert got.min() >= 0


def test_calibration_reads_the_given_file(monkeypatch, tmp_path):
    from formats import samples

    data = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.savez(tmp_path / "seen.npz", x=data)
    monkeypatch.setattr(samples, "given", [str(tmp_path / "seen.npz")])
    batches = [batch["x"] for batch in samples.samples({"x": [3, 2]})]
    np.testing.assert_array_equal(np.stack(batches), data.reshape(2, 3, 2))


def test_outputs_keep_their_order():
    from peers import outputs

    names = ["Identity_10:0", "Identity:0", "Identity_2:0"]
    assert sorted(names, key=outputs._number) == ["Identity:0", "Identity_2:0", "Identity_10:0"]
