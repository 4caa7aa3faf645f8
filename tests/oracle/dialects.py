"""Reads gangs out of what users wrote, one function a dialect: Volcano (M3, V1), Koordinator and scheduler-plugins
(K1 to K4), Kubernetes' own PodGroup, SchedulingSpec (A1), and pods that are alone.

A gang is a dictionary of facts. Its key is (dialect, namespace, name).
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from oracle import adapter, sub_groups
from oracle.adapter import SECOND, parse_duration, parse_timestamp

Obj = dict[str, Any]
Key = tuple[str, str, str]

VOLCANO_GROUP_KEYS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
QUEUE_KEYS = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
ROLE_KEY, INDEX_KEY = "volcano.sh/task-spec", "volcano.sh/task-index"
KOORDINATOR = "gang.scheduling.koordinator.sh/"
SIGS = "pod-group.scheduling.sigs.k8s.io"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
KAR_SCHEDULER = "kar-scheduler"
VOLCANO_PODGROUP = "PodGroup.scheduling.volcano.sh"
KOORDINATOR_PODGROUP = "PodGroup.scheduling.sigs.k8s.io"
COSCHEDULING_PODGROUP = "PodGroup.scheduling.x-k8s.io"
NATIVE_PODGROUP = "PodGroup.scheduling.k8s.io"
KAI_PODGROUP = "PodGroup.scheduling.run.ai"
SCHEDULING_SPEC = "SchedulingSpec.arbitrator.incubator.k8s.io"
NOT_DECLARED = "its object does not exist"
OBJECTS = (
    VOLCANO_PODGROUP,
    KOORDINATOR_PODGROUP,
    COSCHEDULING_PODGROUP,
    NATIVE_PODGROUP,
    KAI_PODGROUP,
    SCHEDULING_SPEC,
)
"""Kinds that declare gangs, and carry the records of their claims."""


def notes_of(obj: Obj) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found


def labels_of(obj: Obj) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def owner_of(obj: Obj) -> Obj | None:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: Obj = owner
            return found
    return None


def s1_in_namespace(owner: Obj | None, namespace: str) -> Obj | None:
    """S1: an owner counts only within the child's own namespace."""
    return owner if owner is not None and owner["metadata"]["namespace"] == namespace else None


def queue_named(obj: Obj) -> str:
    for texts in (notes_of(obj), labels_of(obj)):
        for key in QUEUE_KEYS:
            if texts.get(key):
                return texts[key]
    return "default"


def condition(obj: Obj, kind: str) -> Obj:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == kind:
            found: Obj = one
            return found
    return {}


# ---- which gang a pod belongs to


def membership(pod: Obj, world: dict[str, Any]) -> dict[str, Any]:
    """The key of a pod's gang, its role and its index. The first dialect that it uses counts."""
    notes, labels, namespace = notes_of(pod), labels_of(pod), pod["metadata"]["namespace"]
    role = notes.get(ROLE_KEY) or labels.get(ROLE_KEY) or ""
    index = labels.get(INDEX_KEY) or notes.get(INDEX_KEY)
    number = int(index) if index and index.isdecimal() else None
    for key in VOLCANO_GROUP_KEYS:
        if notes.get(key):
            group = world["store"].get(VOLCANO_PODGROUP, namespace, notes[key])
            policies = ((group or {}).get("spec") or {}).get("subGroupPolicy") or []
            of_policy = sub_groups.t0_sub_group_of(policies, labels)[1]
            return {"key": ("volcano", namespace, notes[key]), "role": of_policy or role, "index": number}
    name = k1_gang_name(pod)
    if name:
        return {"key": ("koordinator", namespace, name), "role": role, "index": None}
    native = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if native:
        return {"key": ("kubernetes", namespace, native), "role": "", "index": None}
    if notes.get("pod-group-name"):
        role = labels.get("kai.scheduler/subgroup-name") or ""
        return {"key": ("kai", namespace, notes["pod-group-name"]), "role": role, "index": None}
    if a1_belongs(pod, world):
        owner = owner_of(pod)
        uid = owner["uid"] if owner else pod["metadata"]["uid"]
        role = labels.get(ROLE_KEY) or notes.get(ROLE_KEY) or ""
        return {"key": ("arbitrator", namespace, uid), "role": role, "index": number}
    return {"key": ("pod", namespace, pod["metadata"]["name"]), "role": "", "index": None}


