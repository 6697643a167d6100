"""Turns published Markdown into HTML whose numbers link to their records."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from repro.page.links import RowLinks
from repro.page.numbers import Numbers
from repro.page.sources import Published

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_VERDICTS = {"✓": "matched", "✗": "missed"}


def table_html(published: Published, title: str, paper: str) -> Markup:
    """Render a published table.

    Parameters
    ----------
    published : Published
    title : str
        Of drawings that the Markdown does not show by itself.
    paper : str
        What published values link to, empty if there is nothing.
    """
    text = _with_drawings(published, title)
    parser = _parser(published.drawings)
    tokens = parser.parse(text)
    _shift_headings(tokens, published.name, by=2)
    _name_cells(tokens)
    _link_numbers(tokens, published, paper)
    return _rendered(parser, tokens)


def prose_html(text: str, folder: str, names: Collection[str], numbers: Numbers | None = None) -> Markup:
    """Render a document without tables of records.

    Parameters
    ----------
    text : str
        Markdown; its first heading is left out.
    folder : str
        Where it lies, from ``results``; its relative links are relative to that.
    names : collection of str
        Tables of the page: where one is named as code, or its file is linked to, that is made a link to its section.
    numbers : Numbers, optional
        What numbers lead to, in paragraphs that name tables and in tables below such paragraphs.
    """
    parser = _parser({})
    tokens = parser.parse(re.sub(r"\A# .*\n", "", text))
    _shift_headings(tokens, "findings", by=1)
    _name_cells(tokens)
    for token in tokens:
        if token.children:
            token.children = list(_linked_names(token.children, folder, names))
    if numbers:
        _link_prose(tokens, numbers, names)
    return _rendered(parser, tokens)


def _link_prose(tokens: Sequence[Token], numbers: Numbers, names: Collection[str]) -> None:
    """Let the numbers of paragraphs and tables lead to the records of the tables that the paragraph names."""
    headings: dict[str, str] = {}
    tables: list[str] = []
    above = row = ""
    columns: list[str] = []
    for at, token in enumerate(tokens):
        inline = tokens[at + 1] if at + 1 < len(tokens) else token
        if token.type == "heading_open":
            headings = {tag: text for tag, text in headings.items() if tag < token.tag}
            headings[token.tag] = inline.content
        elif token.type == "table_open":
            columns = []
        elif token.type == "th_open":
            columns.append(inline.content)
        elif token.type == "tr_open":
            row, place = tokens[at + 2].content, 0
        elif token.type == "paragraph_open":
            above = inline.content
            named = (str(child.attrs.get("href", "")).removeprefix("#") for child in inline.children or [])
            tables = [name for name in named if name in names]
            inline.children = numbers.linked(inline.children or [], tables, "", [*reversed(headings.values())])
        elif token.type == "td_open":
            cell = f"{row} {columns[place]}".strip()
            around = [above, *reversed(headings.values())]
            inline.children = numbers.linked(inline.children or [], tables, cell, around)
            place += 1


def _parser(drawings: Mapping[str, Path]) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", lambda self, tokens, at, options, env: "</table></div>\n")

    def image(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return _image(drawings, tokens[at])

    parser.add_render_rule("image", image)
    return parser


def _rendered(parser: MarkdownIt, tokens: list[Token]) -> Markup:
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _table_open(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    # Reachable by keyboard, since it scrolls by itself.
    return '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>\n'


def _with_drawings(published: Published, title: str) -> str:
    """Return a table's Markdown, with the drawings that it does not show by itself below its first line."""
    first, _, rest = published.markdown.partition("\n\n")
    hidden = [
        stem for stem in published.drawings if not re.search(rf"!\[[^]]*\]\({re.escape(stem)}\.", published.markdown)
    ]
    images = [f"![{title if stem == published.name else stem.replace('_', ' ')}]({stem}.png)" for stem in hidden]
    return "\n\n".join([first, *images, rest])


