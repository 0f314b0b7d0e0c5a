"""Classifies a folder of images with Ray Data, a process for each core.

    pip install '.[ray]'     # in the checkout
    python ray_data_images.py MODEL IMAGES OUT [PROCESSES]

MODEL is a SavedModel that `tf-blockdnn optimize` wrote, with one input [N,H,W,3] of numbers from 0
to 255. OUT becomes a folder of Parquet files with a row for each image: path, class, score, process
and time. If a process dies, Ray starts another one; each unfinished batch counts once.
"""

import os
import sys
import time

import ray


class Classify:
    """Made once in each process."""

    def __init__(self, folder):
        import tensorflow as tf

        import tf_blockdnn  # noqa: F401  (the ops of MODEL)

        self.tf = tf
        self.run = tf.saved_model.load(folder).signatures["serving_default"]
        ((self.name, self.spec),) = self.run.structured_input_signature[1].items()

    def __call__(self, batch):
        tf, size = self.tf, self.spec.shape[1:3]
        images = [tf.io.decode_image(b, 3, expand_animations=False) for b in batch["bytes"]]
        pixels = tf.stack([tf.image.resize(image, size) for image in images])
        scores = next(iter(self.run(**{self.name: pixels}).values())).numpy()
        rows = {"path": batch["path"], "class": scores.argmax(1), "score": scores.max(1)}
        return rows | {"process": [os.getpid()] * len(scores), "at": [time.time()] * len(scores)}


def main(model, images, out, processes=0):
    processes, out = int(processes) or os.cpu_count(), os.path.abspath(out)
    one_core = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    # Reading and writing are tasks of their own: the actors may not hold all CPUs of Ray.
    ray.init(num_cpus=processes + 2, runtime_env={"env_vars": one_core}, include_dashboard=False)
    start = time.time()
    # An actor waits between two blocks: few of them. Those above 128 MB Ray splits by itself.
    options = {"include_paths": True, "override_num_blocks": 8 * processes}
    actors = {"compute": ray.data.ActorPoolStrategy(size=processes), "batch_size": 8}
    arguments = (os.path.abspath(model),)
    files = ray.data.read_binary_files(images, **options)
    files.map_batches(Classify, fn_constructor_args=arguments, **actors).write_parquet(out)
    seconds = time.time() - start
    done = ray.data.read_parquet(out, columns=["process", "at"]).to_pandas()
    ready = done.groupby("process")["at"].min().max()
    rate = (done["at"] > ready).sum() / max(done["at"].max() - ready, 1e-9)
    print(f"{len(done)} images in {seconds:.1f} s; {rate:.1f} a second once all had the model")


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 3 else sys.exit(__doc__)
