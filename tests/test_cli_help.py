"""The command line as such: help, start-up, and what it loads before a command needs it."""

import subprocess
import sys

import pytest
import typer

from tests.command_line import execute, invoke
from xinfer_lab.cli import app
from xinfer_lab.cli.options import Policy
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.paging.policy import POLICIES

COMMANDS = (
    "demo",
    "make-checkpoint",
    "parity",
    "generate",
    "trace",
    "simulate",
    "doctor",
    "release",
    "autograde",
    "export",
)


def test_the_help_names_every_command():
    said = invoke("--help")
    assert said.exit_code == 0
    for command in COMMANDS:
        assert command in said.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_says_what_it_is(command):
    parsed = typer.main.get_command(app).commands[command]
    assert parsed.help
    assert [parameter.name for parameter in parsed.params if not parameter.help] == []
    said = invoke(command, "--help")
    assert said.exit_code == 0
    for parameter in parsed.params:
        assert parameter.opts[0] in said.stdout or parameter.metavar in said.stdout


@pytest.mark.parametrize("command", ["simulate", "plan", "parity", "bench"])
def test_the_help_names_every_gpu_preset(command):
    said = " ".join(invoke(command, "--help").stdout.split())
    assert [name for name in GPU_SPECS if name not in said] == []


def test_the_policies_to_choose_are_those_there_are():
    assert tuple(policy.value for policy in Policy) == POLICIES


def test_without_a_command_the_help_is_shown_and_nothing_is_said_on_stderr():
    said = execute()
    assert said.returncode == 2
    assert "Usage:" in said.stdout + said.stderr
    assert "xinfer-lab:" not in said.stderr


def test_neither_help_nor_a_wrong_option_waits_for_torch():
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from xinfer_lab.cli import app\n"
        "assert CliRunner().invoke(app, ['parity', '--help']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['parity', 'model', '--vram', 'much']).exit_code == 2\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'matplotlib'}))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ""
