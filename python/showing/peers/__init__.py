"""Other libraries on the same model: `tf-blockdnn benchmark --peers`."""