def k1_gang_name(pod: Obj) -> str:
    notes, labels = notes_of(pod), labels_of(pod)
    for texts, more in ((notes, ()), (labels, (COSCHEDULING_LABEL,))):
        for key in (KOORDINATOR + "name", SIGS + "/name", SIGS, *more):
            if texts.get(key):
                return texts[key]
    return ""


def a1_belongs(pod: Obj, world: dict[str, Any]) -> bool:
    """A1: its owner has a SchedulingSpec; or it may not be scheduled without one."""
    owner = owner_of(pod)
    if pod["spec"].get("schedulerName") == KAR_SCHEDULER:
        return True
    if owner is None:
        return False
    if owner.get("kind") == "QueueJob" and str(owner.get("apiVersion")).startswith("arbitrator.incubator.k8s.io/"):
        return True
    if world["settings"]["require_scheduling_spec"] and "." in str(owner.get("apiVersion")).partition("/")[0]:
        return True
    known = (pod["metadata"]["namespace"], owner["uid"])
    specs = adapter.objects(world["store"], SCHEDULING_SPEC)
    return known in owners_of(specs) or known in world["memory"]["lost_their_spec"]


def owners_of(specs: list[Obj]) -> set[tuple[str, str]]:
    """Namespace and UID of the owners that have these SchedulingSpecs."""
    found = set()
    for spec in specs:
        owner = owner_of(spec)
        if owner is not None:
            found.add((spec["metadata"]["namespace"], owner["uid"]))
    return found


def v5_lost_specs(world: dict[str, Any], pods: list[Obj]) -> None:
    """V5, decision 0018: while a pod waits whose owner had a SchedulingSpec, that owner's pods are no ordinary pods."""
    memory, now = world["memory"], owners_of(adapter.objects(world["store"], SCHEDULING_SPEC))
    waiting = set()
    for pod in pods:
        owner = owner_of(pod)
        gone = pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName")
        if owner is not None and not gone and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            waiting.add((pod["metadata"]["namespace"], owner["uid"]))
    lost = memory["lost_their_spec"] | owners_of(memory["deleted_specs"])
    memory["lost_their_spec"] = (lost - now) & waiting
    memory["deleted_specs"].clear()


# ---- gangs


def read_gangs(world: dict[str, Any], pods: list[Obj]) -> dict[Key, dict[str, Any]]:
    store = world["store"]
    jobs = {job["metadata"]["uid"]: job for job in adapter.objects(store, "Job.batch.volcano.sh")}
    found: dict[Key, dict[str, Any]] = {}
    members: dict[Key, list[Obj]] = {}
    for pod in pods:
        members.setdefault(membership(pod, world)["key"], []).append(pod)
    for group in adapter.objects(store, VOLCANO_PODGROUP):
        gang = v1_podgroup(world, group, jobs)
        gang["tree"] = sub_groups.t0_of_volcano(group["spec"], [labels_of(one) for one in members.get(gang["key"], [])])
        found[gang["key"]] = gang
    for group in adapter.objects(store, KAI_PODGROUP):
        gang = kai_podgroup(world, group)
        found[gang["key"]] = gang
    for key in k1_keys(world, members):
        found[key] = k1_gang(world, key, members.get(key, []))
    for group in adapter.objects(store, NATIVE_PODGROUP):
        gang = native_podgroup(world, group)
        found[gang["key"]] = gang
    for spec in sorted(adapter.objects(store, SCHEDULING_SPEC), key=by_age, reverse=True):
        gang = a1_scheduling_spec(world, spec)
        found[gang["key"]] = gang
    for key, mine in members.items():
        if key not in found:
            found[key] = undeclared(key, mine)
    k1_resolve(found)
    return dict(sorted(found.items()))


def by_age(obj: Obj) -> tuple[str, str]:
    return (obj["metadata"].get("creationTimestamp") or "", obj["metadata"]["name"])


