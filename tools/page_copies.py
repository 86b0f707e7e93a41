"""How fast pages cross the link on this machine's GPU: in a row against the pinned link, and both ways at once.

`python -m tools.page_copies` prints a table; `--pages N` and `--page MIB` choose how much is moved.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch

from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.pool import HybridMemoryPool

__all__ = ["main", "measure"]

ROUNDS = 5


def _rate(device: Device, work: Callable[[], int]) -> float:
    """Bytes a second: the median of a few rounds, each from idle to idle."""
    rates = []
    for _ in range(ROUNDS + 1):
        device.wait_idle()
        start = time.perf_counter()
        moved = work()
        device.wait_idle()
        rates.append(moved / (time.perf_counter() - start))
    return statistics.median(rates[1:])


def _link(device: Device, size: int, *, both: bool) -> float:
    """One large copy to the device, and with ``both`` one back at the same time."""
    up, down = device.create_host_heap(size), device.create_host_heap(size)
    there, back = device.create_buffer(size), device.create_buffer(size)

    def work() -> int:
        device.copy_queue.copy(there, up)
        if both:
            device.write_back_queue.copy(down, back)
        return size * (2 if both else 1)

    rate = _rate(device, work)
    device.wait_idle()
    for buffer in (up, down, there, back):
        buffer.free()
    return rate


def _touch(pool: HybridMemoryPool, extents: list[Extent], *, write: bool) -> None:
    for extent in extents:
        pool.acquire(extent, write=write)
        pool.release(extent)


def measure(pages: int, page_bytes: int) -> dict[str, float]:
    """Bytes a second of every kind of copy, on the first GPU."""
    found: dict[str, float] = {}
    with CudaDevice() as device:
        _ = device.write_back_queue
        found["link, one large copy"] = _link(device, pages * page_bytes, both=False)
        found["link, both ways at once"] = _link(device, pages * page_bytes, both=True)
        pool = HybridMemoryPool(device, frames=pages, pages=2 * pages, page_bytes=page_bytes, policy="lru")
        extents = [pool.create(page_bytes) for _ in range(2 * pages)]
        _touch(pool, extents, write=True)
        for extent in extents:
            pool.evict(extent)
        device.wait_idle()

        def prefetch_all() -> int:
            # Clean pages into free frames: copies in a row, with one signal after them.
            chosen = extents[:pages]
            for extent in chosen:
                pool.evict(extent)
            pool.prefetch(*chosen)
            return pages * page_bytes

        def prefetch_each() -> int:
            chosen = extents[:pages]
            for extent in chosen:
                pool.evict(extent)
            for extent in chosen:
                pool.prefetch(extent)
            return pages * page_bytes

        def demand() -> int:
            # A scan over twice as many pages as there are frames: LRU evicts each before it is used again.
            _touch(pool, extents, write=False)
            return 2 * pages * page_bytes

        def demand_dirty() -> int:
            _touch(pool, extents, write=True)
            return 4 * pages * page_bytes

        found["pages in a row, one signal"] = _rate(device, prefetch_all)
        found["pages in a row, a signal each"] = _rate(device, prefetch_each)
        found["pages on demand, clean"] = _rate(device, demand)
        _touch(pool, extents, write=True)
        found["pages on demand, dirty, both ways"] = _rate(device, demand_dirty)
        for extent in extents:
            pool.evict(extent)
        pool.prefetch(*extents[:pages])
        device.wait_idle()
        start = time.perf_counter()
        _touch(pool, extents[:pages], write=True)
        device.wait_idle()
        touched = time.perf_counter() - start
        start = time.perf_counter()
        pool.write_back(*extents[:pages])
        device.wait_idle()
        found["pages written back in a row"] = pages * page_bytes / (time.perf_counter() - start)
        found["host time of an acquire and a release, us"] = touched / pages * 1e6
        pool.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=512)
    parser.add_argument("--page", type=float, default=2.0, help="MiB of a page")
    given = parser.parse_args()
    found = measure(given.pages, int(given.page * 2**20))
    link, both = found["link, one large copy"], found["link, both ways at once"]
    print(f"{torch.cuda.get_device_name(0)}, {given.pages} pages of {given.page:g} MiB")
    for name, value in found.items():
        if name.endswith("us"):
            print(f"  {name:45} {value:8.1f}")
        else:
            of = both if "both" in name else link
            print(f"  {name:45} {value / 1e9:8.2f} GB/s   {value / of:.3f} of the link")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
