"""What a program sets for all of torch changes no result here: a notebook's first cell often does."""

import ast
import contextlib
from pathlib import Path

import pytest
import torch
from torch.utils._device import _device_constructors

import xinfer_lab
from tests.command_line import invoke
from tests.models import tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.qwen2 import Checkpoint, ReferenceModel
from xinfer_lab.qwen2.sampling import sample
from xinfer_lab.residency.model import QwenModel

PACKAGE = Path(xinfer_lab.__file__).parent
TOKENS = torch.tensor([[5, 3, 60, 17, 2]], device="cpu")


@contextlib.contextmanager
def default_device():
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@contextlib.contextmanager
def restored(set, get, value):
    before = get()
    set(value)
    yield
    set(before)


SETTINGS = {
    "default device": default_device,
    "default dtype float64": lambda: restored(torch.set_default_dtype, torch.get_default_dtype, torch.float64),
    "default dtype bfloat16": lambda: restored(torch.set_default_dtype, torch.get_default_dtype, torch.bfloat16),
    "deterministic": lambda: restored(
        torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True
    ),
    "two threads": lambda: restored(torch.set_num_threads, torch.get_num_threads, 2),
    "no gradients": torch.no_grad,
    "gradients": torch.enable_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


def streamed(path):
    with EmulatedDevice() as device, QwenModel.load_streaming(path, device, pool=2) as loaded:
        loaded.begin(2)
        return torch.cat([loaded.forward(TOKENS), loaded.forward(TOKENS[:, :1])], dim=1)


def resident(path):
    with EmulatedDevice() as device, QwenModel.load(path, device) as loaded:
        return loaded.forward(TOKENS)


def reference(path):
    with Checkpoint.open(path) as checkpoint:
        return ReferenceModel(checkpoint, capacity=8).forward(TOKENS)


def drawn(path):
    logits = torch.linspace(-1, 1, 64, dtype=torch.float32, device="cpu")[None]
    return sample(logits, temperature=0.7, generator=torch.Generator().manual_seed(3), top_k=9, top_p=0.9)


@pytest.mark.parametrize("setting", SETTINGS)
def test_results_do_not_depend_on_it(models, setting):
    # Without a device the number of threads is torch's, and with it the order in which numbers are added up.
    runs = [streamed, resident, drawn, *([] if setting == "two threads" else [reference])]
    for run in runs:
        for spec in [tiny(3)] if run is streamed else [tiny(3), tiny(2, experts=4)]:
            path = models.path(spec)
            before = run(path)
            with SETTINGS[setting]():
                after = run(path)
            assert before.dtype == after.dtype and torch.equal(before, after), (run.__name__, spec)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_model_loaded_under_it_runs_without_it(models, setting):
    path = models.path(tiny(3))
    with EmulatedDevice() as device:
        with SETTINGS[setting]():
            loaded = QwenModel.load_streaming(path, device, pool=2)
        loaded.begin(2)
        assert torch.equal(torch.cat([loaded.forward(TOKENS), loaded.forward(TOKENS[:, :1])], dim=1), streamed(path))
        loaded.close()


@pytest.mark.parametrize("setting", ["default device", "default dtype bfloat16", "autocast"])
def test_commands_say_the_same(models, setting):
    path = models.path(tiny(3))
    commands = [("parity", path, "--steps", 2), ("generate", path, "--tokens", "1,2", "--temperature", 1)]
    before = [invoke(*command).stdout for command in commands]
    with SETTINGS[setting]():
        assert [invoke(*command).stdout for command in commands] == before


def makers():
    """Every call in the package that makes a tensor on torch's default device: (where, name, keywords)."""
    names = {function.__name__ for function in _device_constructors()}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Attribute(ast.Name("torch"), name), _, keywords) if name in names:
                    yield f"{file.relative_to(PACKAGE)}:{node.lineno}", name, {keyword.arg for keyword in keywords}


def test_every_tensor_says_where_it_is_made_and_of_what_type():
    typed = {"empty", "zeros", "ones", "rand", "randn", "linspace"}
    found = list(makers())
    assert len(found) > 20
    assert [where for where, _, keywords in found if "device" not in keywords] == []
    assert [where for where, name, keywords in found if name in typed and "dtype" not in keywords] == []
