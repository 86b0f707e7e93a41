"""`LayerSource`: what the forward pass asks for each layer's weights. One protocol, many residencies.

Four calls, and no word on queues or slots: the forward pass is written once, and a new way of keeping layers cannot
change what is computed.
"""

from __future__ import annotations

from typing import Protocol

from xinfer_lab.residency.errors import LayerOrderError
from xinfer_lab.residency.weights import LayerWeights

__all__ = ["LayerOrder", "LayerSource"]


class LayerSource(Protocol):
    """Hands out layers in order. Nothing here blocks the host unless the class says so."""

    @property
    def uploads(self) -> int:
        """Layers uploaded since the source was made, by running: not what was loaded before the first pass."""
        ...

    def begin(self, steps: int) -> None:
        """A run of ``steps`` forward passes starts; first uploads may go out."""
        ...

    def ensure(self, layer: int) -> LayerWeights:
        """From here on the direct queue may read this layer's weights."""
        ...

    def release(self, layer: int) -> None:
        """The direct queue has been given its last read of them in this pass."""
        ...

    def close(self) -> None:
        """Drain; nothing of it is in flight afterwards, and its memory is given back. May be called again."""
        ...


class LayerOrder:
    """Counts the running step of a source: pass number times ``layers`` plus layer. Refuses any other order.

    ``step`` is the step being served or next to be; ``end`` is the step after the last announced one.
    """

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.step = 0
        self.end = 0
        self._open = False

    def begin(self, steps: int) -> None:
        """Announce ``steps`` further passes, from the next one on; what was announced before and not run is dropped."""
        if steps < 1:
            raise ValueError(f"a run has at least one step, not {steps}")
        if self._open or self.step % self.layers:
            raise LayerOrderError(
                f"a run cannot begin in the middle of a pass: layer {self.step % self.layers} is next"
            )
        self.end = self.step + steps * self.layers

    def ensure(self, layer: int) -> int:
        """Layer ``layer`` is asked for; returns its step."""
        wanted = self.step % self.layers
        if self.step >= self.end:
            raise LayerOrderError(f"layer {layer} was asked for after the last announced pass; call begin(steps) first")
        if layer != wanted or self._open:
            state = f"layer {wanted} is still in use: release it first" if self._open else f"layer {wanted} is next"
            raise LayerOrderError(f"layer {layer} was asked for, but {state}")
        self._open = True
        return self.step

    def release(self, layer: int) -> int:
        """Layer ``layer`` is done with; returns its step."""
        wanted = self.step % self.layers
        if not self._open or layer != wanted:
            raise LayerOrderError(f"layer {layer} was released, but it is not the one in use")
        self._open = False
        self.step += 1
        return self.step - 1
