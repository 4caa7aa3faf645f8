"""Discovery documents: the groups, versions and resources that are served."""

from __future__ import annotations

from typing import Any

from enbloc.api.kinds import Kind
from enbloc.cluster.embedded.http import usage
from enbloc.cluster.embedded.http.resources import Resources

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_IN_ALL = ("Pod", "Service", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "CronJob", "Job", "QueueJob")
"""What `kubectl get all` lists."""
_AGGREGATED = "apidiscovery.k8s.io"


class DiscoveryDocuments:
    """The discovery documents of the served resources."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def core(self, address: str) -> dict[str, Any]:
        """`/api`"""
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def groups(self) -> dict[str, Any]:
        """`/apis`"""
        groups = [_group(name, versions) for name, versions in self._resources.groups().items() if name]
        groups += [_group(name, list(versions)) for name, versions in _FIXED.items()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, name: str) -> dict[str, Any] | None:
        """`/apis/GROUP`"""
        versions = _FIXED.get(name, {}).keys() or self._resources.groups().get(name)
        if not versions or not name:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(versions))}

    def resources(self, group: str, version: str) -> dict[str, Any] | None:
        """`/api/v1`, `/apis/GROUP/VERSION`"""
        listed = [one for kind in self._resources.of(group, version) for one in self._of_kind(kind, version)]
        listed += _FIXED.get(group, {}).get(version, [])
        if not listed:
            return None
        if not group:
            listed += [_BINDINGS]
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}

    def aggregated(self, *, core: bool) -> dict[str, Any]:
        """All of it in one document, as clients since 1.27 request it."""
        items = []
        groups = {**self._resources.groups(), **{name: list(versions) for name, versions in _FIXED.items()}}
        for group, versions in groups.items():
            if core == (not group):
                listed = [self._aggregated_version(group, version) for version in versions]
                metadata = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
                items.append({"metadata": metadata, "versions": listed})
        return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{_AGGREGATED}/v2", "metadata": {}, "items": items}

    def _aggregated_version(self, group: str, version: str) -> dict[str, Any]:
        resources: list[dict[str, Any]] = []
        for one in (self.resources(group, version) or {"resources": []})["resources"]:
            of_kind = {"group": one.get("group", group), "version": one.get("version", version), "kind": one["kind"]}
            name, _, subresource = one["name"].partition("/")
            if subresource:
                entry = {"subresource": subresource, "responseKind": of_kind, "verbs": one["verbs"]}
                resources[-1].setdefault("subresources", []).append(entry)
                continue
            entry = {
                "resource": name,
                "responseKind": of_kind,
                "scope": "Namespaced" if one["namespaced"] else "Cluster",
                "singularResource": one["singularName"] or one["kind"].lower(),
                "verbs": one["verbs"],
            }
            for key in ("shortNames", "categories"):
                if one.get(key):
                    entry[key] = one[key]
            resources.append(entry)
        return {"version": version, "freshness": "Current", "resources": resources}

    def _of_kind(self, kind: Kind, version: str) -> list[dict[str, Any]]:
        main: dict[str, Any] = {
            "name": kind.plural,
            "singularName": kind.name.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": VERBS,
        }
        if kind.short_names:
            main["shortNames"] = list(kind.short_names)
        if kind.name in _IN_ALL:
            main["categories"] = ["all"]
        listed = [main]
        if kind.has_status:
            listed.append(_sub(kind, "status", kind.name, ["get", "patch", "update"]))
        if kind.id == "Pod":
            listed.append({**_sub(kind, "binding", "Binding", ["create"])})
            listed.append({**_sub(kind, "eviction", "Eviction", ["create"]), "group": "policy", "version": "v1"})
            listed.append(_sub(kind, "log", "Pod", ["get"]))
        if self._resources.scale_of(kind, version) is not None:
            scale = _sub(kind, "scale", "Scale", ["get", "patch", "update"])
            listed.append({**scale, "group": "autoscaling", "version": "v1"})
        return listed


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _sub(kind: Kind, name: str, of_kind: str, verbs: list[str]) -> dict[str, Any]:
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": of_kind,
        "verbs": verbs,
    }


def _review(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}


_BINDINGS = {"name": "bindings", "singularName": "binding", "namespaced": True, "kind": "Binding", "verbs": ["create"]}
_FIXED: dict[str, dict[str, list[dict[str, Any]]]] = {
    "authentication.k8s.io": {"v1": [_review("selfsubjectreviews", "SelfSubjectReview")]},
    "authorization.k8s.io": {
        "v1": [
            _review("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
            _review("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        ]
    },
    usage.GROUP: {usage.VERSION: usage.RESOURCES},
}
"""Groups that are not about objects of the store."""
