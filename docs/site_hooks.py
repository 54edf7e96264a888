"""Hooks of mkdocs: generate the API reference, add the root's pages, rewrite links.

The pages are written to be read in a checkout. On the site, README, CONTRIBUTING and CHANGELOG are
pages too, a link to a source file shows its path, and the API reference has a page for every
package.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

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
    "extras": "add-ons: ns-3, training, traffic, jobs",
    "hw": "commands for devices",
    "core": "knobs, intervals, utility: what everybody uses",
    "testing": "conformance kits",
}
"""The packages that the API reference shows, in the order of its pages."""

BOOST = {"reference/knobs.md": 4.0, "reference/glossary.md": 0.3}
"""Pages that a search shows earlier, or later, than their words would."""

ROLE = re.compile(r":(?:class|func|data|meth|attr|mod|exc):<code>(~?)([\w.]+)(?=</code>)")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def public_modules(package: str) -> list[str]:
    """Return the dotted names of the modules of a package that define something public."""
    names = []
    for path in sorted((PACKAGE / package).rglob("*.py")):
        inside = path.relative_to(PACKAGE).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in inside):
            continue
        if not path.name.endswith("_pb2.py") and _defines_something(path):
            names.append(".".join(("dcqcn_gym", *(p for p in inside if p != "__init__"))))
    return names


def _defines_something(path: Path) -> bool:
    """Return True if a file has public classes or functions; re-exports are none."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.ClassDef, ast.FunctionDef)
    return any(isinstance(node, kinds) and not node.name.startswith("_") for node in body)


def api_page(package: str) -> str:
    """Return the text of a package's page of the API reference."""
    blocks = "\n\n".join(f"::: {name}" for name in public_modules(package))
    return f"# {package}\n\n`dcqcn_gym.{package}`: {PACKAGES[package]}.\n\n{blocks}\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in this folder."""
    for source, name in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    for package in PACKAGES:
        files.append(File.generated(config, f"api/{package}.md", content=api_page(package)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Turn links as they are in the checkout into links of the site."""
    uri = page.file.src_uri
    if uri in BOOST:
        page.meta["search"] = {"boost": BOOST[uri]}
    at = ROOT if uri in ROOT_PAGES.values() else (ROOT / "docs" / uri).parent
    return LINK.sub(lambda found: _link(found, at, files), markdown)


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Take the roles of docstrings (``:class:``) out of the API reference; names become short."""
    return ROLE.sub(lambda f: "<code>" + (f[2].rpartition(".")[2] if f[1] else f[2]), html)


def _link(found: re.Match[str], at: Path, files: Files) -> str:
    """Return a link for a page of the site; ``at``: the folder that its target counts from.

    Raises PluginError, which ends the build, for a target that is nowhere.
    """
    picture, label, target = found.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path or target.startswith("mailto:"):
        return found[0]
    full = (at / path).resolve()
    if not full.is_relative_to(ROOT):
        return found[0]
    inside = full.relative_to(ROOT).as_posix()
    name = ROOT_PAGES.get(inside, inside.removeprefix("docs/"))
    if files.get_file_from_path(name) is not None and (
        inside in ROOT_PAGES or inside.startswith("docs/")
    ):
        if at != ROOT:
            name = os.path.relpath(name, at.relative_to(ROOT / "docs"))
        return f"{picture}[{label}]({name}{'#' + anchor if anchor else ''})"
    if not full.exists():
        raise PluginError(f"[{label}]({target}): there is no {inside}")
    return f"`{inside}`" if label.strip("`") in (inside, path) else f"{label} (`{inside}`)"
