"""Check the site that was built: every link and anchor leads somewhere, nothing is loaded from elsewhere, and every
public name has its place in the reference. ``python .ci/site.py`` looks at ``site/`` and asks no network."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """What one page has: anchors, links, and what a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.text = path.read_text("utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what counts of one tag."""
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value or "")
            elif (tag, name) in LOADED:
                self.loaded.add(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.add(value or "")


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield what is wrong with links, and with what is loaded."""
    for path, page in pages.items():
        where = path.relative_to(SITE)
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{where} loads {link}"
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file():
                yield f"{where} links to {link}, which is not there"
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors:
                yield f"{where} links to {link}, which has no such anchor"
        for role in re.findall(r":(?:class|data|func|meth|mod):(?:`|<code>)[^<`]*", page.text):
            yield f"{where} shows a role as it is written: {role}"


def public() -> Iterator[tuple[str, str]]:
    """Yield each module of the reference, and each name in its ``__all__``."""
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for module in re.findall(r"^::: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE):
            path = Path(*module.split("."))
            for root in (ROOT, ROOT / "backends"):
                for file in (root / path / "__init__.py", root / path.with_suffix(".py")):
                    if file.is_file():
                        for node in ast.parse(file.read_text("utf-8")).body:
                            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                                yield from ((module, name) for name in ast.literal_eval(node.value))


def main() -> int:
    """Print what is wrong, and return the status."""
    # The page for what is not there is shown at any address, and so has addresses of its own.
    pages = {path: Page(path) for path in SITE.rglob("*.html") if path.name != "404.html"}
    found = list(broken(pages))
    anchors = set().union(*(page.anchors for path, page in pages.items() if "reference" in path.parts))
    names = list(public())
    for module, name in names:
        # Where a module has the name of what it holds, the place is that in the module.
        if not any(re.fullmatch(rf"{module}(\.[a-z_]+)?\.{name}", anchor) for anchor in anchors):
            found.append(f"{module}.{name} has no place in the reference")
    if not (pages and names):
        found.append("there is no site: build it first")
    print(*found, f"{len(pages)} pages, {len(names)} public names, {len(found)} faults", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
