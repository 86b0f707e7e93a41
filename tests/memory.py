"""How much memory a call takes."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch


def peak_on_cpu(call: Callable[[], object]) -> int:
    """The most bytes that a call has allocated at any one time, as PyTorch's allocator reports them."""
    with torch.inference_mode():
        call()  # constants that stay are made once
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
        ) as profile:
            call()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trace.json"
        profile.export_chrome_trace(str(file))
        events = [event for event in json.loads(file.read_text())["traceEvents"] if event["name"] == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        live += event["args"]["Bytes"]
        peak = max(peak, live)
    return peak
