"""`Mixture`: a layer with experts on a device. It learns what tokens chose, and asks for those experts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.layers import layer_spec
from xinfer_lab.qwen2.mixture import ExpertRows
from xinfer_lab.residency.experts import ExpertsFactory
from xinfer_lab.residency.kernels import ATTENTION_WEIGHTS, layer_params
from xinfer_lab.residency.mixture_kernels import SHARED_WEIGHTS
from xinfer_lab.residency.routing import NextRouter, Routing
from xinfer_lab.residency.weights import LayerWeights, ModelWeights

__all__ = ["GuessStatistics", "Mixture"]


@dataclass(frozen=True, slots=True)
class GuessStatistics:
    """Experts that were ``guessed`` for a layer, that it ``chose`` then (where there was a guess), and that were
    ``right``: both."""

    guessed: int = 0
    chose: int = 0
    right: int = 0


class Mixture:
    """Routes up to ``rows`` tokens a pass, and runs the experts that they chose, from ``experts``.

    What tokens chose is data: the host waits for the router, reads its choices back (their digest is in the stream) and
    submits the experts in the order of their numbers, each with the rows that chose it. So what is computed depends on
    the weights and the tokens alone, and not on where experts are. While the host waits, the direct queue goes on with
    the shared expert. Where the source asks for guesses, the next layer's choices are guessed in the same wait.
    """

    def __init__(self, device: Device, weights: ModelWeights, rows: int, make_experts: ExpertsFactory) -> None:
        config = weights.config
        assert config.experts is not None
        self._device, self._config = device, config
        self._routing = Routing(device, config, rows)
        self._mixed = device.create_buffer(rows * config.hidden_size * config.dtype.itemsize, "mixed")
        self._buffers: list[Buffer] = [*self._routing.buffers, self._mixed]
        self._routed = device.create_fence(device.fresh_name("routed"))
        self.experts = make_experts(device, weights)
        self._next = NextRouter(device, config, rows) if self.experts.wants_guesses else None
        if self._next is not None:
            self._buffers += self._next.buffers
        self._guess: tuple[int, list[int]] | None = None
        self.guesses = GuessStatistics()

    def run(self, layer: int, position: int, hidden: View, kv: View, weights: LayerWeights) -> None:
        """``layer`` on ``hidden`` [B, T, H] in place, for tokens from ``position`` on, with the layer's cache ``kv``.

        Blocks the host until the router is done.
        """
        direct, views = self._device.direct_queue, weights.views
        mixed = self._mixed.view(self._config.dtype, (hidden.shape[0] * hidden.shape[1], hidden.shape[2]))
        following = self._next.after(layer) if self._next is not None else None
        with direct.record(f"route {layer}") as commands:
            commands.dispatch(
                "attention",
                label=f"attention {layer}",
                params=layer_params(layer_spec(self._config, layer), position),
                hidden=hidden,
                kv=kv,
                **{name: views[name] for name in ATTENTION_WEIGHTS},  # type: ignore[arg-type]
            )
            self._routing.record(commands, hidden, views, f"route {layer}")
            if self._next is not None and following is not None:
                self._next.record(commands, hidden, following)
        value = self._routed.last_submitted + 1
        direct.signal(self._routed, value)
        shared = {name: views[name] for name in SHARED_WEIGHTS}
        with direct.record(f"shared expert {layer}") as commands:
            commands.dispatch("shared_expert", normed=self._routing.normed, mixed=mixed, **shared)  # type: ignore[arg-type]
        self._routed.wait(value)
        found = self._routing.read()
        self._judge(layer, found)

        self.experts.expect(layer, [expert for expert, _, _ in found], certain=True)
        for choice in found:
            self._run_expert(layer, choice, mixed)
        if self._next is not None and following is not None:
            self._guess = following, self._next.read()
            self.experts.expect(*self._guess, certain=False)
        with direct.record(f"combine {layer}") as commands:
            commands.dispatch("combine", mixed=mixed, hidden=hidden)

    def _run_expert(self, layer: int, choice: ExpertRows, mixed: View) -> None:
        expert, start, end = choice
        rows, scores = self._routing.rows_of(start, end)
        weights = self.experts.ensure(layer, expert)
        try:
            with self._device.direct_queue.record(f"expert {layer},{expert}") as commands:
                commands.dispatch(
                    "expert",
                    normed=self._routing.normed,
                    rows=rows,
                    scores=scores,
                    mixed=mixed,
                    **weights,  # type: ignore[arg-type]  # no tensor is called label or params
                )
        finally:
            self.experts.release(layer, expert)

    def _judge(self, layer: int, found: list[ExpertRows]) -> None:
        if self._guess is None or self._guess[0] != layer:
            return
        guessed, chose = set(self._guess[1]), {expert for expert, _, _ in found}
        so_far, self._guess = self.guesses, None
        self.guesses = replace(
            so_far,
            guessed=so_far.guessed + len(guessed),
            chose=so_far.chose + len(chose),
            right=so_far.right + len(guessed & chose),
        )

    def close(self) -> None:
        """Block the host until nothing is in flight, and give the memory back. May be called again."""
        self.experts.close()
        self._device.wait_idle()
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []
