"""The training benchmark: its cases on a small network, what it drops, its table."""

import keras
import numpy as np
from rich.console import Console

import tf_blockdnn as bd


def small():
    keras.utils.set_random_seed(7)
    image = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(20, 3, activation="relu")(image)
    model = keras.Model(image, keras.layers.Dense(4)(keras.layers.Flatten()(x)))
    model.jit_compile = False
    return model


def test_the_cases_agree_and_a_step_trains(floats):
    """Both ways of running compute the same; the loss of the same images falls."""
    from peers import training

    images = {"images": floats(2, 8, 8, 3)}
    ours = bd.layers.convert(small())
    ours.jit_compile = False
    both = [training._cases(model, images, 1) for model in (ours, small())]
    for case in both[0]:
        mine, theirs = (cases[case]()["y"] for cases in both)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
        assert mine.shape == {"inference": (2, 4), "data": (2, 8, 8, 3)}.get(case, ())
    before = both[0]["forward"]()["y"]
    for _ in range(20):
        both[0]["step"]()
    assert both[0]["forward"]()["y"] < before


def test_the_table():
    import run_training

    times = {"inference": [4.0, 5.0], "forward": [6.0], "data": [10.0], "step": [16.0]}
    result = {
        "network": "unet",
        "batch": 8,
        "cores_busy_elsewhere": 0.0,
        "peers": {"layers": times | {"peak_bytes": 3 << 20}, "xla": {"error": "wrong"}},
    }

    class Options:
        cases = run_training.CASES
        peak = 100.0

    console = Console(width=140)
    with console.capture() as capture:
        console.print(run_training._table(result, Options))
    rows = [line.split("│")[1:-1] for line in capture.get().splitlines() if line.startswith("│")]
    layers, xla, least = ([cell.strip() for cell in row] for row in rows)
    assert layers == [
        *("bd.layers", "4.0 (4.5)", "6.0 (6.0)", "10.0 (10.0)", "16.0 (16.0)"),
        *("10.0", "6.0", "3"),
    ]
    assert xla[:2] == ["Keras, XLA", "wrong"]
    # 8 images of 3,080 million multiplications and as many additions at 100 GFLOP/s.
    assert least[1] == "493" and least[4] == "1478"
