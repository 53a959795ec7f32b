"""A report as one self-contained HTML page: no script, no font, no request to anywhere."""

from __future__ import annotations

from html import escape

from training.evaluation.document import Document, Section, Table, plain

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f1c; --soft: #5a635c; --paper: #fbfcf9; --line: #d5dccb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e3; --soft: #a0a8a1; --paper: #121413; --line: #333a35; } }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin: 2rem 0 .4rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 1.6rem 0 .3rem; } h4 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p { max-width: 48rem; margin: .3rem 0; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .4rem 0; } caption { text-align: left; color: var(--soft); }
td, th { padding: .15rem .9rem .15rem 0; text-align: right; vertical-align: top; font-variant-numeric: tabular-nums;
  border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere; } th { font-weight: 600; }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); }
"""

MARK = '<meta name="generator" content="cudaperf eval report">'
"""By which a report is known again."""

_PAGE = (
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8">"""
    + MARK
    + """<title>{title} – cudaperf</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,"><style>{style}</style></head><body>
{body}
</body></html>
"""
)


def html_document(document: Document) -> str:
    """The page. Every text is escaped and stripped of control characters; pictures are our own SVG."""
    lead = "".join(f"<p>{_text(line)}</p>" for line in document.lead)
    body = "\n".join([f"<h1>{_text(document.title)}</h1>{lead}", *(_section(s) for s in document.sections)])
    return _PAGE.format(title=_text(document.title), style=_STYLE, body=body)


def _section(section: Section) -> str:
    parts = [f"<h{section.level}>{_text(section.title)}</h{section.level}>"]
    parts += [f"<p>{_text(line)}</p>" for line in section.text]
    parts += [_table(table) for table in section.tables]
    parts += [f"<div class=scroll>{picture}</div>" for picture in section.pictures]
    return "\n".join(parts)


def _table(table: Table) -> str:
    caption = f"<caption>{_text(table.title)}</caption>" if table.title else ""
    head = "".join(f"<th>{_text(cell)}</th>" for cell in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<div class=scroll><table>{caption}<tr>{head}</tr>{rows}</table></div>"


def _text(text: str) -> str:
    return escape(plain(text, 2000))
