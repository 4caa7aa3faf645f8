"""A description of every field of the kinds that we define, for `kubectl explain`: the one place where they are.

A line is a path and its text. Of several paths that end a field's path the longest counts: `Queue.spec.priority` is
said of that field, `priority` of every other one of that name.
"""

from __future__ import annotations

from typing import Any, Final

_TEXTS: Final = """
apiVersion | The version of the API that the object is written in.
kind | The kind of the object.
metadata | Name, namespace, labels, annotations and owners.
spec | What is wanted.
status | What is observed; written by controllers and the scheduler.

Job | A job: roles of pods that start together or not at all.
Job.spec.tasks | The roles of the job. Names are unique.
tasks[] | A role: equal pods under one name.
Job.spec.minAvailable | How many pods must be able to run together; by default the sum of the roles' minima.
Job.spec.queue | The queue of the job; `default` if none is named. It may not change.
Job.spec.maxRetry | How many runs the job may have before it fails; 3 by default.
Job.spec.minSuccess | The number of succeeded pods that completes the job.
Job.spec.plugins | Plugins by name (env, svc, ssh, pytorch, tensorflow, mpi, ray), with their arguments.
Job.spec.volumes | Volumes that are mounted in every container of every role.
Job.spec.policies | What happens to the job on events of its pods; a role's own policies come first.
Job.spec.schedulerName | The scheduler of the job's pods. It may not change.
runningEstimate | How long the user expects the job to run. It is kept and has no effect.
ttlSecondsAfterFinished | Seconds after its end until the job is deleted.
tasks[].name | The name of the role; part of the names of its pods.
replicas | How many pods are wanted.
tasks[].replicas | How many pods the role has.
taskSpecs[].replicas | How many pods the role has.
tasks[].minAvailable | How many pods of the role must be able to run together; by default all.
tasks[].policies | What happens on events of the role's pods; comes before the job's policies.
tasks[].maxRetry | How many restarts the role may have.
template | The template that the pods are made of.
tasks[].template | The pod template of the role.
taskSpecs[].template | The pod template of the role.
dependsOn | The roles whose pods must run before those of this role are created.
dependsOn.name | The names of those roles.
iteration | `any`: one of the roles is enough; `all`: every one of them.
topologyPolicy | How the pods use NUMA nodes. It is kept and has no effect.
partitionPolicy | Partitions of a role's pods that are placed together.
totalPartitions | The number of partitions.
partitionSize | The number of pods of a partition.
minPartitions | How many partitions must be able to run.
networkTopology | Pods must (mode hard) or should (mode soft) be in one domain of the network.
mode | `hard`: a gang that does not fit into one domain waits; `soft`: a preference.
highestTierAllowed | The highest tier of the domains that may be used.
highestTierName | The same by the tier's name.
policies[].action | What is done: RestartJob, RestartTask, TerminateJob, CompleteJob, AbortJob and others.
event | The event that it answers: PodFailed, PodEvicted, TaskCompleted, Unknown, OutOfSync and others.
events | Several such events.
exitCode | The exit code of a container that it answers, in place of an event.
exitCodes | Several such exit codes.
policies[].timeout | How long after the event the action is done.
mountPath | Where the volume is mounted.
volumeClaimName | An existing PersistentVolumeClaim.
volumeClaim | The spec of a PersistentVolumeClaim that is created for the job.

Job.status.state | The phase of the job, and why.
Job.status.minAvailable | The minimum that the job is held to.
phase | The present phase.
reason | Why, in a word for programs.
message | Why, in a sentence.
lastTransitionTime | When the phase began.
pending | Pods that wait or start.
running | Pods that run.
succeeded | Pods that succeeded.
failed | Pods that failed.
terminating | Pods that are being deleted.
unknown | Pods whose state is not known.
version | How often the job was restarted; pods of older versions do not count.
retryCount | How many runs the job has had after the first.
conditions | The conditions that hold, or the phases that the job had.
controlledResources | What the plugins of the job made.
taskStatusCount | By role: how many of its pods are in which phase.
runningDuration | How long the job took.

Command | A request to a job or a queue; deleted when it is executed.
Command.action | What is asked for: AbortJob, ResumeJob, TerminateJob, RestartJob, OpenQueue, CloseQueue and others.
target | The Job or Queue, as an owner reference.
Command.reason | Why, in a word for programs.
Command.message | Why, in a sentence.

PodGroup | Pods that start together or not at all.
minMember | How many pods must be able to run together.
minTaskMember | The same by role.
PodGroup.spec.queue | The queue of the gang; `default` if none is named.
minResources | What the minimum needs: the gang is enqueued when that much could be free.
subGroupPolicy | Minima and topology of parts of the gang.
subGroupPolicy[].name | The name of the subgroups.
minSubGroups | How many subgroups must be able to run.
subGroupSize | The number of pods of a subgroup.
PodGroup.status.phase | Pending, Inqueue (its pods may be created), Running, Completed or Unknown.
PodGroup.status.conditions | Why it waits (Unschedulable), since when it is enqueued, for which gang it was evicted.
PodGroup.status.pending | Members that wait.
PodGroup.status.running | Members that run.
PodGroup.status.succeeded | Members that succeeded.
PodGroup.status.failed | Members that failed.
scheduleTimeoutSeconds | How long members that have room are held for the others.
minSubGroup | How many subgroups must be able to run.
preemptibility | Whether the gang may be evicted for others.
topologyConstraint | The domain of the nodes that the pods must or should share.
topologyConstraint.topology | The name of the node tree.
requiredTopologyLevel | The level of the domain that they must share.
preferredTopologyLevel | The level of the domain that they should share.
subGroups | Parts of the gang with minima of their own.
subGroups[].name | The name of the subgroup; pods name it in a label.
subGroups[].minMember | How many pods of the subgroup must be able to run together.
subGroups[].minSubGroup | How many of the subgroups below it must be able to run.
subGroups[].parent | The subgroup above it.
markUnschedulable | Whether pods that do not fit are marked as such. It is kept and has no effect.
schedulingBackoff | How often the gang is tried. It is kept and has no effect.
PodGroup.spec.backoffLimit | How many pods of the workload may fail. It is kept and has no effect.
PodGroup.spec.completions | How many pods of the workload are to succeed. It is kept and has no effect.
PodGroup.spec.parallelism | How many pods of the workload run at once. It is kept and has no effect.
scheduled | How many members are bound.
occupiedBy | The owner of the group's pods.
scheduleStartTime | When the group's first member was bound.
schedulingConditions | Why other schedulers did not place it.
resourcesStatus | What the gang requests and has, as another scheduler wrote it.

Queue | A queue: gangs in it share what the queue deserves.
Queue.spec.weight | Its share of the cluster, in proportion to its siblings' weights.
capability | The most that the queue and those below it may use, by resource.
deserved | What it gets before others get more than they deserve; what others use of it is reclaimed.
guarantee | What is kept free for it.
guarantee.resource | Amounts by resource.
reclaimable | Whether what it uses beyond its share may be reclaimed for other queues.
Queue.spec.priority | Queues of higher priority are served first.
Queue.spec.parent | The queue above it; `root` by default.
dequeueStrategy | `fifo`: a gang that does not fit blocks those behind it; `traverse`: they are tried.
Queue.spec.type | A name for the kind of queue. It is kept and has no effect.
Queue.spec.affinity | The node groups that its pods must or should use.
nodeGroupAffinity | Node groups that its pods must or should use.
nodeGroupAntiAffinity | Node groups that its pods must not or should not use.
extendClusters | Other clusters that the queue may use. It is kept and has no effect.
extendClusters[].name | The name of the cluster.
extendClusters[].weight | Its weight.
extendClusters[].capacity | Its capacity, by resource.
Queue.status.state | Open, Closed, Closing (gangs in it run on, none is enqueued) or Unknown.
Queue.status.pending | PodGroups that wait to be enqueued.
Queue.status.inqueue | PodGroups that are enqueued and do not run yet.
Queue.status.running | PodGroups that run.
Queue.status.completed | PodGroups that have ended.
Queue.status.unknown | PodGroups that run with fewer pods than their minimum.
reservation | Nodes that are reserved for the queue.
reservation.nodes | The names of the nodes.
reservation.resource | What they have, by resource.
allocated | What the pods of its gangs have, by resource.

QueueJob | A job of kube-arbitrator: roles of pods that start together or not at all.
schedSpec | How its pods are scheduled.
schedulingSpec | Another name for `schedSpec`.
taskSpecs | The roles of the job. Names are unique.
taskSpecs[] | A role: equal pods under one name.
taskSpecs[].name | The name of the role; `taskN` if none is given.
QueueJob.spec.schedulerName | The scheduler of the job's pods.
QueueJob.spec.selector | Which pods are the job's; filled in if it is absent.
QueueJob.spec.schedSpec.minAvailable | How many pods must be able to run together; by default all.
QueueJob.spec.schedulingSpec.minAvailable | How many pods must be able to run together; by default all.
QueueJob.status.state | The phase of the job, and why.
QueueJob.status.minAvailable | The minimum that the job is held to.
met | The largest minimum that ran since its pods were last all new.
restarts | How often all its pods were recreated because too few were left.
created | How many pods of each role it had; one that was lost is replaced before others get more than their minimum.
restartAt | While it restarts: when its pods are recreated.
completedGeneration | The generation with which every pod succeeded.
SchedulingSpec | Scheduling requirements of the pods of one owner together.
SchedulingSpec.spec.minAvailable | How many pods of the owner must be able to run together.
SchedulingSpec.status.conditions | Why the pods wait.

containers | The containers of the pod; all of them run together.
initContainers | Containers that run one after the other before the others; with restartPolicy Always they stay.
containers[].name | The name of the container.
initContainers[].name | The name of the container.
image | The image of the container.
command | The program, in place of the image's.
args | The arguments of the program.
resources | What is requested, and what may be used at most.
requests | What is reserved on the node, by resource.
limits | What may be used at most, by resource.
ports | The ports that the container listens on.
containerPort | The port of the container.
hostPort | The port of the node that leads to it; one pod a node can have it.
hostIP | The address of the node that `hostPort` is opened on.
protocol | TCP, UDP or SCTP.
ports[].name | A name for the port.
restartPolicy | Always, OnFailure or Never.
nodeName | The node that the pod is bound to.
schedulerName | The scheduler of the pod.
nodeSelector | Labels that a node must have.
affinity | Nodes and other pods that the pod must or should be near to, or apart from.
nodeAffinity | Nodes that the pod must or should be on.
podAffinity | Pods that it must or should be near to.
podAntiAffinity | Pods that it must or should be apart from.
requiredDuringSchedulingIgnoredDuringExecution | What must hold when the pod is placed.
preferredDuringSchedulingIgnoredDuringExecution | What should hold when the pod is placed, with weights.
nodeSelectorTerms | A node that matches one of these terms will do.
matchExpressions | Requirements on labels; all of them must hold.
matchFields | Requirements on fields of the node, such as metadata.name.
key | The key of the label, taint or field.
operator | How the values are compared: In, NotIn, Exists, DoesNotExist, Gt, Lt; for tolerations Equal or Exists.
values | The values.
weight | How much it counts among the preferences, 1 to 100.
preference | The nodes that are preferred.
podAffinityTerm | The pods, and how near.
topologyKey | The label of nodes whose equal values make one domain.
labelSelector | Which pods.
matchLabels | Labels and their values; all of them must match.
namespaces | The namespaces of the pods; by default the pod's own.
namespaceSelector | The same by labels of the namespaces.
matchLabelKeys | Labels of the pod itself whose values the others must share.
mismatchLabelKeys | Labels of the pod itself whose values the others must not share.
tolerations | Taints of nodes that do not keep the pod away.
tolerations[].value | The value of the taint.
effect | The effect of the taint: NoSchedule, PreferNoSchedule or NoExecute; empty: all.
tolerationSeconds | How long the pod stays on a node that gets such a taint with NoExecute.
topologySpreadConstraints | How evenly pods are spread over domains.
maxSkew | The largest difference between two domains.
whenUnsatisfiable | DoNotSchedule (a requirement) or ScheduleAnyway (a preference).
minDomains | The least number of domains that count.
nodeAffinityPolicy | Whether the pod's node affinity limits the domains: Honor or Ignore.
nodeTaintsPolicy | Whether taints limit the domains: Honor or Ignore.
PodSpec.volumes | The volumes of the pod.
volumes | The volumes of the pod.
volumes[].name | The name of the volume.
persistentVolumeClaim | The PersistentVolumeClaim of the volume.
claimName | The name of the claim.
readOnly | Whether it is mounted read-only.
ephemeral | A claim that is made for this pod alone.
overhead | What the pod needs besides its containers, by resource; set from its RuntimeClass.
priority | The priority as a number; set from the PriorityClass.
priorityClassName | The PriorityClass.
preemptionPolicy | PreemptLowerPriority, or Never: it evicts no pod.
schedulingGates | While there is one, the pod is not scheduled.
schedulingGates[].name | The name of the gate.
schedulingGroup | The gang of the pod.
podGroupName | The name of its PodGroup.
activeDeadlineSeconds | How long the pod may run.
terminationGracePeriodSeconds | How long its containers have to stop.
hostname | The host name of the pod.
subdomain | The Service that gives the pod its name in DNS.
metadata.name | The name.
name | The name.
generateName | A prefix from which a name is made.
namespace | The namespace.
uid | The identity of this one object, over all of the same name.
resourceVersion | The version of the object; every write makes a new one.
generation | How often what is wanted has changed.
creationTimestamp | When it was created.
deletionTimestamp | When it is to be gone, if it is being deleted.
deletionGracePeriodSeconds | How long it has until then.
labels | Labels, which selectors read.
annotations | Annotations, which programs read.
ownerReferences | The objects that own it: it goes with the last of them.
controller | Whether that owner controls it; at most one does.
blockOwnerDeletion | Whether the owner waits for it when it is deleted in the foreground.
finalizers | What must be done before it is removed: one entry per controller.

CommandObject.action | What is asked of the object: AbortJob, RestartJob, ResumeJob, OpenQueue, CloseQueue and others.
Guarantee.resource | What is kept free for the queue, by resource.
SchedulingTemplate.minAvailable | How many pods must be able to run together.
SubGroup.parent | The sub-group that this one is part of.
TopologyConstraint.topology | The Topology whose levels are meant.
schedulingPolicy | How its pods are scheduled: as a gang, or one by one.
schedulingConstraints | Where its pods must be, beside each other.
disruptionMode | Whether its pods are evicted one by one or all together.
parentCompositePodGroupName | The CompositePodGroup that it is part of.
SchedulingPolicy.gang | Its pods start together or not at all.
SchedulingPolicy.basic | Its pods start one by one.
GroupPolicy.gang | Its groups start together or not at all.
GroupPolicy.basic | Its groups start one by one.
minCount | How many pods must start together.
minGroupCount | How many of its groups must start together.
HyperNode.spec.tier | The height in the tree of the network: 1 is the lowest.
HyperNode.spec.tierName | A name for the tier.
HyperNode.spec.members | What belongs to it: nodes, or HyperNodes of a lower tier.
Member.type | Node or HyperNode.
Member.selector | Which nodes or HyperNodes: by name, by pattern or by label.
exactMatch | The one of this name.
regexMatch | Those whose names match a pattern.
labelMatch | Those whose labels match.
PatternMatch.pattern | A regular expression that the whole name must match.
Topology.spec.levels | The levels, from the widest to the narrowest.
TopologyLevel.nodeLabel | The label of the nodes that names their domain at this level.
TopologyLevel.alias | Another name for the level.
networkTopologySpec | The layers of the network, each with the label that names its domains.
NetworkLayer.topologyLayer | The name of the layer.
NetworkLayer.parentTopologyLayer | The layer above it.
NetworkLayer.labelKey | The labels of the nodes that name their domain in this layer.
batch.Toleration.value | The value of the taint that is tolerated.
Toleration.value | The value of the taint that is tolerated.

Taint.value | The value of the taint.
Node.spec.taints | Taints: pods that do not tolerate them are not placed here.
unschedulable | Whether the node is cordoned: it takes no new pods.
Node.status.capacity | What the node has, by resource.
Node.status.allocatable | What pods may use of it, by resource.
batch.Condition.type | What the condition is about.
Condition.type | What the condition is about.
startTime | When it started.
completionTime | When it ended.
selector | Which pods are meant, by their labels.
minReadySeconds | How long a pod must be ready to count as available.
revisionHistoryLimit | How many old revisions are kept.
updateStrategy | How pods are replaced after a change of the template.
strategy | How pods are replaced after a change of the template.
UpdateStrategy.type | RollingUpdate, Recreate or OnDelete.
rollingUpdate | How many pods may be replaced at a time.
maxSurge | How many pods, or what share, there may be above the wanted number.
maxUnavailable | How many pods, or what share, may be unavailable.
RollingUpdate.partition | Pods of this ordinal and above are updated.
paused | Whether changes of the template wait.
progressDeadlineSeconds | How long an update may make no progress before it counts as failed.
podManagementPolicy | OrderedReady or Parallel.
ordinals | Which number the first pod has.
Ordinals.start | The number of the first pod.
serviceName | The Service that gives the pods their names in DNS.
volumeClaimTemplates | Claims that are made for each pod.
currentRevision | The revision of the pods that are not updated yet.
updateRevision | The revision that pods are updated to.
ControllerRevision.revision | The number of the revision.
ControllerRevision.data | The template of the revision.
parallelism | How many pods run at a time.
completions | How many pods must succeed.
completionMode | Indexed or NonIndexed.
completedIndexes | The indexes whose pods succeeded.
backoffLimit | How many failed pods are replaced before the Job fails.
manualSelector | Whether the author chose the selector.
managedBy | The controller that the Job is left to.
suspend | Whether nothing is started for now.
uncountedTerminatedPods | Pods that ended and are not counted yet.
batch.CronJobSpec.schedule | When Jobs are created, as in crontab.
timeZone | The time zone of the schedule.
concurrencyPolicy | Allow, Forbid or Replace: what happens while the last Job runs.
startingDeadlineSeconds | How late a Job may still be created.
jobTemplate | The Job that is created.
successfulJobsHistoryLimit | How many completed Jobs are kept.
failedJobsHistoryLimit | How many failed Jobs are kept.
lastScheduleTime | When a Job was created last.
lastSuccessfulTime | When a Job succeeded last.
accessModes | ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.
storageClassName | The StorageClass.
volumeName | The PersistentVolume that it is bound to.
PersistentVolume.spec.capacity | The size of the volume.
claimRef | The claim that it is bound to.
VolumeNodeAffinity.required | The nodes that the volume can be used on.
provisioner | What makes the volumes.
volumeBindingMode | Immediate or WaitForFirstConsumer.
allowedTopologies | Where volumes may be made.
matchLabelExpressions | Labels of the nodes, each with its values.
PriorityClass.value | The priority of pods of the class: higher ones come first.
globalDefault | Whether pods that name no class are of this one.
PodDisruptionBudget.spec.minAvailable | How many of the pods, or what share, must stay.
ResourceQuota.spec.hard | The most that the namespace may use, by resource.
ResourceQuota.spec.scopes | Which pods are counted.
scopeSelector | Which pods are counted, by scope: by priority class, for instance.
CustomResourceDefinition.spec.group | The API group of the kind.
CustomResourceDefinition.spec.scope | Namespaced or Cluster.
CustomResourceDefinition.spec.names | The names of the kind.
CustomResourceDefinition.spec.versions | The versions of the kind, each with its schema.
plural | Its name in paths.
singular | Its name for one object.
shortNames | Short names for kubectl.
served | Whether the version is served.
CustomResourceVersion.storage | Whether objects are stored in this version.
"""

_PATHS: Final = {
    path.strip(): text.strip()
    for path, _, text in (line.partition("|") for line in _TEXTS.strip().splitlines() if line.strip())
}
_LONGEST: Final = max(path.count(".") + 1 for path in _PATHS)


def description_of(path: tuple[str, ...]) -> str:
    """Of a field by its path, such as `("Queue", "spec", "weight")`; items of a list are `tasks[]`. Empty: unknown."""
    for count in range(min(len(path), _LONGEST), 0, -1):
        text = _PATHS.get(".".join(path[-count:]))
        if text:
            return text
    return ""


def described(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The schema with a description of each field in it, at any depth, where it has none of its own."""
    made = dict(schema)
    if path and (text := description_of(path)):
        if "$ref" in made:  # beside a reference everything else is ignored
            made["allOf"] = [{"$ref": made.pop("$ref")}]
        made.setdefault("description", text)
    if isinstance(made.get("properties"), dict):
        made["properties"] = {key: described(child, *path, key) for key, child in made["properties"].items()}
    if isinstance(made.get("items"), dict):
        made["items"] = described(made["items"], *path[:-1], f"{path[-1]}[]") if path else made["items"]
    if isinstance(made.get("additionalProperties"), dict):
        made["additionalProperties"] = described(made["additionalProperties"], *path)
    return made
