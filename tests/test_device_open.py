"""Opening a device."""

import pytest
import torch

from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import CudaUnavailable
from xinfer_lab.device.open import open_device


@pytest.fixture
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_cuda")
def test_auto_is_emulated_without_a_gpu():
    with open_device("auto", memory=100) as device:
        assert isinstance(device, EmulatedDevice) and device.memory.use().budget == 100


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize("kind", ["cuda", "cuda:1"])
def test_cuda_without_a_gpu_is_refused_with_advice(kind):
    with pytest.raises(CudaUnavailable, match="use the emulated device"):
        open_device(kind)


@pytest.mark.parametrize("kind", ["", "gpu", "Emulated", "cuda:x", "cuda:-1", "cuda:²", "emulated:0"])
def test_another_name_is_refused(kind):
    with pytest.raises(ValueError, match="choose auto, emulated, cuda or cuda:INDEX"):
        open_device(kind)


def test_options_go_to_the_device():
    with open_device("emulated", schedule="copies_last", check=False) as device:
        assert (device.schedule, device.check) == ("copies_last", False)
    with pytest.raises(TypeError):
        open_device("emulated", colour="red")


@pytest.mark.cuda
def test_auto_is_cuda_where_there_is_one():
    with open_device("auto") as device:
        assert isinstance(device, CudaDevice)


@pytest.mark.cuda
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(CudaUnavailable, match="devices 0 to"):
        open_device("cuda:99")
