"""Transformers of KerasHub (requirements-transformers.txt), with the weights they begin with.

Each builder makes a model of one input, called "image" whatever it is; text has no padding.
"""

from __future__ import annotations

import keras

from .applications import save_model

_BASE = {"num_layers": 12, "num_heads": 12, "hidden_dim": 768}


def save(folder: str, name: str) -> None:
    """Writes the SavedModel of the network that the function `name` builds."""
    keras.utils.set_random_seed(0)
    save_model(globals()[name](), folder)


def bert() -> keras.Model:
    """Devlin et al. 2018: the encoder of bert-base-uncased, without its head."""
    from keras_hub.models import BertBackbone

    model = BertBackbone(vocabulary_size=30522, intermediate_dim=3072, **_BASE)
    ids = keras.Input((128,), dtype="int32", name="image")
    inputs = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
    return keras.Model(ids, model(inputs)["sequence_output"])


def gpt2() -> keras.Model:
    """Radford et al. 2019: the decoder of GPT-2 small, without its logits."""
    from keras_hub.models import GPT2Backbone

    model = GPT2Backbone(
        vocabulary_size=50257, intermediate_dim=3072, max_sequence_length=1024, **_BASE
    )
    ids = keras.Input((128,), dtype="int32", name="image")
    return keras.Model(ids, model({"token_ids": ids, "padding_mask": ids * 0 + 1}))


def vit() -> keras.Model:
    """Dosovitskiy et al. 2020: ViT-B/16 on pictures of 224 x 224."""
    from keras_hub.models import ViTBackbone

    model = ViTBackbone(image_shape=(224, 224, 3), patch_size=(16, 16), mlp_dim=3072, **_BASE)
    image = keras.Input((224, 224, 3), name="image")
    return keras.Model(image, model(image))


def segformer() -> keras.Model:
    """Xie et al. 2021: SegFormer-B0's encoder and the decoder's features."""
    from keras_hub.models import MiTBackbone, SegFormerBackbone

    encoder = MiTBackbone(
        layerwise_depths=[2, 2, 2, 2],
        num_layers=4,
        layerwise_num_heads=[1, 2, 5, 8],
        layerwise_sr_ratios=[8, 4, 2, 1],
        max_drop_path_rate=0.1,
        layerwise_patch_sizes=[7, 3, 3, 3],
        layerwise_strides=[4, 2, 2, 2],
        image_shape=(224, 224, 3),
        hidden_dims=[32, 64, 160, 256],
    )
    model = SegFormerBackbone(image_encoder=encoder, projection_filters=256)
    image = keras.Input((224, 224, 3), name="image")
    return keras.Model(image, model(image))
