"""Write the pages of the docs site into a folder, as plain Markdown that any generator reads.

    python docs/make_site.py build/docs

The pages of this folder are written to be read in a checkout. For the site, README, CONTRIBUTING
and CHANGELOG become pages too, a link to a source file shows its path, and every package gets a
page of the API reference, made from signatures and docstrings. `make site` builds what is written.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
PACKAGE = ROOT / "src" / "dcqcn_gym"
PACKAGES = {
    "envs": "the environment, its wrappers, scenarios, monitors and backends",
    "tuners": "one file per tuner, and what they have in common",
    "runs": "the main path: one run, its log, many runs",
    "simulation": "one setting without a tuner",
    "report": "the pages made from logs",
    "extras": "add-ons: ns-3, training, traffic, jobs, trackers",
    "hw": "commands for devices",
    "core": "knobs, intervals, utility: what everybody uses",
    "testing": "conformance kits",
}
"""The packages that the API reference shows, in the order of its pages."""

BOOST = {"reference/knobs.md": 4.0, "reference/glossary.md": 0.3}
"""Pages that a search shows earlier, or later, than their words would."""

ROLE = re.compile(r":(?:class|func|data|meth|attr|mod|exc):`(~?)([\w.]+)`")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def main() -> None:
    """Write all pages into the folder that is given, and nothing else there."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/make_site.py FOLDER")
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", out, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name, text in pages().items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the text of every page by its path on the site."""
    docs = ROOT / "docs"
    sources = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    sources |= {name: ROOT / source for source, name in ROOT_PAGES.items()}
    files = {p.relative_to(docs).as_posix() for p in docs.rglob("*") if p.is_file()}
    files |= set(ROOT_PAGES.values())
    found = {}
    for name, path in sources.items():
        text = with_links(path.read_text(encoding="utf-8"), path.parent, files)
        if name in BOOST:
            text = f"---\nsearch:\n  boost: {BOOST[name]}\n---\n\n{text}"
        found[name] = text
    return found | {f"api/{package}.md": api_page(package) for package in PACKAGES}


def with_links(text: str, at: Path, files: set[str]) -> str:
    """Turn links as they are in the checkout into links of the site.

    ``at`` is the folder that targets count from, ``files`` what the site has.
    """
    return LINK.sub(lambda found: _link(found, at, files), text)


def _link(found: re.Match[str], at: Path, files: set[str]) -> str:
    """Return a link for a page of the site; end the program for a target that is nowhere."""
    picture, label, target = found.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path or target.startswith("mailto:"):
        return found[0]
    full = (at / path).resolve()
    if not full.is_relative_to(ROOT):
        return found[0]
    inside = full.relative_to(ROOT).as_posix()
    name = ROOT_PAGES.get(inside, inside.removeprefix("docs/"))
    if name in files and (inside in ROOT_PAGES or inside.startswith("docs/")):
        if at != ROOT:
            name = os.path.relpath(name, at.relative_to(ROOT / "docs"))
        return f"{picture}[{label}]({name}{'#' + anchor if anchor else ''})"
    if not full.exists():
        sys.exit(f"[{label}]({target}): there is no {inside}")
    return f"`{inside}`" if label.strip("`") in (inside, path) else f"{label} (`{inside}`)"


def public_modules(package: str) -> dict[str, ast.Module]:
    """Return the modules of a package that define something public, by their dotted names."""
    found = {}
    for path in sorted((PACKAGE / package).rglob("*.py")):
        inside = path.relative_to(PACKAGE).with_suffix("").parts
        hidden = any(part.startswith("_") and part != "__init__" for part in inside)
        if hidden or path.name.endswith("_pb2.py"):
            continue
        module = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.ClassDef, ast.FunctionDef)
        if any(isinstance(n, kinds) and not n.name.startswith("_") for n in module.body):
            found[".".join(("dcqcn_gym", *(p for p in inside if p != "__init__")))] = module
    return found


def api_page(package: str) -> str:
    """Return the page of a package: its modules, their classes, functions and constants."""
    parts = [f"# {package}", f"`dcqcn_gym.{package}`: {PACKAGES[package]}."]
    for name, module in public_modules(package).items():
        parts += [f"## `{name}` {{#{name}}}", *_docs(ast.get_docstring(module)), *_of(name, module)]
    return "\n\n".join(parts) + "\n"


def _of(owner: str, node: ast.Module | ast.ClassDef, level: int = 3) -> Iterator[str]:
    """Yield headings, signatures and docstrings of what is public in a module or class."""
    body = node.body
    for at, item in enumerate(body):
        name = getattr(item, "name", "") or _assigned(item)
        if not name or name.startswith("_"):
            continue
        after = body[at + 1] if at + 1 < len(body) else None
        if isinstance(item, ast.ClassDef | ast.FunctionDef):
            said = ast.get_docstring(item)
        elif isinstance(after, ast.Expr) and isinstance(text := _string(after.value), str):
            said = inspect.cleandoc(text)
        elif isinstance(node, ast.ClassDef) and isinstance(item, ast.AnnAssign):
            said = ""
        else:  # a constant, or an attribute, that says nothing is private in effect
            continue
        full = f"{owner}.{name}"
        yield f"{'#' * level} `{name}` {{#{full}}}"
        yield f"```python\n{_signature(item)}\n```"
        yield from _docs(said)
        if isinstance(item, ast.ClassDef):
            yield from _of(full, item, level + 1)


def _assigned(item: ast.stmt) -> str:
    """Return the name that a statement gives a value; "" for none, or several."""
    targets: Mapping[type, list[ast.expr]] = {
        ast.Assign: getattr(item, "targets", []),
        ast.AnnAssign: [getattr(item, "target", ast.Constant(0))],
    }
    found = targets.get(type(item), [])
    return found[0].id if len(found) == 1 and isinstance(found[0], ast.Name) else ""


def _string(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _signature(item: ast.stmt) -> str:
    """Return the first line of a definition; of a value its name, type and, if short, itself."""
    if isinstance(item, ast.ClassDef):
        bases = [ast.unparse(base) for base in (*item.bases, *item.keywords)]
        return f"class {item.name}" + (f"({', '.join(bases)})" if bases else "")
    if isinstance(item, ast.FunctionDef):
        marks = [f"@{ast.unparse(mark)}" for mark in item.decorator_list]
        back = f" -> {ast.unparse(item.returns)}" if item.returns else ""
        return "\n".join([*marks, f"def {item.name}({ast.unparse(item.args)}){back}"])
    text = ast.unparse(item)
    return text if len(text) <= 100 and "\n" not in text else text.partition(" = ")[0]


def _docs(text: str | None) -> list[str]:
    """Return a docstring as Markdown: the roles of names become plain names, the short ones."""
    if not text:
        return []
    return [ROLE.sub(lambda f: f"`{f[2].rpartition('.')[2] if f[1] else f[2]}`", text)]


if __name__ == "__main__":
    main()
