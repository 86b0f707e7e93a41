"""`Mixture`: the second half of a layer with experts on a device. It learns what tokens chose, and asks for those
experts.
"""

from __future__ import annotations

from typing import TypeVar

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.mixture import runs_of
from xinfer_lab.residency.experts import ExpertsFactory
from xinfer_lab.residency.mixture_kernels import SHARED_WEIGHTS
from xinfer_lab.residency.weights import LayerWeights, ModelWeights

__all__ = ["Mixture"]

_B = TypeVar("_B", bound=Buffer)
_ID = 8
"""Bytes of an expert's or row's number."""


class Mixture:
    """Routes up to ``rows`` tokens a pass, and runs the experts that they chose, from ``experts``.

    What tokens chose is data: the host waits for the router, reads its choices back (their digest is in the stream) and
    submits the experts in the order of their numbers, each with the rows that chose it. So the commands depend on the
    weights and the tokens alone, and not on where experts are. While the host waits, the direct queue goes on with the
    shared expert.
    """

    def __init__(self, device: Device, weights: ModelWeights, rows: int, make_experts: ExpertsFactory) -> None:
        config = weights.config
        assert config.experts is not None
        self._device, self._config, self._settings = device, config, config.experts
        self._buffers: list[Buffer] = []
        activations = rows * config.hidden_size * config.dtype.itemsize
        choices = rows * self._settings.num_experts_per_tok
        self._normed = self._keep(device.create_buffer(activations, "normed"))
        self._mixed = self._keep(device.create_buffer(activations, "mixed"))
        self._chosen = self._keep(device.create_buffer(choices * _ID, "experts"))
        self._rows = self._keep(device.create_buffer(choices * _ID, "rows"))
        self._scores = self._keep(device.create_buffer(choices * config.dtype.itemsize, "scores"))
        self._chosen_out = self._keep(device.create_readback_heap(choices * _ID, "experts.out"))
        self._routed = device.create_fence(device.fresh_name("routed"))
        self.experts = make_experts(device, weights)

    def _keep(self, buffer: _B) -> _B:
        self._buffers.append(buffer)
        return buffer

    def run(self, layer: int, hidden: View, weights: LayerWeights) -> None:
        """The second half of ``layer`` on ``hidden`` [B, T, H], in place. Blocks the host until the router is done."""
        batch, tokens, size = hidden.shape
        rows, choices = batch * tokens, batch * tokens * self._settings.num_experts_per_tok
        dtype, direct = self._config.dtype, self._device.direct_queue
        normed, mixed = (buffer.view(dtype, (rows, size)) for buffer in (self._normed, self._mixed))
        chosen = self._chosen.view("int64", (choices,))
        with direct.record(f"route {layer}") as commands:
            commands.dispatch(
                "route",
                params={"rms_norm_eps": self._config.rms_norm_eps, "renormalise": self._settings.norm_topk_prob},
                hidden=hidden,
                norm=weights.views["post_attention_layernorm.weight"],
                gate=weights.views["mlp.gate.weight"],
                normed=normed,
                experts=chosen,
                rows=self._rows.view("int64", (choices,)),
                scores=self._scores.view(dtype, (choices,)),
            )
            commands.copy(self._chosen_out.span(0, chosen.nbytes), chosen, label=f"read choices {layer} back")
        value = self._routed.last_submitted + 1
        direct.signal(self._routed, value)
        shared = {name: weights.views[name] for name in SHARED_WEIGHTS}
        with direct.record(f"shared expert {layer}") as commands:
            commands.dispatch("shared_expert", normed=normed, mixed=mixed, **shared)  # type: ignore[arg-type]
        self._routed.wait(value)
        found = list(runs_of(self._chosen_out.read("int64", (choices,))))

        self.experts.expect(layer, [expert for expert, _, _ in found], certain=True)
        for expert, start, end in found:
            self._run_expert(layer, expert, start, end, normed, mixed)
        with direct.record(f"combine {layer}") as commands:
            commands.dispatch("combine", mixed=mixed, hidden=hidden)

    def _run_expert(self, layer: int, expert: int, start: int, end: int, normed: View, mixed: View) -> None:
        dtype, count = self._config.dtype, end - start
        weights = self.experts.ensure(layer, expert)
        try:
            with self._device.direct_queue.record(f"expert {layer},{expert}") as commands:
                commands.dispatch(
                    "expert",
                    normed=normed,
                    rows=self._rows.view("int64", (count,), start * _ID),
                    scores=self._scores.view(dtype, (count,), start * dtype.itemsize),
                    mixed=mixed,
                    **weights,  # type: ignore[arg-type]  # no tensor is called label or params
                )
        finally:
            self.experts.release(layer, expert)

    def close(self) -> None:
        """Block the host until nothing is in flight, and give the memory back. May be called again."""
        self.experts.close()
        self._device.wait_idle()
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []
