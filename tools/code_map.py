"""Write docs/map.md: every module of the package and what it is, one line each, from the modules' own docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["main", "render"]

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Map of the code

Made by `make map` from the first line of each module's docstring. Imports point one way, from the bottom of this list
to the top: `device` and `qwen2` know nothing of each other, `paging` is a page pool on any device, `residency`
puts them together, `grading` and `views` look at what came of it, `course` runs a class, `bench`
measures, `commands` do what the command line asks for, and `cli` is the command line.
"""
ORDER = ("", "device", "paging", "qwen2", "residency", "grading", "views", "course", "bench", "commands", "cli.py")


def first_line(module: Path) -> str:
    """The first line of ``module``'s docstring; raises ValueError if there is none."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{module} has no docstring: say in one line what it is, then run `make map`")
    return docstring.splitlines()[0]


def rank(module: Path) -> tuple[int, tuple[str, ...]]:
    """Where ``module`` (relative to the package) stands: by layer, a folder's own line first, then by name."""
    top = "" if module.name == "__init__.py" and len(module.parts) == 1 else module.parts[0]
    layer = ORDER.index(top) if top in ORDER else len(ORDER)
    return layer, tuple("" if part == "__init__.py" else part for part in module.parts)


def rows(package: Path) -> Iterator[str]:
    """One Markdown list entry for each module below ``package``."""
    for module in sorted((path.relative_to(package) for path in package.rglob("*.py")), key=rank):
        name = module.as_posix().removesuffix("__init__.py")
        yield f"* `{package.name}/{name}`: {first_line(package / module)}\n"


def render(root: Path = ROOT) -> str:
    """The text that docs/map.md should have."""
    return HEAD + "\n" + "".join(rows(root / "xinfer_lab"))


def main() -> None:
    """Write docs/map.md."""
    target = ROOT / "docs" / "map.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(render(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
