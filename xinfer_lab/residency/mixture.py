"""`Mixture`: a layer with experts on a device. It learns what tokens chose, and asks for those experts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandList
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.layers import layer_spec
from xinfer_lab.qwen2.mixture import ExpertRows
from xinfer_lab.residency.experts import ExpertsFactory, ExpertWeights, ResidentExperts
from xinfer_lab.residency.kept import KeptLists
from xinfer_lab.residency.kernels import ATTENTION_WEIGHTS, layer_params
from xinfer_lab.residency.mixture_kernels import EXPERT_WEIGHTS, SHARED_WEIGHTS, together_names
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
        self._lists = KeptLists(device.direct_queue)

    def run(self, layer: int, position: int, hidden: View, kv: View, weights: LayerWeights) -> None:
        """``layer`` on ``hidden`` [B, T, H] in place, for tokens from ``position`` on, with the layer's cache ``kv``.

        Blocks the host until the router is done, unless there is one row and all experts are resident: then they are
        read by their numbers in device memory.
        """
        direct, views = self._device.direct_queue, weights.views
        rows = hidden.shape[0] * hidden.shape[1]
        mixed = self._mixed.view(self._config.dtype, (rows, hidden.shape[2]))
        following = self._next.after(layer) if self._next is not None else None
        whole = self.experts.whole(layer) if rows == 1 and isinstance(self.experts, ResidentExperts) else None
        self._routing.begin(hidden)
        if self._next is not None:
            self._next.begin(hidden)

        def attend_and_route(commands: CommandList) -> None:
            commands.dispatch(
                "attention",
                label=f"attention {layer}",
                params=layer_params(layer_spec(self._config, layer), position),
                hidden=hidden,
                kv=kv,
                **{name: views[name] for name in ATTENTION_WEIGHTS},  # type: ignore[arg-type]
            )
            self._routing.record(commands, hidden, views, f"route {layer}", read=whole is None)
            if self._next is not None and following is not None:
                self._next.record(commands, hidden, following)

        def shared(commands: CommandList) -> None:
            given = {name: views[name] for name in SHARED_WEIGHTS}
            commands.dispatch(
                "shared_expert",
                label=f"shared expert {layer}",
                normed=self._routing.normed,
                mixed=mixed,
                **given,  # type: ignore[arg-type]
            )

        def combine(commands: CommandList) -> None:
            commands.dispatch("combine", label=f"combine {layer}", mixed=mixed, hidden=hidden)

        def everything(commands: CommandList) -> None:
            attend_and_route(commands)
            shared(commands)
            assert whole is not None
            self._routing.dispatch_experts(commands, whole, mixed, f"experts {layer}")
            combine(commands)

        key = (layer, hidden, kv, *views.values())
        run = functools.partial(self._lists.run_step, hidden.shape[1])
        if whole is not None:
            # Whatever the row chooses is there: the host need not know, and the whole layer is one list.
            run((key, "all"), f"layer {layer}", everything, position=position)
            return
        run((key, "route"), f"route {layer}", attend_and_route, position=position)
        value = self._routed.last_submitted + 1
        direct.signal(self._routed, value)
        run((key, "shared"), f"shared expert {layer}", shared)
        self._routed.wait(value)
        found = self._routing.read()
        self._judge(layer, found)

        self.experts.expect(layer, [expert for expert, _, _ in found], certain=True)
        chosen = [expert for expert, _, _ in found]
        together = self.experts.ensure_together(layer, chosen) if rows == 1 else None
        if together is not None:
            self._run_together(layer, chosen, together, mixed)
        else:
            for choice in found:
                self._run_expert(layer, choice, mixed)
        if self._next is not None and following is not None:
            self._guess = following, self._next.read()
            self.experts.expect(*self._guess, certain=False)
        run((layer, hidden, "combine"), f"combine {layer}", combine)

    def _run_together(self, layer: int, chosen: list[int], experts: Sequence[ExpertWeights], mixed: View) -> None:
        """The experts that the only row chose, in one dispatch: a chain of small ones would be the host's time."""
        weights = {
            name: views[tensor]
            for views, names in zip(experts, together_names(len(chosen)), strict=True)
            for name, tensor in zip(names, EXPERT_WEIGHTS, strict=True)
        }
        try:
            with self._device.direct_queue.record(f"experts {layer}") as commands:
                commands.dispatch(
                    "experts_together",
                    label=f"experts {layer}: {', '.join(map(str, chosen))}",
                    normed=self._routing.normed,
                    scores=self._routing.rows_of(0, len(chosen))[1],
                    mixed=mixed,
                    **weights,  # type: ignore[arg-type]  # no tensor is called label or params
                )
        finally:
            self.experts.release_together(layer, chosen)

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
        self._lists.clear()
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []
