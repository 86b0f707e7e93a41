"""`KeptLists`: command lists that repeat from pass to pass, recorded once and executed again."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from xinfer_lab.device.queue import CommandList, CommandQueue
from xinfer_lab.device.records import Scalar

__all__ = ["KeptLists"]

_MOST = 2048
"""Lists that are kept: the layers of the largest model in every slot of a ring of a dozen."""


class KeptLists:
    """Lists of ``queue`` by a key: everything that they depend on but the parameters that vary."""

    def __init__(self, queue: CommandQueue) -> None:
        self._queue = queue
        self._lists: dict[Hashable, CommandList] = {}

    def run(self, key: Hashable, label: str, fill: Callable[[CommandList], None], **params: Scalar) -> None:
        """Execute the list of ``key`` with ``params``; the first time, and whenever it cannot be executed as it was
        recorded, record it again with ``fill``, which uses the same parameters."""
        commands = self._lists.get(key)
        if commands is not None and commands.executable:
            self._queue.execute(commands, **params)
            return
        with self._queue.record(label, keep=True) as commands:
            fill(commands)
        if len(self._lists) >= _MOST:
            self._lists.clear()
        self._lists[key] = commands

    def run_step(
        self, tokens: int, key: Hashable, label: str, fill: Callable[[CommandList], None], **params: Scalar
    ) -> None:
        """As `run` for a pass over one token of each sequence, which is the same for every token but for ``params``;
        over more of them, record ``fill`` and keep nothing."""
        if tokens == 1:
            self.run(key, label, fill, **params)
        else:
            with self._queue.record(label) as commands:
                fill(commands)

    def clear(self) -> None:
        """Forget all lists, such as when their buffers go."""
        self._lists.clear()
