"""Writing requests: create, replace, patch, delete, and the subresources binding, eviction and scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from enbloc.api import json_patch, volcano
from enbloc.api.events import as_version
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Fault, Obj, Ref, uid_of
from enbloc.api.writes import Refused, merge_patch
from enbloc.cluster.embedded.api.identity import check_preconditions, is_object
from enbloc.cluster.embedded.api.pods import POD
from enbloc.cluster.embedded.api.store import Propagation, Store, Subresource
from enbloc.cluster.embedded.http import request_body
from enbloc.cluster.embedded.http.apply_shapes import ByName, BySchema, Shape
from enbloc.cluster.embedded.http.eviction import check_budgets
from enbloc.cluster.embedded.http.list_merge_keys import BUILT_IN_GROUPS
from enbloc.cluster.embedded.http.listing import Lists
from enbloc.cluster.embedded.http.queries import ListQuery, flag, is_dry_run, number
from enbloc.cluster.embedded.http.resources import Resources, Target
from enbloc.cluster.embedded.http.selectors import selector_text
from enbloc.cluster.embedded.http.server_side_apply import Application, apply
from enbloc.cluster.embedded.http.status import refusal, success
from enbloc.cluster.embedded.http.strategic import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

Answer = tuple[int, Obj]

_OWN_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")
"""Not of an object's status."""


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion."""

    grace_s: int | None = None
    propagation: Propagation = "Background"
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def check_patch(target: Target, media: str) -> None:
    """Raises `Refused` (415) if the target has no patches of that media type."""
    if media not in PATCHES or (media == STRATEGIC_PATCH and target.kind.group not in BUILT_IN_GROUPS):
        good = [one for one in PATCHES if one != STRATEGIC_PATCH or target.kind.group in BUILT_IN_GROUPS]
        raise request_body.unsupported(media, tuple(good))


class Writer:
    """Executes writes on the store. Every method returns a status code and an object, or raises `Refused`."""

    def __init__(self, store: Store, lists: Lists, resources: Resources) -> None:
        self._store = store
        self._lists = lists
        self._resources = resources

    def create(self, target: Target, body: Any, dry_run: bool) -> Answer:
        obj = _as_stored(target, self._for_target(target, body, named=False))
        with self._store.dry_run(dry_run):
            return 201, self._store.create(obj)

    def replace(self, target: Target, body: Any, dry_run: bool) -> Answer:
        obj = _as_stored(target, self._for_target(target, body, named=True))
        current = self.existing(target)
        managed = current["metadata"].get("managedFields")
        subresource = _status(target)
        if managed and (subresource or "managedFields" not in obj["metadata"]):
            obj = {**obj, "metadata": {**obj["metadata"], "managedFields": managed}}
        if subresource:  # only its status is used, but its version must match
            given = obj["metadata"]
            resource = self._store.discovery.resource(target.kind.id)
            check_preconditions(resource, current, given.get("uid"), given.get("resourceVersion"))
        with self._store.dry_run(dry_run):
            return 200, self._store.replace(obj, subresource)

    def patch(self, target: Target, patch: Any, media: str, query: Mapping[str, str], dry_run: bool) -> Answer:
        """`media` is one that `check_patch` accepts."""
        if media == APPLY_PATCH:
            return self._apply(target, patch, query, dry_run)
        current = self.existing(target)
        subresource = _status(target)
        shown = as_version(current, target.api_version)
        match media:
            case "application/json-patch+json":
                wanted = json_patch.apply(shown, patch)
            case "application/merge-patch+json":
                if not isinstance(patch, dict):
                    raise refusal(400, f"a merge patch is a mapping, not {type(patch).__name__}")
                wanted = merge_patch(shown, patch)
            case _:
                wanted = strategic_merge(shown, patch)
        return 200, self._put(target, current, wanted, subresource, dry_run)

    def _put(self, target: Target, current: Obj, wanted: Any, subresource: Subresource, dry_run: bool) -> Obj:
        if not isinstance(wanted, dict) or not isinstance(wanted.get("metadata"), dict):
            raise refusal(422, "a patch cannot remove an object's metadata")
        given = wanted["metadata"]
        resource = self._store.discovery.resource(target.kind.id)
        if given.get("uid") != current["metadata"].get("uid"):
            check_preconditions(resource, current, given.get("uid"), "")
        if given.get("resourceVersion") != current["metadata"].get("resourceVersion"):
            check_preconditions(resource, current, "", given.get("resourceVersion"))
        for field in ("name", "namespace"):
            if given.get(field) != current["metadata"].get(field):
                raise refusal(422, f"metadata.{field}: field is immutable", Fault(f"metadata.{field}", "is immutable"))
        if wanted.get("apiVersion") == target.api_version:
            wanted = as_version(wanted, current["apiVersion"])
        with self._store.dry_run(dry_run):
            return self._store.replace(wanted, subresource)

    def _apply(self, target: Target, body: Any, query: Mapping[str, str], dry_run: bool) -> Answer:
        manager = query.get("fieldManager", "")
        if not manager or len(manager) > 128 or not manager.isprintable():
            fault = Fault("fieldManager", "Required value: is required for apply patch")
            raise refusal(422, f"PatchOptions is invalid: {fault}", fault)
        if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
            raise refusal(400, "an apply patch must be an object")
        body = {**body, "metadata": {"name": target.name, **(body.get("metadata") or {})}}
        wanted = self._for_target(target, body, named=True)
        current = self._store.get(*target.ref)
        if current is None and target.subresource:
            raise self._not_found(target)
        applied = apply(
            None if current is None else as_version(current, target.api_version),
            Application(
                manager,
                _of_subresource(target, wanted),
                self._shape(target),
                flag(query, "force"),
                self._store.stamp(),
                _status(target),
            ),
        )
        if current is None:
            return self.create(target, applied, dry_run)
        return 200, self._put(target, current, applied, _status(target), dry_run)

    def _shape(self, target: Target) -> Shape:
        if target.kind.group in BUILT_IN_GROUPS:
            return ByName()
        return BySchema(self._store.discovery.schema(target.kind.id, target.version) or {}, is_object=True)

    def delete(self, target: Target, options: DeleteOptions) -> Answer:
        current = self.existing(target)
        with self._store.dry_run(options.dry_run):
            left = self._store.delete(
                target.ref, options.uid, options.grace_s, options.propagation, options.resource_version
            )
        if self._store.get(*target.ref) is not None:
            return 200, left
        return 200, success(target.ref, target.kind.plural, uid_of(current))

    def delete_collection(self, target: Target, asked: ListQuery, options: DeleteOptions) -> list[Obj]:
        """Deletes what the selectors match; objects that are gone or protected are skipped."""
        found = self._lists.matching(target, asked)
        for obj in found[: asked.limit or None]:
            metadata = obj["metadata"]
            ref = Ref(target.kind.id, metadata.get("namespace") or "", metadata["name"])
            if options.dry_run:
                continue
            try:
                self._store.delete(ref, uid_of(obj), options.grace_s, options.propagation)
            except Refused as why:
                if why.code not in (403, 404, 409):
                    raise
        return found

    # -- subresources

    def bind(self, target: Target, body: Any, dry_run: bool) -> Answer:
        """A Binding, posted to a pod or to the namespace's bindings."""
        if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
            raise refusal(400, "a Binding must be an object")
        metadata = body.get("metadata") or {}
        name = target.name or metadata.get("name")
        node = body.get("target")
        if not isinstance(name, str) or (target.name and metadata.get("name", name) != name):
            raise refusal(400, "metadata.name: a Binding must have the name of its pod")
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or not node["name"]:
            fault = Fault("target.name", "Required value")
            raise refusal(422, f'Binding "{name[:80]}" is invalid: {fault}', fault)
        annotations, uid = metadata.get("annotations") or {}, metadata.get("uid") or ""
        if not _are_strings(annotations) or not isinstance(uid, str):
            raise refusal(400, "metadata: annotations and uid must be strings")
        with self._store.dry_run(dry_run):
            self._store.bind(target.namespace, name, uid, node["name"], annotations)
        return 201, success(Ref(POD, target.namespace, name), "pods", code=201)

    def evict(self, target: Target, body: Any, dry_run: bool) -> Answer:
        if body is not None and not isinstance(body, dict):
            raise refusal(400, "an Eviction must be an object")
        options = delete_options((body or {}).get("deleteOptions"), {}, [])
        pod = self.existing(target)
        check_preconditions("pods", pod, options.uid, options.resource_version)
        check_budgets(self._store, pod)
        if not (dry_run or options.dry_run):
            if options.grace_s is None:
                message = "Eviction API: evicting"
                self._store.evict(target.namespace, target.name, options.uid, "EvictionByEvictionAPI", message)
            else:
                self._store.delete(target.ref, options.uid, options.grace_s)
        return 201, success(target.ref, "pods", code=201)

    # -- replicas

    def scale(self, target: Target) -> Obj:
        """The Scale of a workload, or of an object whose CustomResourceDefinition has that subresource."""
        paths = self._scale_paths(target)
        obj = _of_one_role(target, self.existing(target))
        made: Obj = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {
                key: obj["metadata"][key]
                for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
                if key in obj["metadata"]
            },
            "spec": {"replicas": _at(obj, paths.get("specReplicasPath")) or 0},
            "status": {"replicas": _at(obj, paths.get("statusReplicasPath")) or 0},
        }
        selector = _at(obj, paths.get("labelSelectorPath"))
        if selector:
            made["status"]["selector"] = selector if isinstance(selector, str) else selector_text(selector)
        return made

    def set_scale(self, target: Target, wanted: Any, dry_run: bool) -> Answer:
        spec = wanted.get("spec") if isinstance(wanted, dict) else None
        replicas = spec.get("replicas") if isinstance(spec, dict) else None
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            fault = Fault("spec.replicas", "must be a number greater than or equal to 0")
            raise refusal(422, f"Scale is invalid: {fault}", fault)
        path = self._scale_paths(target).get("specReplicasPath")
        steps = path.strip(".").split(".") if isinstance(path, str) else []
        if not steps or not all(steps) or steps[0] in ("metadata", "status"):
            raise refusal(422, "the definition has no specReplicasPath")
        patch: Any = replicas
        for step in reversed(steps):
            patch = {step: patch}
        metadata = wanted.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else ""
        current = self.existing(target)
        check_preconditions(self._store.discovery.resource(target.kind.id), current, "", version)
        wanted = _with_list(target, merge_patch(_of_one_role(target, current), patch))
        self._put(target, current, wanted, "", dry_run)
        return 200, self.scale(target)

    def _scale_paths(self, target: Target) -> dict[str, Any]:
        found = self._resources.scale_of(target.kind, target.version)
        if found is None:
            raise refusal(404, "the server could not find the requested resource")
        return found

    # -- identity

    def existing(self, target: Target) -> Obj:
        """Raises `Refused` (404)."""
        found = self._store.get(*target.ref)
        if found is None:
            raise self._not_found(target)
        return found

    def _not_found(self, target: Target) -> Refused:
        return refusal(404, f'{self._store.discovery.resource(target.kind.id)} "{target.name}" not found')

    def _for_target(self, target: Target, body: Any, *, named: bool) -> Obj:
        """The object of a body, with the kind, namespace and name of the path. Raises `Refused` (400)."""
        if not isinstance(body, dict):
            raise refusal(400, f"an object is a mapping, not {type(body).__name__}")
        wanted = {"apiVersion": target.api_version, "kind": target.kind.name}
        for key, value in wanted.items():
            given = body.get(key)
            if given is not None and given != "" and given != value:
                what = "API version" if key == "apiVersion" else "kind"
                raise refusal(
                    400, f"the {what} in the data ({str(given)[:80]}) does not match the expected {what} ({value})"
                )
        metadata = body.get("metadata")
        if metadata is None:
            metadata = {}
        if not isinstance(metadata, dict):
            raise refusal(400, "metadata must be a mapping")
        space = metadata.get("namespace") or ""
        if target.namespace and space not in ("", target.namespace):
            raise refusal(400, "the namespace of the provided object does not match the namespace sent on the request")
        if named and metadata.get("name", target.name) != target.name:
            raise refusal(
                400,
                f"the name of the object ({str(metadata.get('name'))[:80]}) does not match the name on the URL "
                f"({target.name})",
            )
        if named:
            metadata = {**metadata, "name": target.name}
        if target.namespace:
            metadata = {**metadata, "namespace": target.namespace}
        elif not target.kind.namespaced and "namespace" in metadata:
            metadata = {key: value for key, value in metadata.items() if key != "namespace"}
        obj = {**body, **wanted, "metadata": metadata}
        if not named and not metadata.get("name") and not metadata.get("generateName"):
            fault = Fault("metadata.name", "Required value: name or generateName is required")
            raise refusal(422, f"{target.kind.name} is invalid: {fault}", fault)
        if not is_object(obj):
            raise refusal(400, "the body is not an object")
        return obj


def _of_one_role(target: Target, obj: Obj) -> Obj:
    """A Volcano Job with its only role in place of the list of roles; other objects as they are."""
    if target.kind.id != volcano.JOB:
        return obj
    tasks = obj["spec"].get("tasks") or []
    if len(tasks) != 1:
        names = ", ".join(str(task.get("name")) for task in tasks) or "none"
        what = (
            f"a Job with one role can be scaled, this one has {len(tasks)} ({names[:200]}): "
            "change spec.tasks[].replicas of a role, with kubectl edit or patch"
        )
        raise refusal(422, f'Job "{target.name}" is invalid: spec.tasks: {what}', Fault("spec.tasks", what))
    return {**obj, "spec": {**obj["spec"], "tasks": tasks[0]}}


def _with_list(target: Target, obj: Obj) -> Obj:
    return {**obj, "spec": {**obj["spec"], "tasks": [obj["spec"]["tasks"]]}} if target.kind.id == volcano.JOB else obj


def _as_stored(target: Target, obj: Obj) -> Obj:
    """Objects of a kind that is stored as another become objects of that one; else any version is stored."""
    return as_version(obj, KINDS[target.kind.id].api_version) if target.kind.stored_as else obj


def _of_subresource(target: Target, wanted: Obj) -> Obj:
    """What of an applied object the target takes: its status alone, or all but a status that is a subresource."""
    if not target.kind.has_status:
        return wanted
    if target.subresource != "status":
        return {key: value for key, value in wanted.items() if key != "status"}
    metadata = {key: value for key, value in wanted["metadata"].items() if key not in _OWN_METADATA}
    return {key: wanted[key] for key in ("apiVersion", "kind", "status") if key in wanted} | {"metadata": metadata}


