"""`python -m tf_blockdnn`: the command line, also installed as `tf-blockdnn`."""

from .python.cli import main

if __name__ == "__main__":
    main()
