"""Transformers of KerasHub on pictures, most of them four layers deep in their published widths."""

from __future__ import annotations

from keras_hub import models

SIZE = (224, 224, 3)
_SMALL = {"num_layers": 4, "num_heads": 6, "hidden_dim": 384}


def vit():
    """Dosovitskiy et al. 2020: ViT-B/16, whole."""
    return models.ViTBackbone(
        image_shape=SIZE,
        patch_size=(16, 16),
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        mlp_dim=3072,
    )


def _deit(**sizes):
    return models.DeiTBackbone(image_shape=SIZE, patch_size=(16, 16), **sizes)


def deit():
    return _deit(intermediate_dim=1536, **_SMALL)


def deittiny():
    """Touvron et al. 2021, tiny, whole."""
    return _deit(num_layers=12, num_heads=3, hidden_dim=192, intermediate_dim=768)


def _dinov2(swiglu=False, **options):
    return models.DINOV2Backbone(
        patch_size=14,
        intermediate_dim=1536,
        use_swiglu_ffn=swiglu,
        image_shape=SIZE,
        **_SMALL,
        **options,
    )


def dinov2():
    return _dinov2()


def dinov2swiglu():
    return _dinov2(swiglu=True, num_register_tokens=4)


def dinov3():
    return models.DINOV3Backbone(patch_size=16, intermediate_dim=1536, image_shape=SIZE, **_SMALL)


def swin():
    """Liu et al. 2021, tiny, whole."""
    return models.SwinTransformerBackbone(
        image_shape=SIZE, embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7
    )


def _clip_vision(kind):
    return kind(
        patch_size=16,
        hidden_dim=768,
        num_layers=4,
        num_heads=12,
        intermediate_dim=3072,
        image_shape=SIZE,
    )


def clip():
    """Radford et al. 2021: both towers."""
    from keras_hub.src.models.clip import clip_text_encoder, clip_vision_encoder

    return models.CLIPBackbone(
        vision_encoder=_clip_vision(clip_vision_encoder.CLIPVisionEncoder),
        text_encoder=clip_text_encoder.CLIPTextEncoder(
            vocabulary_size=8000,
            embedding_dim=512,
            hidden_dim=512,
            num_layers=4,
            num_heads=8,
            intermediate_dim=2048,
        ),
        projection_dim=512,
    )


def siglip():
    """Zhai et al. 2023: both towers."""
    from keras_hub.src.models.siglip import siglip_text_encoder, siglip_vision_encoder

    return models.SigLIPBackbone(
        vision_encoder=_clip_vision(siglip_vision_encoder.SigLIPVisionEncoder),
        text_encoder=siglip_text_encoder.SigLIPTextEncoder(
            vocabulary_size=8000,
            embedding_dim=768,
            hidden_dim=768,
            num_layers=4,
            num_heads=12,
            intermediate_dim=3072,
            max_sequence_length=16,  # as many ids as the benchmark gives
        ),
    )


def mit():
    """Xie et al. 2021: MiT-B0, whole."""
    return models.MiTBackbone(
        layerwise_depths=[2, 2, 2, 2],
        num_layers=4,
        layerwise_num_heads=[1, 2, 5, 8],
        layerwise_sr_ratios=[8, 4, 2, 1],
        max_drop_path_rate=0.1,
        layerwise_patch_sizes=[7, 3, 3, 3],
        layerwise_strides=[4, 2, 2, 2],
        image_shape=SIZE,
        hidden_dims=[32, 64, 160, 256],
    )


def segformer():
    """Xie et al. 2021: SegFormer-B0's encoder and the decoder's features."""
    return models.SegFormerBackbone(image_encoder=mit(), projection_filters=256)


def depthanything():
    return models.DepthAnythingBackbone(
        image_encoder=_dinov2(),
        reassemble_factors=[4, 2, 1, 0.5],
        neck_hidden_dims=[48, 96, 192, 384],
        fusion_hidden_dim=64,
        head_hidden_dim=32,
        head_in_index=-1,
        feature_keys=["stage1", "stage2", "stage3", "stage4"],
    )


def vitdet():
    """The encoder of SAM (Kirillov et al. 2023), base, four layers of which one is global."""
    return models.ViTDetBackbone(
        hidden_size=768,
        num_layers=4,
        intermediate_dim=3072,
        num_heads=12,
        global_attention_layer_indices=[3],
        image_shape=(512, 512, 3),
    )


def parseq():
    """Bautista et al. 2022: text in pictures of 32 x 128."""
    encoder = models.ViTBackbone(
        image_shape=(32, 128, 3),
        patch_size=(4, 8),
        mlp_dim=1536,
        use_class_token=False,
        **_SMALL,
    )
    return models.PARSeqBackbone(
        image_encoder=encoder,
        vocabulary_size=97,
        max_label_length=25,
        decoder_hidden_dim=384,
        num_decoder_layers=1,
        num_decoder_heads=12,
        decoder_mlp_dim=1536,
    )


# All that is defined here, in its order.
BUILDERS = {
    name: build
    for name, build in vars().copy().items()
    if getattr(build, "__module__", "") == __name__ and not name.startswith("_")
}
SHAPES = {**dict.fromkeys(BUILDERS, SIZE), "vitdet": (512, 512, 3), "parseq": (32, 128, 3)}
