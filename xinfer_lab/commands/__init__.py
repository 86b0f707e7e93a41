"""What each command of `xinfer-lab` does; `xinfer_lab.cli` has their options and imports one of these when it runs."""
