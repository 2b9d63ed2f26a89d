"""Writes what was found as a page (HTML) and as Markdown: sections with what the paper reports, what was found here,
whether they agree, drawings and tables."""

import textwrap
from dataclasses import dataclass, field

from charts import svg_file
from drawing import escaped


@dataclass(frozen=True)
class Table:
    caption: str
    columns: list
    rows: list  # of texts
    texts: int = 1  # the first columns that are no numbers


@dataclass
class Section:
    name: str
    title: str
    paper: str  # what the paper reports
    found: list = field(default_factory=list)  # sentences: what was found, and whether it agrees
    charts: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    missing: dict = field(default_factory=dict)  # {step: why it was not measured}


def paragraphs(section):
    """Returns (heading, text) of a section's sentences."""
    texts = [("The paper", section.paper)] + [("Here", sentence) for sentence in section.found]
    reasons = {}
    for step, reason in section.missing.items():
        reasons.setdefault(reason, []).append(step)
    return texts + [("Not measured", f"{', '.join(steps)}: {reason}.") for reason, steps in reasons.items()]


def attribute(text):
    return escaped(text).replace('"', "&quot;")


def scrolled(label, content):
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{attribute(label)}">\n{content}</div>\n'


def html_table(table):
    def row(cells, tag):
        said = ""
        for i, cell in enumerate(cells):
            scope, kind = ' scope="col"' if tag == "th" else "", "" if i < table.texts else ' class="number"'
            said += f"<{tag}{scope}{kind}>{escaped(cell)}</{tag}>"
        return f"<tr>{said}</tr>\n"

    head, body = row(table.columns, "th"), "".join(row(cells, "td") for cells in table.rows)
    caption = f"<caption>{escaped(table.caption)}</caption>"
    return scrolled(
        table.caption, f"<table>\n{caption}\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table>\n"
    )


def definitions(texts):
    """Returns the parts of a list of (name, text). Neighbours of one name share it."""
    html, before = "", None
    for name, text in texts:
        html += ("" if name == before else f"<dt>{escaped(name)}</dt>") + f"<dd>{escaped(text)}</dd>\n"
        before = name
    return html


def html_section(section):
    html = f'<section id="{section.name}">\n<h2>{escaped(section.title)}</h2>\n<dl>\n'
    html += definitions(paragraphs(section)) + "</dl>\n"
    for chart in section.charts:
        html += f"<h3>{escaped(chart.title)}</h3>\n" + scrolled(chart.title, chart.svg())
    for table in section.tables:
        html += f"<details>\n<summary>{escaped(table.caption)}</summary>\n{html_table(table)}</details>\n"
    return html + "</section>\n"


def html_page(title, facts, sections, style):
    """Returns a page that fetches nothing. `facts` are (name, text) of its conditions."""
    head = '<meta charset="utf-8"/>\n<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
    body = "<dl>\n" + definitions(facts)
    body += '</dl>\n<nav aria-label="Parts of this page">\n<ul>\n'
    body += "".join(f'<li><a href="#{section.name}">{escaped(section.title)}</a></li>\n' for section in sections)
    body += "</ul>\n</nav>\n" + "".join(map(html_section, sections))
    head += f"<title>{escaped(title)}</title>\n<style>{style}</style>\n"
    main = f"<main>\n<h1>{escaped(title)}</h1>\n{body}</main>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{main}\n</body>\n</html>\n'


def wrapped(text, after=""):
    return textwrap.fill(text, 120, subsequent_indent=after, break_long_words=False, break_on_hyphens=False)


def markdown_table(table):
    lines = [table.columns, ["---" if i < table.texts else "---:" for i in range(len(table.columns))], *table.rows]
    text = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n" for cells in lines)
    return f"{table.caption}:\n\n{text}\n"


def markdown(title, facts, sections, drawing):
    """Returns the page as Markdown; the drawings are in the file `drawing`."""
    text = f"# {title}\n\n" + "".join(wrapped(f"- {name}: {said}", "  ") + "\n" for name, said in facts) + "\n"
    if any(section.charts for section in sections):
        text += f"The drawings are in [{drawing}]({drawing}).\n\n"
    for section in sections:
        text += f"## {section.title}\n\n"
        text += "".join(wrapped(f"**{name}**: {said}") + "\n\n" for name, said in paragraphs(section))
        text += "".join(map(markdown_table, section.tables))
    return text.rstrip() + "\n"


def drawings(sections, style):
    return svg_file([(section.title, chart) for section in sections for chart in section.charts], style)
