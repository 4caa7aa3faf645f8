"""The Helm chart: the objects of `enbloc install` with the settings left open, so that there is one source of both.

The objects are made with marks in the place of settings, and each mark in their YAML becomes a template expression. The
definitions are in `crds/`: Helm installs them first and never deletes them, so removing a release keeps every Job.
The namespace is Helm's own (`--create-namespace`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template
from typing import Final

from enbloc.api.meta import Obj
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.install.manifests import Settings, config_hash, manifests
from enbloc.install.rights import DASHBOARD
from enbloc.version import __version__

Dump = Callable[[Iterable[Obj]], str]
"""Objects as YAML documents."""
CRD: Final = "CustomResourceDefinition"
_NAMESPACE: Final = "namespace-mark"
_IMAGE: Final = "image-mark"
_CONFIG: Final = "config-mark"
_SCHEDULER: Final = "scheduler-mark"
_REPLICAS: Final = 97
_CIDR: Final = "192.0.2.97/32"
_OWNER_KIND: Final = "OwnerMark.marks.example"
_MARKED: Final = Settings(
    _CONFIG, _NAMESPACE, _IMAGE, _REPLICAS, (_SCHEDULER,), (_OWNER_KIND,), (_CIDR,), dashboard=True
)


def chart(dump: Dump, config: str) -> dict[str, str]:
    """The files of the chart by path. `config`: the text of the default config file."""
    objects = [obj for obj in manifests(_MARKED) if obj["kind"] != "Namespace"]
    return {
        "Chart.yaml": _text("Chart.yaml"),
        "values.yaml": _text("values.yaml", names=", ".join(SCHEDULER_NAMES), config=textwrap.indent(config, "  ")),
        "crds/definitions.yaml": dump(obj for obj in objects if obj["kind"] == CRD),
        "templates/enbloc.yaml": "".join(_template(dump, obj) for obj in objects if obj["kind"] != CRD),
        "templates/NOTES.txt": _text("NOTES.txt"),
    }


def _template(dump: Dump, obj: Obj) -> str:
    text = dump([obj])
    text = text if text.startswith("---") else f"---\n{text}"
    for mark, expression in (
        (_NAMESPACE, "{{ .Release.Namespace }}"),
        (f"image: {_IMAGE}", "image: {{ .Values.image | quote }}"),
        (f"replicas: {_REPLICAS}", "replicas: {{ .Values.replicas }}"),
        (f"enbloc.yaml: {_CONFIG}", "enbloc.yaml: {{ .Values.config | toJson }}"),
        (config_hash(_CONFIG), "{{ .Values.config | sha256sum | trunc 16 | quote }}"),
        (
            f"'{_SCHEDULER}'",
            "{{ range $i, $name := .Values.schedulerNames }}{{ if $i }}, {{ end }}'{{ $name }}'{{ end }}",
        ),
    ):
        text = text.replace(mark, expression)
    text = _list(text, f"cidr: {_CIDR}", "apiServerCidrs", "from:", "- ipBlock:\n{indent}    cidr: {{{{ . | quote }}}}")
    text = _owner_kinds(text)
    component = (obj["metadata"].get("labels") or {}).get("app.kubernetes.io/component")
    if component == DASHBOARD:
        return f"{{{{- if .Values.dashboard }}}}\n{text}{{{{- end }}}}\n"
    return text


def _list(text: str, mark: str, value: str, key: str, item: str) -> str:
    """A list that is left out when the value is empty: `key:` and its one item that has the mark."""
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if mark in line), None)
    if at is None:
        return text
    start = next(number for number in range(at, -1, -1) if lines[number].strip().removeprefix("- ") == key)
    indent = " " * (len(lines[start]) - len(lines[start].lstrip()))
    lines[start : at + 1] = [
        f"{indent}{{{{- with .Values.{value} }}}}",
        f"{lines[start]}",
        f"{indent}{{{{- range . }}}}",
        indent + item.format(indent=indent),
        f"{indent}{{{{- end }}}}",
        f"{indent}{{{{- end }}}}",
    ]
    return "\n".join(lines)


def _owner_kinds(text: str) -> str:
    """Kinds whose pods are grouped by owner: a rule for each group and plural of `ownerKinds`."""
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if "marks.example" in line), None)
    if at is None:
        return text
    start = next(number for number in range(at, -1, -1) if lines[number].startswith("- apiGroups:"))
    end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith(" ") and lines[n] != ""), len(lines))
    end = next((n for n in range(start + 1, len(lines)) if lines[n].startswith("- ")), end)
    lines[start:end] = [
        "{{- range .Values.ownerKinds }}",
        "- apiGroups: [{{ .group | quote }}]",
        "  resources: [{{ .plural | quote }}]",
        "  verbs: [get, list, watch]",
        "{{- end }}",
    ]
    return "\n".join(lines) if lines[-1] == "" else "\n".join([*lines, ""])


def _text(name: str, **values: str) -> str:
    return Template((Path(__file__).parent / "chart_files" / name).read_text()).substitute(
        version=__version__, **values
    )
