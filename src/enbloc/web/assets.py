"""The files of the dashboard: plain ES modules, no build step, no third party's code.

Served one by one by `pages`; `bundled` makes one page of them that needs no server.

Chart libraries from PyPI bring 1.3 to 4.8 MB of script for two kinds of chart, and the map would still be ours.
"""

from __future__ import annotations

import html
import re
from functools import cache
from importlib.resources import files
from typing import Final

MODULES: Final = ("format", "chart", "map", "timeline", "gangs", "gang", "queues", "summary", "moment", "app")
"""Each imports only modules before it."""
TYPES: Final = {"style.css": "text/css", **{f"{name}.js": "text/javascript" for name in MODULES}}
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_IMPORT: Final = re.compile(r'^import (\{[^}]+\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export const (\w+)", re.MULTILINE)


@cache
def read(name: str) -> str:
    return files("enbloc.web").joinpath("static", name).read_text(encoding="utf-8")


def bundled(model: bytes, title: str) -> str:
    """One HTML file with scripts, style and data. `model` is JSON."""
    data = model.decode().replace("<", "\\u003c")  # no tag ends the script element
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    page = read("index.html").replace("<title>enbloc</title>", f"<title>{html.escape(title)}</title>")
    page = page.replace(
        '<link rel="stylesheet" href="static/style.css">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>\n{read("style.css")}</style>',
    )
    return page.replace(
        '<script type="module" src="static/app.js"></script>',
        f'<script type="application/json" id="model">{data}</script>\n<script type="module">\n{_script()}</script>',
    )


def _script() -> str:
    """The modules in one script: each is a function that returns what it exports."""
    parts = []
    for name in MODULES:
        text = _IMPORT.sub(r"const \1 = \2Module;", read(f"{name}.js"))
        exported = ", ".join(_EXPORT.findall(text))
        text = _EXPORT.sub(r"const \1", text)
        parts.append(f"const {name}Module = (() => {{\n{text}return {{ {exported} }};\n}})();\n")
    return "".join(parts)