def _status(target: Target) -> Subresource:
    return "status" if target.subresource == "status" else ""


def _are_strings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _at(obj: Any, path: Any) -> Any:
    for step in path.strip(".").split(".") if isinstance(path, str) else ("",):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


_PROPAGATIONS: dict[str, Propagation] = {one: one for one in get_args(Propagation)}


def delete_options(body: Any, query: Mapping[str, str], dry_runs: list[str]) -> DeleteOptions:
    """From the body, or else from the query. Raises `Refused` for invalid options."""
    body = {} if body is None else body
    if not isinstance(body, dict):
        raise refusal(400, "DeleteOptions must be a mapping")
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = number(query, "gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool) or not 0 <= grace < 2**62):
        raise _bad_option("gracePeriodSeconds", grace, "a number greater than or equal to 0")
    policy = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphans = body.get("orphanDependents")
    if orphans is None and query.get("orphanDependents"):
        orphans = flag(query, "orphanDependents")
    if not policy:
        policy = "Orphan" if orphans is True else "Background"
    if not isinstance(policy, str) or policy not in _PROPAGATIONS:
        raise _bad_option("propagationPolicy", policy, "one of Foreground, Background, Orphan")
    conditions = body.get("preconditions") or {}
    if not isinstance(conditions, dict):
        raise _bad_option("preconditions", conditions, "a mapping")
    uid, version = conditions.get("uid") or "", conditions.get("resourceVersion") or ""
    if not isinstance(uid, str) or not isinstance(version, str):
        raise _bad_option("preconditions", conditions, "made of strings")
    in_body = body.get("dryRun") or []
    if not isinstance(in_body, list) or not all(isinstance(one, str) for one in in_body):
        raise _bad_option("dryRun", in_body, "a list of strings")
    return DeleteOptions(grace, _PROPAGATIONS[policy], uid, version, is_dry_run([*in_body, *dry_runs]))


def _bad_option(field: str, value: Any, what: Literal["a mapping"] | str) -> Refused:
    fault = Fault(field, f"Invalid value: {str(value)[:80]}: must be {what}")
    return refusal(422, f"DeleteOptions is invalid: {fault}", fault)