def gang_facts(key: Key, created: int, minimum: int, **more: Any) -> dict[str, Any]:
    """Every fact that a gang may have, with what counts where nothing is said."""
    return {
        "key": key,
        "dialect": key[0],
        "title": f"{key[1]}/{key[2]}",
        "created": created,
        "minimum": minimum,
        "minima": {},
        "total": minimum,
        "tree": None,
        "queue": "default",
        "own_priority": None,
        "own_class": "",
        "asked": None,
        "asks": False,
        "job_topology": None,
        "partitions": {},
        "templates_priority": 0,
        "min_resources": None,
        "enqueued": True,
        "enqueued_at": None,
        "first_wave": [],
        "failed_create": False,
        "enqueued_by": "",
        "started": False,
        "finished": False,
        "node_selector": {},
        "keeps_what_it_got": False,
        "waves": False,
        "wave_of": {},
        "more_waves": False,
        "later": {},
        "inherited_class": "",
        "templates": {},
        "group": [],
        "holds": False,
        "waiting": 0,
        "match_policy": "once-satisfied",
        "is_made": False,
        "needs_free": {},
        "goes_whole": False,
        "never_preempts": False,
        "object": None,
        "kind": "",
        "home": None,
        "home_kind": "",
        "terms": {"patience": None, "run_time": None, "protected": False, "cooldown": 0},
        "longest_run": None,
        "problem": "",
        "usage_order": (),
        "tasks": [],
        **more,
    }


def undeclared(key: Key, pods: list[Obj]) -> dict[str, Any]:
    """A pod that is alone; or pods that wait for the object that declares their gang (K4, V5, A1)."""
    oldest = min(pods, key=by_age)
    created = parse_timestamp(oldest["metadata"]["creationTimestamp"])
    gang = gang_facts(key, created, 1, queue=queue_named(oldest))
    if key[0] == "pod":
        gang.update(home=oldest, home_kind="Pod")
        return gang
    gang["problem"] = NOT_DECLARED
    if key[0] == "arbitrator":
        gang["title"] = f"{key[1]}/{(owner_of(oldest) or oldest['metadata'])['name']}"
    return gang


def class_value(world: dict[str, Any], name: str) -> int | None:
    system = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
    found = world["classes"].get(name)
    if found is not None:
        return int(found.get("value") or 0)
    return system.get(name)


def default_class_value(world: dict[str, Any]) -> int:
    values = [int(one.get("value") or 0) for one in world["classes"].values() if one.get("globalDefault")]
    return min(values, default=0)


def never_preempts(world: dict[str, Any], name: str) -> bool:
    return (world["classes"].get(name) or {}).get("preemptionPolicy") == "Never"


def v1_podgroup(world: dict[str, Any], group: Obj, jobs: dict[str, Obj]) -> dict[str, Any]:
    """M3: a Volcano PodGroup, with what only its Job says: name, templates' priorities, dependsOn."""
    from oracle import reading, tenants, waves

    spec, status = group.get("spec") or {}, group.get("status") or {}
    key = ("volcano", group["metadata"]["namespace"], group["metadata"]["name"])
    owner = owner_of(group)
    job = s1_in_namespace(jobs.get(owner["uid"]), key[1]) if owner else None
    class_name = spec.get("priorityClassName") or ""
    priority = tenants.s3_own_priority(world, key[1], class_name)
    own_class = class_name if priority is not None else ""
    of_templates = templates_priority(world, key[1], job) if job is not None else None
    if priority is None:
        priority = of_templates
    enqueued = condition(group, "Enqueued")
    stamp = enqueued.get("lastTransitionTime")
    asked = spec.get("minResources")
    minima = {role: count for role, count in (spec.get("minTaskMember") or {}).items() if count > 0}
    gang = gang_facts(
        key,
        parse_timestamp(group["metadata"]["creationTimestamp"]),
        max(spec.get("minMember") or 0, sum(minima.values())),  # M4
        minima=minima,
        queue=spec.get("queue") or "default",
        own_priority=priority,
        own_class=own_class,
        templates_priority=default_class_value(world) if of_templates is None else of_templates,
        min_resources=reading.amounts(asked) if asked else None,
        enqueued=(status.get("phase") or "") not in ("", "Pending"),
        enqueued_at=parse_timestamp(stamp) if stamp else None,
        enqueued_by=enqueued.get("reason") or "",
        started=status.get("phase") in ("Running", "Unknown", "Completed"),
        finished=status.get("phase") == "Completed",
        never_preempts=never_preempts(world, class_name),
        object=group,
        kind=VOLCANO_PODGROUP,
        home=group,
        home_kind=VOLCANO_PODGROUP,
        terms=reading.read_terms(group),
    )
    if owner and owner.get("kind") == "Job":
        gang["title"] = f"{key[1]}/{owner['name']}"
    gang["is_made"] = job is not None
    gang.update(k1_of_object(world, group))
    waves.d3_present_waves(gang, group, job)
    gang["job_topology"] = job["spec"].get("networkTopology") if job is not None else None
    roles = job["spec"].get("tasks") or () if job is not None else ()
    gang["partitions"] = {role["name"]: role["partitionPolicy"] for role in roles if role.get("partitionPolicy")}
    gang["longest_run"] = longest_run(job)
    if not gang["started"]:
        gang["first_wave"] = first_wave(world, gang, job)
    gang["failed_create"] = bool(notes_of(group).get("enbloc.dev/failed-create"))
    return gang


