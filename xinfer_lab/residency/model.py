"""`QwenModel`: the one forward pass. It asks a `LayerSource` for weights and knows nothing of where they come from.

The residencies are imported where a model is loaded with one (`xinfer_lab.residency.factories`), so that the forward
pass can be used without them: a lab that asks for a residency runs in a process where that module cannot be imported.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import torch

from xinfer_lab.device.buffers import Buffer, ReadbackHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.queue import CommandList
from xinfer_lab.device.records import View
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layers import layer_spec
from xinfer_lab.qwen2.precision import own_precision
from xinfer_lab.residency.cache import CacheFactory, cache_shape, contiguous_cache
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.experts import ExpertsFactory, resident_experts
from xinfer_lab.residency.factories import (
    MIN_POOL,
    Progress,
    SourceFactory,
    compressed_layers,
    effective_pool,
    resident_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.group import GroupLayers
from xinfer_lab.residency.hand_over import HiddenState
from xinfer_lab.residency.kept import KeptLists
from xinfer_lab.residency.kernels import layer_params
from xinfer_lab.residency.mixture import Mixture
from xinfer_lab.residency.outside import OutsideWeights
from xinfer_lab.residency.tokens import checked_tokens
from xinfer_lab.residency.weights import CheckpointWeights, LayerWeights, ModelWeights

__all__ = ["DEFAULT_CONTEXT", "MIN_POOL", "Progress", "QwenModel", "SourceFactory", "effective_pool"]

DEFAULT_CONTEXT = 4096
"""Tokens that the cache has room for unless said otherwise; never more than the model's own maximum."""

_B = TypeVar("_B", bound=Buffer)

_SPREAD = "over several go dense layers, resident, streamed or planned, plain or coded"


