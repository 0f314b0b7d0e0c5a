"""Trains a network of blocked layers on several machines, and goes on where it stopped.

    pip install .     # in the checkout
    export TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:7000", "10.0.0.2:7000"]},
                       "task": {"type": "worker", "index": 0}}'     # on the second machine: 1
    python distributed_training.py FOLDER STEPS

The global batch is the same for any number of workers, and so is the curve of the loss. Every ten
steps a checkpoint goes to FOLDER. When a worker dies, the others end with an error: start all of
them again. Keras 3's `fit` does not work under MultiWorkerMirroredStrategy, hence the loop.
"""

import os
import sys

import keras
import tensorflow as tf

import tf_blockdnn as bd

BATCH = 32  # of all workers together


def network():
    """Without batch normalisation, whose statistics would be those of a worker's share."""
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Conv2D(64, 3, 2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(4),
        ]
    )
    return bd.layers.convert(model)


def sample(i):
    """Image and label number i, here noise in the colour of its class: put your own data here."""
    label = i % 4
    noise = tf.random.stateless_uniform([32, 32, 3], [i, 0])
    return noise * tf.one_hot(label, 4)[:3] + noise, label


def main(folder, steps):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers, me = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id or 0
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model, optimizer = network(), keras.optimizers.SGD(0.05, momentum=0.9)
        optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64)
    # All workers take part in a checkpoint; the first one's is kept.
    place = os.path.join(folder, "checkpoint" if me == 0 else f"worker{me}")
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(state, place, max_to_keep=2)
    state.restore(tf.train.latest_checkpoint(os.path.join(folder, "checkpoint")))

    first = int(step.numpy()) + 1

    def samples(context):
        share = tf.data.Dataset.range((first - 1) * BATCH, int(steps) * BATCH)
        share = share.shard(context.num_input_pipelines, context.input_pipeline_id)
        return share.map(sample).batch(BATCH // workers).prefetch(2)

    @tf.function
    def train(images, labels):
        def on_worker(images, labels):
            with tf.GradientTape() as tape:
                losses = keras.losses.sparse_categorical_crossentropy(
                    labels, model(images, training=True), from_logits=True
                )
                loss = tf.reduce_sum(losses) / BATCH
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)  # sums them over workers
            return loss

        return strategy.reduce("sum", strategy.run(on_worker, (images, labels)), axis=None)

    batches = strategy.distribute_datasets_from_function(samples)
    for done, (images, labels) in enumerate(batches, first):
        loss = train(images, labels)
        print(f"step {done} loss {float(loss):.6f}", flush=True)
        if done % 10 == 0:
            step.assign(done)
            manager.save()


if __name__ == "__main__":
    if len(sys.argv) <= 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
