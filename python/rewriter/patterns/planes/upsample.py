"""The nearest upsampling that is spelled as repetitions, as Keras's is."""

from ....ops.records import Resize
from ...rules import Match, Rule, Size


def upsample(tf, x, rows=1, columns=1):
    """Rows, columns or both repeated."""

    def each_row(x):
        n, h, w, c = tf.sizes(x, 4)
        tiled = tf.Tile(tf.reshape(x, [n, h, 1, w, c]), [1, 1, rows, 1, 1])
        return tf.reshape(tiled, [n, h * rows, w, c])

    def each_column(x):
        n, h, w, c = tf.sizes(x, 4)
        tiled = tf.Tile(tf.reshape(x, [n, h, w, 1, c]), [1, 1, 1, columns, 1])
        return tf.reshape(tiled, [n, h, w * columns, c])

    def each_pixel(x):
        n, h, w, c = tf.sizes(x, 4)
        tiled = tf.Tile(tf.reshape(x, [n, h, 1, w, 1, c]), [1, 1, rows, 1, columns, 1])
        return tf.reshape(tiled, [n, h * rows, w * columns, c])

    both = each_column(each_row(x)), each_row(each_column(x)), each_pixel(x)
    return tf.either(*both, each_row(x), each_column(x))


def _upsample(match: Match) -> Resize:
    return Resize(
        origin=match.root.name,
        channels=match.channels(),
        kind="nearest",
        scales=(match["rows"], match["columns"]),
    )


RULE = Rule(upsample, _upsample, like=None, rows=Size(), columns=Size())
