"""The command line `xinfer-lab`: options and help. What a command does is imported from `xinfer_lab.commands`."""

from xinfer_lab.cli.app import app, main

__all__ = ["app", "main"]