class QwenModel:
    """A Qwen2 model on a device: embedding, final norm, head, caches and activations resident, layers from a source.

    ``batch`` sequences of equal length; ``context`` tokens of cache for each; ``chunk`` is the most tokens of one
    forward pass (default: the whole context); ``positions`` is how many last positions get logits (None: all of a
    chunk); with ``host_embedding`` the embedding stays in host memory (see `OutsideWeights`); ``make_cache`` makes the
    cache, ``make_experts`` the source of experts. All device memory is allocated here, once; raises `OutOfDeviceMemory`
    with nothing left behind. The workspace of kernels comes on top of it, counted when a pass first needs it.
    """

    def __init__(
        self,
        weights: ModelWeights,
        device: Device,
        make_source: SourceFactory,
        *,
        batch: int = 1,
        context: int | None = None,
        chunk: int | None = None,
        positions: int | None = 1,
        host_embedding: bool = False,
        make_cache: CacheFactory = contiguous_cache,
        make_experts: ExpertsFactory = resident_experts,
    ) -> None:
        config = weights.config
        context = min(DEFAULT_CONTEXT, config.max_position_embeddings) if context is None else context
        chunk = context if chunk is None else min(chunk, context)
        if min(batch, context, chunk) < 1:
            raise RequestError(f"batch, context and chunk are at least 1: {batch}, {context}, {chunk}")
        if context > config.max_position_embeddings:
            raise RequestError(
                f"a context of {context} tokens was asked for, but this model was made for "
                f"{config.max_position_embeddings}"
            )
        if positions is not None and positions < 1:
            raise RequestError(f"logits of at least 1 position are needed, not {positions}")
        self.config, self.device, self.weights = config, device, weights
        self.batch, self.context, self.chunk = batch, context, chunk
        self.positions = chunk if positions is None else min(positions, chunk)
        self.position = 0
        self.steps_left = self._announced = 0
        self._buffers: list[Buffer] = []
        self._checkpoint: Checkpoint | None = None
        self._hidden_out: ReadbackHeap | None = None
        # Tokens stay in the stream as its inputs, those of earlier models on this device too.
        self._passes = itertools.count(sum(name.startswith("tokens[") for name in device.sources.inputs))
        self._closed = False
        self._steps = [KeptLists(node.direct_queue) for node in device.nodes]
        if len(device.nodes) > 1 and config.experts is not None:
            raise RequestError(f"a model with experts runs on one card; {_SPREAD}")
        device.sources.mount(weights)
        try:
            with all_or_nothing(device):
                self._allocate(host_embedding, make_cache)
                self.source = make_source(device, weights)
                if len(device.nodes) > 1 and not isinstance(self.source, GroupLayers):
                    raise RequestError(f"{type(self.source).__name__} runs on one card; {_SPREAD}")
                self.mixture = Mixture(device, weights, batch * chunk, make_experts) if config.experts else None
        except BaseException:
            device.sources.unmount(weights)
            raise

    # Loading

    @classmethod
    def load(
        cls, path: str | Path | Checkpoint, device: Device, *, on_layer: Progress | None = None, **shape: int | None
    ) -> QwenModel:
        """The checkpoint at ``path`` with all layers resident (and experts). Blocks until they have arrived.

        ``shape``: see the class. Host memory: two staged chunks of at most 64 MiB while loading, then only what a pass
        hands in and out. The files are mapped while they are read and not afterwards.
        """
        return cls._open(path, device, resident_layers(on_layer), shape)

    @classmethod
    def load_streaming(
        cls,
        path: str | Path | Checkpoint,
        device: Device,
        pool: int = 2,
        *,
        host_memory: str = "pinned",
        on_layer: Progress | None = None,
        **shape: int | None,
    ) -> QwenModel:
        """The checkpoint at ``path`` with its layers streaming through ``pool`` slots.

        A pool of 1 gets 2 slots; a pool that covers all layers loads them resident. ``host_memory``: "pinned" keeps a
        pinned copy of all layers, and the files are not mapped afterwards; "staged" keeps room for ``pool - 1``
        layers (at least 2), through which each layer is copied from the mapped files whenever it is uploaded.
        """
        return cls._open(path, device, streaming_layers(pool, host_memory, on_layer), shape)

    @classmethod
    def load_serial(
        cls,
        path: str | Path | Checkpoint,
        device: Device,
        *,
        host_memory: str = "pinned",
        on_layer: Progress | None = None,
        **shape: int | None,
    ) -> QwenModel:
        """The checkpoint at ``path``, each layer uploaded when it is needed and not before: what streaming is compared
        with."""
        return cls._open(path, device, serial_layers(host_memory, on_layer), shape)

    @classmethod
    def load_compressed(
        cls,
        path: str | Path | Checkpoint,
        device: Device,
        pool: int = 2,
        *,
        codec: str = "3bit",
        side_file: str | Path | None = None,
        host_memory: str = "pinned",
        on_layer: Progress | None = None,
        on_encode: Progress | None = None,
        **shape: int | None,
    ) -> QwenModel:
        """As `load_streaming`, with the layers in their coded form ("3bit" or "4bit"), also where a pool covers all.

        ``side_file`` (default: beside the checkpoint) is made first if there is none, which takes a while and calls
        ``on_encode`` with each layer that is done. Raises `RequestError` for weights that are not bfloat16.
        """
        from xinfer_lab.residency.codec.side_file import open_side_file

        checkpoint = path if isinstance(path, Checkpoint) else Checkpoint.open(path)
        try:
            side = open_side_file(checkpoint, codec, side_file, on_encode=on_encode)
            layers = checkpoint.config.num_hidden_layers
            slots = effective_pool(pool, layers)
            streamed = range(layers) if slots is not None else ()
            made = compressed_layers(side, streamed, slots or 0, host_memory, on_layer)
            model = cls._open(checkpoint, device, made, shape)
        except BaseException:
            if checkpoint is not path:
                checkpoint.close()
            raise
        if checkpoint is not path:
            model._checkpoint = checkpoint
        return model

    @classmethod
    def _open(
        cls, path: str | Path | Checkpoint, device: Device, make: SourceFactory, shape: dict[str, int | None]
    ) -> QwenModel:
        checkpoint = path if isinstance(path, Checkpoint) else Checkpoint.open(path)
        try:
            model = cls(CheckpointWeights(checkpoint), device, make, **shape)  # type: ignore[arg-type]
        except BaseException:
            if checkpoint is not path:
                checkpoint.close()
            raise
        # What was read so far was copied: pages that stay mapped would be a second copy. Staged layers map them again.
        checkpoint.unmap()
        if checkpoint is not path:
            model._checkpoint = checkpoint
        return model

    # Running

    def begin(self, steps: int) -> None:
        """Announce ``steps`` forward passes, so that layers can be fetched ahead across them.

        The source begins with the first of them, behind its tokens: they cross the same link, and everything would
        stand still if they had to wait there for the first layers. Raises ValueError for less than 1.
        """
        if steps < 1:
            raise ValueError(f"a run has at least one step, not {steps}")
        self.steps_left = self._announced = steps

    @own_precision()
    def forward(
        self, tokens: torch.Tensor, *, on_layer: Callable[[int, torch.Tensor], None] | None = None
    ) -> torch.Tensor:
        """Logits [B, P, V] of the last P positions of ``tokens`` [B, T] (int64), which follow what was run before.

        P is the smaller of T and the model's ``positions``. Blocks until the logits are there, as a host tensor of the
        model's dtype. ``on_layer(i, hidden [B, T, H])`` sees what each layer made (this blocks the host after each
        layer). Raises `RequestError` for tokens that do not fit; begins a run of one pass if none was announced. After
        any other error the sequence is as it was before the call: the pass is finished unused, and the next
        one may follow.
        """
        if self._closed:
            raise RequestError("this model was closed: load it again")
        tokens = checked_tokens(
            tokens, batch=self.batch, vocabulary=self.config.vocab_size, chunk=self.chunk, position=self.position,
            context=self.context,
        )  # fmt: skip
        if self.steps_left == 0:
            self.begin(1)
        count = tokens.shape[1]
        layers = iter(range(self.config.num_hidden_layers))
        try:
            hidden = self._embed(tokens)
            if self._announced:
                self.source.begin(self._announced)
                self._announced = 0
            for layer in layers:
                self._run_layer(layer, hidden)
                if on_layer is not None:
                    on_layer(layer, self._read_hidden(hidden))
            logits = self._logits(hidden, min(count, self.positions))
        except BaseException:
            # A source that failed itself may refuse to go on; what matters then is its own error.
            with contextlib.suppress(Exception):
                self._leave_pass(list(layers))
            raise
        self.position += count
        self.steps_left -= 1
        return logits

    def _leave_pass(self, rest: list[int]) -> None:
        try:
            if len(rest) < self.config.num_hidden_layers:
                self.steps_left -= 1
                for layer in rest:
                    self.source.ensure(layer)
                    self.source.release(layer)
        finally:
            for card in range(len(self.device.nodes)):
                self._finish(card)

    def _run_layer(self, layer: int, hidden: View) -> None:
        tokens, hidden = hidden.shape[1], self._state.on(layer % len(self.device.nodes), hidden)
        kv = self.cache.ensure(layer, self.position, tokens)
        weights = self.source.ensure(layer)
        try:
            if self.mixture is not None and self.config.has_experts(layer):
                self.mixture.run(layer, self.position, hidden, kv, weights)
            else:
                self._steps[self._state.card].run_step(
                    tokens,
                    (layer, hidden, kv, *weights.views.values()),
                    f"layer {layer}",
                    lambda commands: self._dispatch_layer(commands, layer, hidden, kv, weights),
                    position=self.position,
                )
        finally:
            self.source.release(layer)
        self.cache.release(layer, self.position, tokens)

    def _dispatch_layer(self, commands: CommandList, layer: int, hidden: View, kv: View, weights: LayerWeights) -> None:
        commands.dispatch(
            "decoder_layer",
            params=layer_params(layer_spec(self.config, layer), self.position),
            hidden=hidden,
            kv=kv,
            **weights.views,  # type: ignore[arg-type]  # no tensor is called label or params
        )

    def _embed(self, tokens: torch.Tensor) -> View:
        span = self._tokens_in.write(0, tokens, name=f"tokens[{next(self._passes)}]")
        shape = (tokens.shape[0], tokens.shape[1])
        ids = self._tokens.view("int64", shape)
        hidden = self._state.begin((*shape, self.config.hidden_size))

        def fill(commands: CommandList) -> None:
            commands.copy(ids, span, label="upload tokens")
            commands.dispatch("embed", tokens=ids, weight=self._outside.embedding, out=hidden)

        self._steps[0].run_step(shape[1], ("embed", hidden), "embed", fill)
        return hidden

    def _logits(self, hidden: View, positions: int) -> torch.Tensor:
        card = self._outside.head_card
        hidden = self._state.on(card, hidden)
        shape = (self.batch, positions, self.config.vocab_size)
        out = self._logits_buffer.view(self.config.dtype, shape)

        def fill(commands: CommandList) -> None:
            commands.dispatch(
                "lm_head",
                params={"rms_norm_eps": self.config.rms_norm_eps},
                hidden=hidden,
                norm=self._outside.norm,
                weight=self._outside.head,
                out=out,
            )
            commands.copy(self._logits_out.span(0, out.nbytes), out, label="read logits back")

        self._steps[card].run_step(hidden.shape[1], ("head", hidden, out), "head", fill)
        self._finish(card)
        return self._logits_out.read(self.config.dtype, shape)

    def _read_hidden(self, hidden: View) -> torch.Tensor:
        if self._hidden_out is None:
            self._hidden_out = self._keep(self.device.create_readback_heap(self._state.size, "hidden.out"))
        card, here = self._state.card, self._state.at(hidden)
        queue = self.device.nodes[card].direct_queue
        queue.copy(self._hidden_out.span(0, here.nbytes), here, label="read hidden back")
        self._finish(card)
        return self._hidden_out.read(self.config.dtype, here.shape)

    def _finish(self, card: int = 0) -> None:
        done = self._done[card]
        value = done.last_submitted + 1
        self.device.nodes[card].direct_queue.signal(done, value)
        done.wait(value)

    def reset(self) -> None:
        """Forget all tokens so far: the next forward pass starts a new sequence."""
        self.position = 0
        self.cache.reset()

    # Memory

    def _allocate(self, host_embedding: bool, make_cache: CacheFactory) -> None:
        config, device = self.config, self.device
        itemsize, rows = config.dtype.itemsize, self.batch * self.chunk
        self._outside = OutsideWeights(device, config, host_embedding=host_embedding)
        self._buffers += self._outside.buffers
        self._tokens = self._keep(device.create_buffer(rows * 8, "tokens"))
        self._state = HiddenState(device, rows * config.hidden_size * itemsize, config.dtype)
        self._buffers += self._state.buffers
        logits_bytes = self.batch * self.positions * config.vocab_size * itemsize
        head = self._outside.head_card
        self._logits_buffer = self._keep(device.create_buffer(logits_bytes, on_node("logits", head), node=head))
        self.cache = make_cache(device, cache_shape(config, self.batch, self.context))
        self._tokens_in = self._keep(device.create_upload_heap(rows * 8, "tokens.in"))
        self._logits_out = self._keep(device.create_readback_heap(logits_bytes, "logits.out"))
        self._done = [device.create_fence(device.fresh_name("done")) for _ in device.nodes]
        self._outside.load()

    def _keep(self, buffer: _B) -> _B:
        self._buffers.append(buffer)
        return buffer

    def close(self) -> None:
        """Drain, give all memory back and close the checkpoint if this model opened it; the device stays open. May be
        called again, and in the middle of a run."""
        if self._closed:
            return
        self._closed = True
        self.source.close()
        if self.mixture is not None:
            self.mixture.close()
        for card, lists in enumerate(self._steps):
            self._finish(card)
            lists.clear()
        self.cache.close()
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []
        self.device.sources.unmount(self.weights)
        if self._checkpoint is not None:
            self._checkpoint.close()

    def __enter__(self) -> QwenModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        # After an error the device may not be able to drain any more; then the first error is the one to see.
        with contextlib.suppress(*(() if kind is None else (Exception,))):
            self.close()
