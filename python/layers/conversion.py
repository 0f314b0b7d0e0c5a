"""What `convert` reports: the layers it replaced, and why it kept the others."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Conversion:
    """What `convert` did to a model, as `model.conversion`.

    Attributes:
      replaced: name of a layer -> what it became: its class and the layouts it reads and writes.
      kept: name of a layer -> why it stayed as it was.
      reorders: names of the layers that were added between blocked and plain ones.
      algorithm: of the convolutions and recurrent layers that were replaced.

    Example:
      >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(name="flat")])
      >>> print(bd.layers.convert(model).conversion.summary())
      0 layers replaced, 1 kept
        flat kept: no blocked form
    """

    replaced: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    reorders: list[str] = field(default_factory=list)
    algorithm: str = "auto"

    def summary(self) -> str:
        """One line for each layer, the replaced ones first."""
        lines = [f"{len(self.replaced)} layers replaced, {len(self.kept)} kept"]
        lines += [f"  {name}: {what}" for name, what in self.replaced.items()]
        lines += [f"  {name} kept: {why}" for name, why in self.kept.items()]
        lines += [f"  {name} added" for name in self.reorders]
        return "\n".join(lines)
