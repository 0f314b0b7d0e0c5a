"""The Python sources of tf_blockdnn; the public face is `tf_blockdnn` itself."""
