"""The building blocks of a page: document, sections, notes, tables, tiles, things to unfold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dreamgym.page.style import STYLE


def document(title: str, parts: Iterable[str]) -> str:
    """Return a whole page. The title is plain words, the parts are HTML."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main></body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a section. The title is plain words, the parts are HTML."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def note(words: str) -> str:
    """Return plain words as a quiet paragraph."""
    return f"<p class='note'>{escape(words)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are HTML already."""
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<div class='wide'><table><thead><tr>{first}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def tiles(shown: Iterable[tuple[str, str, str, int]]) -> str:
    """Return a row of big figures: name, value and a remark in plain words, and a colour each."""
    cards = "".join(
        f"<div class='tile c{colour % 8}'><span class='name'>{escape(name)}</span>"
        f"<b>{escape(value)}</b><span class='ci'>{escape(remark)}</span></div>"
        for name, value, remark, colour in shown
    )
    return f"<div class='tiles'>{cards}</div>" if cards else ""


def details(words: str, inside: str) -> str:
    """Return something to unfold. The words are plain, the inside is HTML."""
    return f"<details><summary>{escape(words)}</summary>{inside}</details>"