def _image(drawings: Mapping[str, Path], token: Token) -> str:
    """Return an image as part of the page."""
    stem, title = Path(str(token.attrs["src"])).stem, escape(token.content)
    if stem not in drawings:  # words of somebody else's, such as a reason given for a gap
        return str(title)
    path = drawings[stem]
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<img alt="{title}" src="data:{_TYPES[path.suffix]};base64,{data}">'
        f'<figcaption>{title}. <a href="{path.name}">The image alone</a></figcaption>'
    )


def _shift_headings(tokens: list[Token], name: str, by: int) -> None:
    """Put headings below the page's own, each with an anchor; make a paragraph that is an image a figure."""
    seen: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1]) + by}"
        if token.type == "heading_open":
            slug = re.sub(r"\W+", "-", tokens[at + 1].content.lower()).strip("-")
            seen[slug] = seen.get(slug, 0) + 1
            token.attrSet("id", f"{name}/{slug}" if seen[slug] == 1 else f"{name}/{slug}-{seen[slug]}")
        if token.children and len(token.children) == 1 and token.children[0].type == "image":
            tokens[at - 1].tag = tokens[at + 1].tag = "figure"


def _link_numbers(tokens: Sequence[Token], published: Published, paper: str) -> None:
    """Let each number of each table link to its record, and mark verdicts."""
    sidecar = f"{published.name}.json"
    for section, head, rows in _tables(tokens):
        titles = [inline.content for _, inline in head]
        links = RowLinks(published.records, paper, section, titles) if published.records else None
        for row in rows:
            texts = [inline.content for _, inline in row]
            addresses = links.of(texts) if links else _all_to(sidecar, texts)
            for title, (cell, inline), address in zip(titles, row, addresses, strict=True):
                if title == "note":
                    cell.attrSet("class", title)
                for sign, verdict in _VERDICTS.items():
                    if sign in inline.content:
                        cell.attrSet("class", verdict)
                if address:
                    inline.children = _link(address, inline.children or [])


def _all_to(address: str, texts: Sequence[str]) -> list[str | None]:
    """Let all numbers of a row lead to one address."""
    return [address if at and re.search(r"\d", text) else None for at, text in enumerate(texts)]


_Cell = tuple[Token, Token]
"""The opening token of a table's cell, and the token of its content."""


def _tables(tokens: Sequence[Token]) -> Iterator[tuple[str, list[_Cell], list[list[_Cell]]]]:
    """Yield each table: the heading above it, the cells of its head, those of its other rows."""
    section: str = ""
    rows: list[list[_Cell]] = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            section = tokens[at + 1].content
        elif token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append((token, tokens[at + 1]))
        elif token.type == "table_close":
            yield section, rows[0], rows[1:]


def _name_cells(tokens: Sequence[Token]) -> None:
    """Mark the cells that name a column or a row; alignment is the page's matter."""
    for at, token in enumerate(tokens):
        if token.type in ("th_open", "td_open"):
            token.attrs.pop("style", None)
        if token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "td_open" and tokens[at - 1].type == "tr_open":
            token.attrSet("scope", "row")
            token.tag = tokens[at + 2].tag = "th"


def _linked_names(children: Sequence[Token], folder: str, names: Collection[str]) -> Iterator[Token]:
    """Let code and links that name a table lead to it, and other relative links on from where the page lies."""
    for child in children:
        href = str(child.attrs.get("href", ""))
        if href and not re.match(r"[a-z]+:|#", href):
            path = Path(posixpath.normpath(posixpath.join(folder, href)))
            is_table = path.match("results/*.md") and path.stem in names
            child.attrSet("href", f"#{path.stem}" if is_table else path.as_posix())
        if child.type == "code_inline" and child.content in names:
            yield from _link(f"#{child.content}", [child])
        else:
            yield child


def _link(href: str, children: Sequence[Token]) -> list[Token]:
    return [Token("link_open", "a", 1, attrs={"href": href}), *children, Token("link_close", "a", -1)]
