"""`python -m xinfer_lab`: the command line."""

from xinfer_lab.cli import main

if __name__ == "__main__":
    main()
