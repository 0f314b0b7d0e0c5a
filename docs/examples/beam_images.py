"""Classifies a folder of images with Apache Beam.

    pip install '.[beam]'     # in the checkout
    python beam_images.py MODEL IMAGES OUT [options of Beam, such as --runner]

MODEL is a SavedModel that `tf-blockdnn optimize` wrote, with one input [N,H,W,3] of numbers from 0
to 255. OUT becomes a folder of Parquet files with a row for each image: path, class, score. They
appear at the end: if a process dies, the local runner ends with an error and leaves none.
"""

import os
import sys

import apache_beam as beam
import pyarrow
from apache_beam.io import fileio
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

ROW = [("path", pyarrow.string()), ("class", pyarrow.int64()), ("score", pyarrow.float32())]


class SavedModel(ModelHandler):
    """Takes (path, bytes). Beam's own handler cannot read a SavedModel under Keras 3."""

    def __init__(self, folder):
        super().__init__(max_batch_size=32)
        self.folder, self.done = os.path.abspath(folder), 0

    def load_model(self):
        import tensorflow as tf

        import tf_blockdnn  # noqa: F401  (the ops of the model)

        return tf.saved_model.load(self.folder).signatures["serving_default"]

    def run_inference(self, batch, model, inference_args=None):
        import tensorflow as tf

        ((name, spec),) = model.structured_input_signature[1].items()
        images = [tf.io.decode_image(data, 3, expand_animations=False) for _, data in batch]
        pixels = tf.stack([tf.image.resize(image, spec.shape[1:3]) for image in images])
        scores = next(iter(model(**{name: pixels}).values())).numpy()
        self.done += len(batch)
        print(f"process {os.getpid()}: {self.done} images", file=sys.stderr)
        for (path, _), row in zip(batch, scores, strict=True):
            yield {"path": path, "class": int(row.argmax()), "score": float(row.max())}


def main(model, images, out, *options):
    table = beam.io.WriteToParquet(f"{out}/part", pyarrow.schema(ROW), file_name_suffix=".parquet")
    with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
        files = pipeline | fileio.MatchFiles(os.path.join(images, "*")) | fileio.ReadMatches()
        named = files | beam.Map(lambda file: (file.metadata.path, file.read()))
        named | RunInference(SavedModel(model)) | table  # noqa: B018


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 3 else sys.exit(__doc__)
