"""`Routing`: what a router chose, on the device and on its way to the host; and a guess at the next choice."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandList
from xinfer_lab.device.records import Source, View
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.qwen2.mixture import ExpertRows, runs_of
from xinfer_lab.residency.experts import expert_layers
from xinfer_lab.residency.load import Uploader

__all__ = ["GATE", "NORM", "NextRouter", "Routing"]

NORM, GATE = "post_attention_layernorm.weight", "mlp.gate.weight"
"""What a router reads of a layer's tensors."""
_ID = 8
"""Bytes of an expert's or row's number."""


class Routing:
    """Memory for the choices of up to ``rows`` tokens: on the device as ``route`` writes them, and a readback heap."""

    def __init__(self, device: Device, config: Qwen2Config, rows: int, name: str = "") -> None:
        assert config.experts is not None
        self._config, self._settings = config, config.experts
        choices, itemsize = rows * self._settings.num_experts_per_tok, config.dtype.itemsize
        self._normed = device.create_buffer(rows * config.hidden_size * itemsize, f"{name}normed")
        self._chosen = device.create_buffer(choices * _ID, f"{name}experts")
        self._rows = device.create_buffer(choices * _ID, f"{name}rows")
        self._scores = device.create_buffer(choices * itemsize, f"{name}scores")
        self._out = device.create_readback_heap(choices * _ID, f"{name}experts.out")
        self.buffers: tuple[Buffer, ...] = (self._normed, self._chosen, self._rows, self._scores, self._out)
        """For the caller that frees them."""

    def begin(self, hidden: View) -> None:
        """What follows is about the rows of ``hidden`` [B, T, H]."""
        rows = hidden.shape[0] * hidden.shape[1]
        self.normed = self._normed.view(self._config.dtype, (rows, hidden.shape[2]))
        self._choices = rows * self._settings.num_experts_per_tok
        self.chosen = self._chosen.view("int64", (self._choices,))

    def record(
        self, commands: CommandList, hidden: View, weights: Mapping[str, View], label: str, *, read: bool = True
    ) -> None:
        """Route ``hidden`` [B, T, H], for which `begin` was called, with the router of ``weights``; and (with ``read``)
        start reading its choices back."""
        chosen = self.chosen
        commands.dispatch(
            "route",
            label=label,
            params={"rms_norm_eps": self._config.rms_norm_eps, "renormalise": self._settings.norm_topk_prob},
            hidden=hidden,
            norm=weights[NORM],
            gate=weights[GATE],
            normed=self.normed,
            experts=chosen,
            rows=self._rows.view("int64", (self._choices,)),
            scores=self._scores.view(self._config.dtype, (self._choices,)),
        )
        if read:
            commands.copy(self._out.span(0, chosen.nbytes), chosen, label=f"read {label} back")

    def dispatch_experts(self, commands: CommandList, weights: View, mixed: View, label: str) -> None:
        """Run the experts that the only row chose, out of all of them: ``weights`` [E, elements of each]."""
        commands.dispatch(
            "experts",
            label=label,
            params={"intermediate_size": self._settings.moe_intermediate_size},
            normed=self.normed,
            chosen=self.chosen,
            scores=self._scores.view(self._config.dtype, (self._choices,)),
            weights=weights,
            mixed=mixed,
        )

    def read(self) -> list[ExpertRows]:
        """What was chosen (see `runs_of`). The host must have waited for the list that `record` was recorded in."""
        return list(runs_of(self._out.read("int64", (self._choices,))))

    def rows_of(self, start: int, end: int) -> tuple[View, View]:
        """Rows [N] and scores [N] of the choices from ``start`` to ``end``."""
        dtype, count = self._config.dtype, end - start
        rows = self._rows.view("int64", (count,), start * _ID)
        return rows, self._scores.view(dtype, (count,), start * dtype.itemsize)


class NextRouter:
    """Guesses which experts the next layer will choose: its router, on the hidden state of this layer.

    A residual stream changes little from layer to layer, so that the guess is often right (Eliseev and Mazur, "Fast
    Inference of Mixture-of-Experts Language Models with Offloading", 2023). Norms and routers of all layers stay in
    device memory for it, whatever the residency of the layers.
    """

    def __init__(self, device: Device, config: Qwen2Config, rows: int) -> None:
        self._routing = Routing(device, config, rows, "next.")
        self._layers = expert_layers(config)
        places = [
            place for place in layer_layout(config, self._layers[0]).group("mlp").tensors if place.name in (NORM, GATE)
        ]
        uploader = Uploader(device, max(place.nbytes for place in places))
        self._weights: dict[int, dict[str, View]] = {}
        routers: list[Buffer] = []
        for layer in self._layers[1:]:
            self._weights[layer] = {}
            for place in places:
                name = tensor_name(layer, place.name)
                routers.append(device.create_buffer(place.nbytes, f"next.{name}"))
                self._weights[layer][place.name] = routers[-1].view(config.dtype, place.shape)
                uploader.upload(routers[-1], 0, Source(name, 0, place.nbytes))
        uploader.finish(*routers)
        self.buffers: tuple[Buffer, ...] = (*self._routing.buffers, *routers)
        """For the caller that frees them."""

    def after(self, layer: int) -> int | None:
        """The next layer that has experts; None after the last."""
        return next((other for other in self._layers if other > layer), None)

    def begin(self, hidden: View) -> None:
        """As `Routing.begin`."""
        self._routing.begin(hidden)

    def record(self, commands: CommandList, hidden: View, layer: int) -> None:
        """Route ``hidden`` as ``layer`` would, and start reading its choices back."""
        self._routing.record(commands, hidden, self._weights[layer], f"guess {layer}")

    def read(self) -> list[int]:
        """The experts that were guessed, in order; as `Routing.read`."""
        return [expert for expert, _, _ in self._routing.read()]
