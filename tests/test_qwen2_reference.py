"""The plain resident run."""

import pytest
import torch

from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, SyntheticSpec, layer_layout, write_checkpoint

PROMPT = torch.tensor([[3, 1, 4, 1, 5]])


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16"])
def directory(request, tmp_path_factory):
    return write_checkpoint(
        tmp_path_factory.mktemp("reference") / "model",
        SyntheticSpec(layers=3, dtype=request.param, tied=request.param == "float16"),
    )


def model_of(directory, **options):
    with Checkpoint.open(directory) as checkpoint:
        return ReferenceModel(checkpoint, capacity=8, **options)


def test_the_same_run_gives_the_same_bytes(directory):
    first, second = model_of(directory), model_of(directory)
    for tokens in (PROMPT, PROMPT[:, :1], PROMPT[:, 1:2]):
        one, two = first.forward(tokens), second.forward(tokens)
        assert torch.equal(one.view(torch.uint8), two.view(torch.uint8))
        assert one.isfinite().all()


def test_weights_lie_as_the_layout_says(directory):
    model = model_of(directory)
    for weights in model._layers:
        for group in layer_layout(model.config).groups:
            start = weights[group.tensors[0].name].data_ptr()
            assert start % 256 == 0
            assert [weights[place.name].data_ptr() - start for place in group.tensors] == [
                place.offset for place in group.tensors
            ]


def test_the_last_positions_are_those_of_the_whole(directory):
    whole = model_of(directory).forward(PROMPT, positions=5)
    last = model_of(directory).forward(PROMPT, positions=2)
    torch.testing.assert_close(last, whole[:, -2:])
    assert model_of(directory).forward(PROMPT).shape == (1, 1, 256)


def test_a_full_cache_says_so_and_reset_empties_it(directory):
    model = model_of(directory)
    first = model.forward(PROMPT)
    with pytest.raises(ValueError, match="holds 8 tokens, but positions 5 to 9"):
        model.forward(PROMPT)
    model.reset()
    assert torch.equal(model.forward(PROMPT), first)


@pytest.mark.cuda
def test_a_gpu_agrees_with_the_host(directory):
    host, gpu = model_of(directory), model_of(directory, device="cuda")
    for tokens in (PROMPT, PROMPT[:, :2], PROMPT[:, 2:3]):
        expected, got = host.forward(tokens).float(), gpu.forward(tokens).float().cpu()
        limit = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[host.config.dtype]
        assert (got - expected).abs().max() <= limit * expected.abs().max()