def templates_priority(world: dict[str, Any], namespace: str, job: Obj) -> int | None:
    """The highest of its templates', which inherit the Job's class; `None` if one names a class that does not count
    before its pods exist (S3)."""
    from oracle import tenants

    values = []
    inherited = job["spec"].get("priorityClassName") or ""
    for role in job["spec"].get("tasks") or ():
        named = role["template"]["spec"].get("priorityClassName") or ""
        if named and tenants.s3_own_priority(world, namespace, named) is None:
            return None
        if not named and tenants.s3_own_priority(world, namespace, inherited) is not None:
            named = inherited
        value = class_value(world, named) if named else default_class_value(world)
        if value is not None:
            values.append(value)
    return max(values, default=None)


def first_wave(world: dict[str, Any], gang: dict[str, Any], job: Obj | None) -> list[dict[str, Any]]:
    """The pods of the minima of its first wave, as its templates say."""
    from oracle import reading, volumes

    found = []
    templates = {role["name"]: role["template"] for role in ((job or {}).get("spec") or {}).get("tasks") or ()}
    for role, count in gang["minima"].items():
        for index in range(count if role in templates else 0):
            spec = templates[role]["spec"]
            request = reading.g6_request(spec)
            notes = (templates[role].get("metadata") or {}).get("annotations") or {}
            pod = {"spec": spec, "metadata": {"namespace": gang["key"][1], "annotations": notes}}
            found.append(
                {
                    "uid": f"awaited/{gang['key']}/{role}/{index}",
                    "namespace": gang["key"][1],
                    "name": f"{role}-{index}",
                    "order": (0, False, index),
                    "pod": pod,
                    "reachable_from": volumes.g6_nodes_of_volumes(world, pod),
                    "gang": gang["key"],
                    "role": role,
                    "ours": True,
                    "request": {**request, "pods": 1},
                    "best_effort": not request,
                    "labels": (templates[role].get("metadata") or {}).get("labels") or {},
                }
            )
    return found


def longest_run(job: Obj | None) -> int | None:
    from oracle import reading

    times = []
    for role in (job or {}).get("spec", {}).get("tasks") or ():
        template = {"metadata": {}, **role["template"]}
        times.append(reading.read_terms(template)["run_time"])
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


# ---- Koordinator and scheduler-plugins


def k1_keys(world: dict[str, Any], members: dict[Key, list[Obj]]) -> list[Key]:
    keys = {key for key in members if key[0] == "koordinator"}
    for kind in (KOORDINATOR_PODGROUP, COSCHEDULING_PODGROUP):
        for group in adapter.objects(world["store"], kind):
            keys.add(("koordinator", group["metadata"]["namespace"], group["metadata"]["name"]))
    return sorted(keys)


def k1_gang(world: dict[str, Any], key: Key, pods: list[Obj]) -> dict[str, Any]:
    """K1 to K3: annotations of pods before those of the PodGroup before its fields; the oldest good value counts."""
    from oracle import reading

    group, kind = None, ""
    for one in (KOORDINATOR_PODGROUP, COSCHEDULING_PODGROUP):
        found = world["store"].get(one, key[1], key[2])
        if found is not None and group is None:
            group, kind = found, one
    ordered = sorted(pods, key=lambda pod: (*by_age(pod), pod["metadata"]["uid"]))
    sources = [*ordered, *([group] if group else [])]
    spec = (group or {}).get("spec") or {}
    minimum, problem = k3_minimum(key, sources, group)
    home = group or ordered[0]
    seconds = spec.get("scheduleTimeoutSeconds")
    waiting = k3_first(sources, "waiting-time", k3_waiting)
    if waiting is None and seconds is not None and seconds > 0:
        waiting = seconds * SECOND
    return gang_facts(
        key,
        parse_timestamp(home["metadata"]["creationTimestamp"]),
        minimum,
        dialect="coscheduling" if kind == COSCHEDULING_PODGROUP else "koordinator",
        queue=queue_named(home),
        holds=k3_first(sources, "mode", k3_mode) == "NonStrict",
        group=k3_first(sources, "groups", k3_groups, "gang-groups") or [],
        waiting=waiting or world["settings"]["default_waiting"],
        started=((group or {}).get("status") or {}).get("phase") in ("Scheduled", "Running"),
        match_policy=k3_first(sources, "match-policy", k3_policy) or "once-satisfied",
        needs_free=reading.amounts(spec.get("minResources")),
        object=group,
        kind=kind,
        home=home,
        home_kind=kind or "Pod",
        terms=reading.read_terms(group) if group else gang_facts(key, 0, 0)["terms"],
        problem=problem or t3_uneven(minimum, home),
    )


