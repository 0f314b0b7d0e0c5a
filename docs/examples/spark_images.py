"""Classifies a folder of images with Spark, a process for each core.

    pip install '.[spark]'     # in the checkout
    python spark_images.py MODEL IMAGES OUT [PROCESSES]

MODEL is a SavedModel that `tf-blockdnn optimize` wrote, with one input [N,H,W,3] of numbers from 0
to 255. OUT becomes a folder of Parquet files with a row for each image: path, class, score. If a
process dies, Spark runs its task again, up to four times; what a task wrote counts once it ended.
"""

import os
import sys
import time

from pyspark.sql import SparkSession


def classify(frames, folder):
    """The rows of one task, which loads the model once."""
    import tensorflow as tf

    import tf_blockdnn  # noqa: F401  (the ops of MODEL)

    run = tf.saved_model.load(folder).signatures["serving_default"]
    ((name, spec),) = run.structured_input_signature[1].items()
    for frame in frames:
        images = [tf.io.decode_image(b, 3, expand_animations=False) for b in frame.pop("content")]
        pixels = tf.stack([tf.image.resize(image, spec.shape[1:3]) for image in images])
        scores = next(iter(run(**{name: pixels}).values())).numpy()
        yield frame.assign(**{"class": scores.argmax(1), "score": scores.max(1)})


def main(model, images, out, processes=None):
    processes, model = int(processes or os.cpu_count()), os.path.abspath(model)
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}  # one core each
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{processes},4]")  # 4: attempts of a task
    builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", 8)
    builder.config("spark.ui.enabled", False).config("spark.ui.showConsoleProgress", True)
    spark = builder.getOrCreate()
    start = time.monotonic()
    files = spark.read.format("binaryFile").load(images).select("path", "content")
    rows = files.repartition(4 * processes).mapInPandas(
        lambda frames: classify(frames, model), "path string, class long, score float"
    )
    rows.write.parquet(out)
    seconds, count = time.monotonic() - start, spark.read.parquet(out).count()
    print(f"{count} images in {seconds:.1f} s: {count / seconds:.0f} a second")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 3 else sys.exit(__doc__)
