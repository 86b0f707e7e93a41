"""Where a Chromium is on this machine. `python -m tests.browser.chromium` says it, status 1 where there is none."""

import os
import shutil
import sys
from pathlib import Path

__all__ = ["HOW", "LAUNCH", "find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
HOW = (
    "No Chromium is here. Install one (Debian: apt install chromium; elsewhere: python -m playwright install "
    "chromium), or name one: CHROMIUM=/path/to/it"
)
# A browser that looks for news, updates and its maker's hosts would fail the tests that count foreign requests.
LAUNCH = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
]


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome: the one named, one of the system's, or playwright's own; None if none is."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    found = [path for name in NAMES if (path := shutil.which(name))]
    found += [place for place in PLACES if Path(place).is_file()]
    return found[0] if found else _playwrights()


def _playwrights() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


if __name__ == "__main__":
    where = find_chromium()
    print(where or HOW)
    sys.exit(where is None)