def k1_of_object(world: dict[str, Any], obj: Obj) -> dict[str, Any]:
    """K1: what annotations of Koordinator's say on a PodGroup of Volcano's or Kubernetes' own."""
    return {
        "holds": k3_first([obj], "mode", k3_mode) == "NonStrict",
        "group": k3_first([obj], "groups", k3_groups, "gang-groups") or [],
        "waiting": k3_first([obj], "waiting-time", k3_waiting) or world["settings"]["default_waiting"],
        "match_policy": k3_first([obj], "match-policy", k3_policy) or "once-satisfied",
    }


def k1_resolve(found: dict[Key, dict[str, Any]]) -> None:
    """K1: a name in `groups` is that of a gang of any dialect in which gangs have groups: of the same one first."""
    dialects = ("koordinator", "volcano", "kubernetes")
    by_name: dict[tuple[str, str], Key] = {}
    for key, gang in found.items():
        if key[0] in dialects:
            by_name[key[0], gang["title"]] = key
    for key, gang in found.items():
        for position, (_, namespace, name) in enumerate(gang["group"]):
            for dialect in (key[0], *dialects):
                if (dialect, f"{namespace}/{name}") in by_name:
                    gang["group"][position] = by_name[dialect, f"{namespace}/{name}"]
                    break


def t3_uneven(minimum: int, home: Obj) -> str:
    """T3: the smallest `podCountMultiple` divides the minimum."""
    text = notes_of(home).get(KOORDINATOR + "network-topology-spec")
    sizes = [one.get("podCountMultiple") or 0 for one in (json.loads(text)["gatherStrategy"] if text else ())]
    several = sorted(size for size in sizes if size > 1)
    divides = all(above % below == 0 for below, above in itertools.pairwise(several))
    return "its minimum is no multiple" if several and divides and minimum % several[0] else ""


def k3_text(obj: Obj, *names: str) -> str | None:
    for texts in (notes_of(obj), labels_of(obj)):
        for name in names:
            if name in texts:
                return texts[name]
    return None


def k3_first(sources: list[Obj], name: str, read: Any, alias: str = "") -> Any:
    """The first good value of the pods, oldest first, then of the PodGroup."""
    for obj in sources:
        names = [KOORDINATOR + name] + ([KOORDINATOR + alias] if alias else [])
        text = k3_text(obj, *names)
        if text is not None and read(text) is not None:
            return read(text)
    return None


def k3_minimum(key: Key, sources: list[Obj], group: Obj | None) -> tuple[int, str]:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", key[2]):
        return 1, "its name is not RFC 1123"
    texts = [k3_text(obj, KOORDINATOR + "min-available", SIGS + "/min-available") for obj in sources]
    of_pods = texts[:-1] if group else texts
    for said in (of_pods, texts[-1:] if group else []):
        written = [text for text in said if text is not None]
        good = [int(text) for text in written if text.strip().isdecimal()]
        if good:
            return good[0], ""
        if written:
            return 1, "its min-available is bad"
    if group is None:
        return 1, NOT_DECLARED
    return (group.get("spec") or {}).get("minMember") or 0, ""


def k3_mode(text: str) -> str | None:
    return text if text in ("Strict", "NonStrict") else None


def k3_policy(text: str) -> str | None:
    return text if text in ("once-satisfied", "waiting-and-running", "only-waiting") else None


def k3_waiting(text: str) -> int | None:
    try:
        found = parse_duration(text)
    except ValueError:
        return None
    return found if found > 0 else None


def k3_groups(text: str) -> list[Key] | None:
    """A JSON list, or a comma list, of namespace/name."""
    try:
        names = json.loads(text) if text.strip().startswith("[") else [one for one in text.split(",") if one.strip()]
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(one, str) and one.count("/") == 1 for one in names):
        return None
    parts = [one.strip().split("/") for one in names]
    return list(dict.fromkeys(("koordinator", namespace, name) for namespace, name in parts))


