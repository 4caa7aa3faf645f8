"""Writes `api/protobuf_messages.txt`: numbers and types of the fields in Kubernetes' protobuf messages.

They are read from the published sources of k8s.io/api and k8s.io/apimachinery.

    python scripts/protobuf_messages.py ~/go/pkg/mod/k8s.io 0.36.3
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).parents[1] / "src/enbloc/api/protobuf_messages.txt"
HEAD = """\
# Kubernetes' protobuf messages: the number, name and type of each field.
# Written by scripts/protobuf_messages.py from k8s.io/api {version}. `~` marks a field whose own fields are those of the
# message in JSON, `?` one that JSON leaves out where it is 0 or false. Messages outside the core group are named with
# their group.
"""
VERSIONS = {
    "apps": "v1",
    "batch": "v1",
    "autoscaling": "v2",
    "autoscaling.v1": "v1",
    "rbac": "v1",
    "policy": "v1",
    "coordination": "v1",
    "scheduling": "v1",
    "storage": "v1",
    "networking": "v1",
    "discovery": "v1",
    "events": "v1",
    "authentication": "v1",
    "authorization": "v1",
    "admissionregistration": "v1",
    "node": "v1",
    "resource": "v1",
}
"""Group, or group and version where two versions of it are read → the version whose messages are read."""
ROOTS = """
core: Pod Namespace ConfigMap Secret ServiceAccount ResourceQuota Service Event Endpoints LimitRange Binding
core: PersistentVolumeClaim PersistentVolume Node PodTemplate ReplicationController
apps: Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision
batch: Job CronJob
autoscaling: HorizontalPodAutoscaler
autoscaling.v1: HorizontalPodAutoscaler
rbac: Role RoleBinding ClusterRole ClusterRoleBinding
policy: PodDisruptionBudget Eviction
coordination: Lease
scheduling: PriorityClass
storage: StorageClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment
networking: NetworkPolicy Ingress IngressClass
discovery: EndpointSlice
events: Event
meta: DeleteOptions
authentication: SelfSubjectReview
authorization: SelfSubjectAccessReview SelfSubjectRulesReview
admissionregistration: ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
admissionregistration: ValidatingWebhookConfiguration MutatingWebhookConfiguration
node: RuntimeClass
resource: ResourceClaim ResourceClaimTemplate DeviceClass ResourceSlice
"""
NUMBERS = ("int32", "int64", "uint32", "uint64")
FIELD = re.compile(r"^  (?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);", re.M)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.S | re.M)
INLINE = re.compile(r'json:",inline" protobuf:"bytes,(\d+)')
OMITTED = re.compile(r'\s[a-zA-Z]\S*\s+`json:"\w+,omitempty" protobuf:"varint,(\d+)')
"""A number or flag that is always sent, and is left out of JSON where it is 0 or false."""

Key = tuple[str, str]


class Field(NamedTuple):
    number: int
    name: str
    type: str
    is_list: bool
    is_map: bool
    mark: str
    """`~`: its own fields are those of the message in JSON; `?`: a zero is left out."""


def read(sources: Path, version: str) -> dict[Key, list[Field]]:
    api = sources / f"api@v{version}"
    folders = {"core": api / "core/v1", "meta": sources / f"apimachinery@v{version}/pkg/apis/meta/v1"}
    folders |= {group: api / group.partition(".")[0] / of_group for group, of_group in VERSIONS.items()}
    found: dict[Key, list[Field]] = {}
    for group, folder in folders.items():
        marked = marks(folder)
        for message in MESSAGE.finditer((folder / "generated.proto").read_text()):
            name = message[1]
            found[group, name] = [
                Field(
                    int(one[5]),
                    one[4],
                    one[3] or one[2],
                    one[1] == "repeated",
                    bool(one[3]),
                    marked.get((name, one[5]), ""),
                )
                for one in FIELD.finditer(message[2])
            ]
    return found


def marks(folder: Path) -> dict[tuple[str, str], str]:
    """(struct, number) → the mark of a field, where it has one."""
    found = {}
    for source in folder.glob("types*.go"):
        struct = ""
        for line in source.read_text().splitlines():
            opened = re.match(r"type (\w+) struct", line)
            struct = opened[1] if opened else struct
            for pattern, mark in ((INLINE, "~"), (OMITTED, "?")):
                field = pattern.search(line)
                if field:
                    found[struct, field[1]] = mark
    return found


def resolve(group: str, type_: str) -> Key | str:
    """A message, or the name of a type that is read in a way of its own."""
    if type_ in NUMBERS:
        return "int"
    package, dot, name = type_.lstrip(".").rpartition(".")
    if not dot:
        return (group, name) if name[0].isupper() and name not in ("Time", "MicroTime", "FieldsV1") else name
    parts = package.split(".")
    of_group = "meta" if "meta" in parts else parts[3] if package.startswith("k8s.io.api.") else ""
    return (of_group, name) if of_group and name not in ("Time", "MicroTime", "FieldsV1") else name


def shown(key: Key | str) -> str:
    if isinstance(key, str):
        return key
    return key[1] if key[0] in ("core", "meta") else f"{key[0]}.{key[1]}"


def main() -> None:
    messages = read(Path(sys.argv[1]).expanduser(), sys.argv[2])
    waiting = [
        (group, name)
        for group, _, names in (line.partition(": ") for line in ROOTS.strip().splitlines())
        for name in names.split()
    ]
    seen: dict[str, str] = {}
    while waiting:
        key = waiting.pop()
        if shown(key) in seen:
            continue
        fields = []
        for field in sorted(messages[key]):
            type_ = resolve(key[0], field.type)
            if isinstance(type_, tuple):
                waiting.append(type_)
            text = f"{field.number} {field.mark}{field.name}"
            text += " map" if field.is_map else ""
            if shown(type_) != "string" or field.is_list:
                text += f" {shown(type_)}{'[]' if field.is_list else ''}"
            fields.append(text)
        seen[shown(key)] = f"{shown(key)}: {', '.join(fields)}"
    wrapped = ["\n".join(textwrap.wrap(seen[name], 118, subsequent_indent="  ")) for name in sorted(seen)]
    lines = "\n".join(wrapped)
    TARGET.write_text(f"{HEAD.format(version=sys.argv[2])}{lines}\n")


if __name__ == "__main__":
    main()
