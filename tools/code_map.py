"""Write the lower part of docs/map.md: every module of the package, each with the first line of its docstring.

The upper part of that page (where things happen, in which order to read) is written by hand and kept as it is.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MARK", "main", "render"]

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- Below: made by `make map`. Above: written by hand. -->\n"
ROOMS = "labs"
"""The package whose folders get a heading each; the folders within them are explained above the mark."""


def docstring(module: Path) -> str:
    """The docstring of ``module``; raises ValueError if there is none."""
    found = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    if not found:
        raise ValueError(f"{module} has no docstring: say in one sentence what it is, then run `make map`")
    return found


def packages(root: Path) -> list[str]:
    """The packages and modules right below xinfer_lab, each after all that it may import: pyproject.toml's layers."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one.get("exhaustive"))
    return [name for layer in reversed(layers) for name in re.findall(r"\w+", layer)]


def modules(folder: Path) -> Iterator[str]:
    """A list entry for each module below ``folder``, by name; the folder's own docstring stands above them."""
    for module in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
        if module.name != "__init__.py":
            yield f"* `{module.relative_to(folder).as_posix()}`: {docstring(module).splitlines()[0]}\n"


def section(root: Path, name: str) -> Iterator[str]:
    """The heading of a package and its modules."""
    package = root / "xinfer_lab" / name
    if not package.is_dir():
        yield f"\n### `{name}.py`\n\n{docstring(package.with_suffix('.py')).splitlines()[0]}\n"
        return
    yield f"\n### `{name}/`\n\n{docstring(package / '__init__.py')}\n"
    if name != ROOMS:
        yield from ("\n", *listed) if (listed := [*modules(package)]) else ()
        return
    for room in sorted(path.parent for path in package.glob("*/__init__.py")):
        yield f"\n#### `{name}/{room.name}/`\n\n{docstring(room / '__init__.py').splitlines()[0]}\n\n"
        yield from modules(room)


def render(root: Path = ROOT) -> str:
    """The text that docs/map.md should have."""
    above = (root / "docs" / "map.md").read_text(encoding="utf-8").partition(MARK)[0]
    there = [name for name in packages(root) if list((root / "xinfer_lab").glob(f"{name}*"))]
    return above + MARK + "".join(line for name in there for line in section(root, name))


def main() -> None:
    """Write docs/map.md."""
    (ROOT / "docs" / "map.md").write_text(render(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
