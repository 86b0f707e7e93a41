"""The command line as such: help, start-up, and what it loads before a command needs it."""

import subprocess
import sys

import pytest
import typer

from tests.command_line import execute, invoke
from xinfer_lab.cli import app

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


def test_without_a_command_the_help_is_shown_and_nothing_is_said_on_stderr():
    said = execute()
    assert said.returncode == 2
    assert "Usage:" in said.stdout + said.stderr
    assert "xinfer-lab:" not in said.stderr


def test_help_does_not_wait_for_torch():
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from xinfer_lab.cli import app\n"
        "assert CliRunner().invoke(app, ['parity', '--help']).exit_code == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'matplotlib'}))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ""


def test_a_wrong_option_does_not_wait_for_torch_either():
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from xinfer_lab.cli import app\n"
        "assert CliRunner().invoke(app, ['parity', 'model', '--vram', 'much']).exit_code == 2\n"
        "print('torch' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_output_that_is_piped_has_no_control_characters():
    said = execute("demo")
    assert said.returncode == 0
    assert said.stderr == ""
    assert all(char.isprintable() or char == "\n" for char in said.stdout)
