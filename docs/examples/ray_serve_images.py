"""Serves a SavedModel with Ray Serve: a replica for each core, requests in batches.

    pip install '.[ray]'     # in the checkout
    python ray_serve_images.py MODEL [PORT] [REPLICAS]
    curl --data-binary @cat.jpg http://127.0.0.1:8000/

MODEL is a SavedModel that `tf-blockdnn optimize` wrote, with one input [N,H,W,3] of numbers from 0
to 255. Ray starts a replica that died again; requests that it had fail, and are to be sent again.
"""

import os
import sys

import ray
from ray import serve

MOST = 8  # requests a batch


@serve.deployment(health_check_period_s=1, max_ongoing_requests=4 * MOST)
class Classifier:
    def __init__(self, folder):
        import tensorflow as tf

        import tf_blockdnn  # noqa: F401  (the ops of MODEL)

        self.tf = tf
        self.run = tf.saved_model.load(folder).signatures["serving_default"]
        ((self.name, self.spec),) = self.run.structured_input_signature[1].items()

    @serve.batch(max_batch_size=MOST, batch_wait_timeout_s=0.002)
    async def classify(self, files):
        tf, size = self.tf, self.spec.shape[1:3]
        images = [tf.io.decode_image(file, 3, expand_animations=False) for file in files]
        pixels = [tf.image.resize(image, size) for image in images]
        # Sizes 1, 2, 4 and 8: a region keeps the plans of four shapes.
        pixels += [pixels[0]] * ((1 << (len(files) - 1).bit_length()) - len(files))
        scores = next(iter(self.run(**{self.name: tf.stack(pixels)}).values())).numpy()
        return [{"class": int(s.argmax()), "score": float(s.max())} for s in scores[: len(files)]]

    async def __call__(self, request):
        return await self.classify(await request.body())


def main(model, port=8000, replicas=None):
    replicas = int(replicas or os.cpu_count())
    one_core = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    ray.init(num_cpus=replicas + 1, runtime_env={"env_vars": one_core}, include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(port)})
    deployment = Classifier.options(num_replicas=replicas, ray_actor_options={"num_cpus": 1})
    serve.run(deployment.bind(os.path.abspath(model)), blocking=True)


if __name__ == "__main__":
    if len(sys.argv) <= 1:
        sys.exit(__doc__)
    if not os.path.isfile(os.path.join(sys.argv[1], "saved_model.pb")):
        sys.exit(f"{sys.argv[1]}: no SavedModel there")
    main(*sys.argv[1:])
