"""The command line `xinfer-lab`.

Modules called ``*_commands`` hold options and help, and import what a command does when it runs, so that neither help
nor a wrong option waits for torch.
"""

from xinfer_lab.cli.app import app, main

__all__ = ["app", "main"]