# ---- Kubernetes' own PodGroup, SchedulingSpec


def native_podgroup(world: dict[str, Any], group: Obj) -> dict[str, Any]:
    from oracle import reading, tenants

    spec = group.get("spec") or {}
    gang_policy = (spec.get("schedulingPolicy") or {}).get("gang")
    minimum = (gang_policy or {}).get("minCount") or 0
    class_name = spec.get("priorityClassName") or ""
    mode = spec.get("disruptionMode")
    return gang_facts(
        ("kubernetes", group["metadata"]["namespace"], group["metadata"]["name"]),
        parse_timestamp(group["metadata"]["creationTimestamp"]),
        minimum,
        queue=queue_named(group),
        own_priority=tenants.s3_own_priority(world, group["metadata"]["namespace"], class_name),
        own_class=class_name,
        never_preempts=spec.get("preemptionPolicy") == "Never" or never_preempts(world, class_name),  # U2
        started=condition(group, "PodGroupInitiallyScheduled").get("status") == "True",
        **k1_of_object(world, group),
        goes_whole=mode == "PodGroup" or (isinstance(mode, dict) and "all" in mode),
        object=group,
        kind=NATIVE_PODGROUP,
        home=group,
        home_kind=NATIVE_PODGROUP,
        terms=reading.read_terms(group),
        problem="its minCount is bad" if gang_policy is not None and minimum < 1 else "",
    )


def kai_podgroup(world: dict[str, Any], group: Obj) -> dict[str, Any]:
    """The minimum of its sub-groups, or one member, where it says none."""
    from oracle import reading, tenants

    spec = group.get("spec") or {}
    class_name = spec.get("priorityClassName") or ""
    own = tenants.s3_own_priority(world, group["metadata"]["namespace"], class_name)
    terms = reading.read_terms(group)
    has_children = bool(spec.get("subGroups"))
    return gang_facts(
        ("kai", group["metadata"]["namespace"], group["metadata"]["name"]),
        parse_timestamp(group["metadata"]["creationTimestamp"]),
        spec.get("minMember", 0 if has_children else 1),
        tree=sub_groups.t0_of_kai(spec) if has_children and not sub_groups.t0_fault_of_kai(spec) else None,
        queue=spec.get("queue") or queue_named(group),
        own_priority=own,
        own_class=class_name,
        never_preempts=never_preempts(world, class_name),
        object=group,
        kind=KAI_PODGROUP,
        home=group,
        home_kind=KAI_PODGROUP,
        terms={**terms, "protected": terms["protected"] or (own is not None and own >= 100)},
        problem=sub_groups.t0_fault_of_kai(spec),
    )


def a1_scheduling_spec(world: dict[str, Any], obj: Obj) -> dict[str, Any]:
    from oracle import reading, tenants

    spec, owner = obj.get("spec") or {}, owner_of(obj)
    uid = owner["uid"] if owner else obj["metadata"]["uid"]
    queue_job = None
    for one in adapter.objects(world["store"], "QueueJob.arbitrator.incubator.k8s.io"):
        if one["metadata"]["uid"] == uid:
            queue_job = s1_in_namespace(one, obj["metadata"]["namespace"])
    status = (queue_job or {}).get("status") or {}
    phase = (status.get("state") or {}).get("phase")
    minimum = max(spec.get("minAvailable") or 0, 0)
    class_name = spec.get("priorityClassName") or ""
    own = tenants.s3_own_priority(world, obj["metadata"]["namespace"], class_name)
    if not class_name:
        own = spec.get("priority")
    return gang_facts(
        ("arbitrator", obj["metadata"]["namespace"], uid),
        parse_timestamp(obj["metadata"]["creationTimestamp"]),
        minimum,
        title=f"{obj['metadata']['namespace']}/{owner['name'] if owner else obj['metadata']['name']}",
        queue=queue_named(obj),
        own_priority=own,
        own_class=class_name,
        never_preempts=never_preempts(world, class_name),
        node_selector=spec.get("nodeSelector") or {},
        keeps_what_it_got=True,
        failed_create=bool(notes_of(obj).get("enbloc.dev/failed-create")),
        started=phase in ("Running", "Completed") and (status.get("met") or 0) >= minimum,
        finished=phase == "Completed",
        object=obj,
        kind=SCHEDULING_SPEC,
        home=obj,
        home_kind=SCHEDULING_SPEC,
        terms=reading.read_terms(obj),
        problem="" if owner else "it has no controlling owner",
    )
