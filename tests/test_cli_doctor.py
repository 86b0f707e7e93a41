"""`xinfer-lab doctor`: what is there, what is missing, what to do."""

import importlib.metadata
import shutil
import sys
import types
import webbrowser

import pytest

from tests.command_line import execute, invoke
from xinfer_lab.cli import machine


def find(check) -> dict[str, machine.Finding]:
    return {finding.what: finding for finding in check()}


def test_the_doctor_asks_about_everything_and_is_content_here():
    said = execute("doctor")
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""
    for what in ("Python", "torch", "GPU", "RAM", "locked memory", "disk", "jupyterlab", "nbgrader", "tokenizers"):
        assert what in said.stdout
    for what in ("bubblewrap", "browser"):
        assert what in said.stdout
    assert "xinfer-lab demo" in said.stdout


def test_a_required_package_that_is_missing_is_named_and_the_status_is_1(monkeypatch):
    version = importlib.metadata.version

    def without_safetensors(name):
        if name == "safetensors":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_safetensors)
    said = invoke("doctor")
    assert said.exit_code == 1
    assert "Required and missing: safetensors" in said.stdout
    assert "pip install safetensors" in said.stdout


def test_an_optional_package_that_is_missing_does_not_fail(monkeypatch):
    version = importlib.metadata.version

    def without_nbgrader(name):
        if name == "nbgrader":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_nbgrader)
    said = invoke("doctor")
    assert said.exit_code == 0
    assert "pip install nbgrader" in said.stdout


def test_a_torch_that_cannot_be_imported_says_why(monkeypatch):
    def broken(_name):
        raise OSError("libcudart.so.13: cannot open shared object file")

    monkeypatch.setattr(machine.importlib, "import_module", broken)
    finding = find(machine._torch)["torch"]
    assert finding.status == "required"
    assert "libcudart.so.13" in finding.found


def fake_torch(*, cuda: str | None, gpus: int) -> types.SimpleNamespace:
    gpu = types.SimpleNamespace(name="H200", total_memory=139 * 2**30, major=9, minor=0)
    return types.SimpleNamespace(
        version=types.SimpleNamespace(cuda=cuda),
        cuda=types.SimpleNamespace(
            is_available=lambda: gpus > 0, device_count=lambda: gpus, get_device_properties=lambda _index: gpu
        ),
    )


@pytest.mark.parametrize(
    ("cuda", "gpus", "status", "words"),
    [
        (None, 0, "missing", "built without CUDA"),
        ("13.0", 0, "missing", "finds no GPU"),
        ("13.0", 2, "ok", "139.00 GiB"),
    ],
)
def test_why_there_is_no_gpu(cuda, gpus, status, words):
    findings = [f for f in machine._cuda(fake_torch(cuda=cuda, gpus=gpus)) if f.what != "CUDA graphs"]
    assert len(findings) == max(1, gpus)
    for finding in findings:
        assert finding.status == status
        assert words in finding.found
        assert bool(finding.advice) == (status == "missing")


@pytest.mark.parametrize(
    ("sizes", "reach", "nvlink", "status", "words"),
    [
        ([139], True, True, [], []),
        ([139, 139], True, True, ["ok"], ["each of 2 cards reaches each other, by NVLink"]),
        ([139, 139, 139], True, False, ["ok"], ["each of 3 cards reaches each other, by PCIe"]),
        ([24, 24], False, False, ["note"], ["cuda:0 does not reach cuda:1, nor do 1 more pairs"]),
        ([24, 80], True, False, ["note", "ok"], ["not of one kind", "reaches each other"]),
    ],
)
def test_how_cards_reach_each_other(monkeypatch, sizes, reach, nvlink, status, words):
    cuda = types.SimpleNamespace(
        device_count=lambda: len(sizes),
        get_device_properties=lambda index: types.SimpleNamespace(name="a card", total_memory=sizes[index] * 2**30),
        can_device_access_peer=lambda a, b: reach,
    )
    monkeypatch.setattr(machine, "_has_nvlink", lambda: nvlink)
    found = list(machine._links(types.SimpleNamespace(cuda=cuda)))
    assert [finding.status for finding in found] == status
    assert all(word in finding.found for word, finding in zip(words, found, strict=True))
    assert all(finding.status == "ok" or finding.advice for finding in found)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.parametrize(("said", "status"), [(None, "ok"), ("bwrap: No permissions to create new namespace", "note")])
def test_a_bubblewrap_that_cannot_work_is_told_from_one_that_can(monkeypatch, said, status):
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/bwrap")
    monkeypatch.setattr(machine, "_try_sandbox", lambda _program: said)
    finding = find(machine._sandbox)["bubblewrap"]
    assert finding.status == status
    assert (said or "") in finding.found


def test_a_sandbox_that_does_not_start_says_why():
    assert machine._try_sandbox(sys.executable) is not None
    assert machine._try_sandbox("no-such-program") is not None


def test_no_browser_is_no_failure(monkeypatch):
    def none():
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    assert find(machine._browser)["browser"].status == "missing"


def test_whatever_is_missing_comes_with_advice():
    for finding in machine.find_all():
        assert finding.status == "ok" or finding.advice


def test_a_browser_without_a_display_is_not_called_missing(monkeypatch):
    def none():
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/chromium" if name == "chromium" else None)
    found = find(machine._browser)["browser"]
    assert found.status == "note" and "chromium is there" in found.found and "display" in found.found


@pytest.mark.parametrize(
    ("triton", "major", "status", "words"),
    [("3.6.0", 9, "ok", "Triton 3.6.0"), (None, 9, "note", "not installed"), ("3.6.0", 7, "note", "capability 7.x")],
)
def test_a_gpu_says_whether_command_lists_are_replayed(monkeypatch, triton, major, status, words):
    def version(name):
        if triton is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return triton

    monkeypatch.setattr(machine.importlib.metadata, "version", version)
    finding = machine._recorded(major)
    assert (finding.what, finding.status) == ("CUDA graphs", status)
    assert words in finding.found
    assert (status == "ok") == (not finding.advice)
