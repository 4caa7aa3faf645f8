"""Kubernetes' protobuf messages: the number, name and type of each field.

Written by `scripts/protobuf_messages.py` from k8s.io/api 0.36.3. `~` marks a field whose own
fields are those of the message in JSON, `?` one that JSON leaves out where it is 0 or false. Messages
outside the core group are named with their group.
"""

from __future__ import annotations

from typing import Final

MESSAGES: Final = """
Affinity: 1 nodeAffinity NodeAffinity, 2 podAffinity PodAffinity, 3 podAntiAffinity PodAntiAffinity
AppArmorProfile: 1 type, 2 localhostProfile
AttachedVolume: 1 name, 2 devicePath
Binding: 1 metadata ObjectMeta, 2 target ObjectReference
CSIPersistentVolumeSource: 1 driver, 2 volumeHandle, 3 ?readOnly bool, 4 fsType, 5 volumeAttributes map, 6
  controllerPublishSecretRef SecretReference, 7 nodeStageSecretRef SecretReference, 8 nodePublishSecretRef
  SecretReference, 9 controllerExpandSecretRef SecretReference, 10 nodeExpandSecretRef SecretReference
CSIVolumeSource: 1 driver, 2 readOnly bool, 3 fsType, 4 volumeAttributes map, 5 nodePublishSecretRef
  LocalObjectReference
Capabilities: 1 add string[], 2 drop string[]
ClientIPConfig: 1 timeoutSeconds int
ClusterTrustBundleProjection: 1 name, 2 signerName, 3 labelSelector LabelSelector, 4 path, 5 optional bool
Condition: 1 type, 2 status, 3 ?observedGeneration int, 4 lastTransitionTime Time, 5 reason, 6 message
ConfigMap: 1 metadata ObjectMeta, 2 data map, 3 binaryData map bytes, 4 immutable bool
ConfigMapEnvSource: 1 ~localObjectReference LocalObjectReference, 2 optional bool
ConfigMapKeySelector: 1 ~localObjectReference LocalObjectReference, 2 key, 3 optional bool
ConfigMapNodeConfigSource: 1 namespace, 2 name, 3 uid, 4 resourceVersion, 5 kubeletConfigKey
ConfigMapProjection: 1 ~localObjectReference LocalObjectReference, 2 items KeyToPath[], 4 optional bool
ConfigMapVolumeSource: 1 ~localObjectReference LocalObjectReference, 2 items KeyToPath[], 3 defaultMode int, 4
  optional bool
Container: 1 name, 2 image, 3 command string[], 4 args string[], 5 workingDir, 6 ports ContainerPort[], 7 env
  EnvVar[], 8 resources ResourceRequirements, 9 volumeMounts VolumeMount[], 10 livenessProbe Probe, 11 readinessProbe
  Probe, 12 lifecycle Lifecycle, 13 terminationMessagePath, 14 imagePullPolicy, 15 securityContext SecurityContext, 16
  ?stdin bool, 17 ?stdinOnce bool, 18 ?tty bool, 19 envFrom EnvFromSource[], 20 terminationMessagePolicy, 21
  volumeDevices VolumeDevice[], 22 startupProbe Probe, 23 resizePolicy ContainerResizePolicy[], 24 restartPolicy, 25
  restartPolicyRules ContainerRestartRule[]
ContainerExtendedResourceRequest: 1 containerName, 2 resourceName, 3 requestName
ContainerImage: 1 names string[], 2 ?sizeBytes int
ContainerPort: 1 name, 2 ?hostPort int, 3 containerPort int, 4 protocol, 5 hostIP
ContainerResizePolicy: 1 resourceName, 2 restartPolicy
ContainerRestartRule: 1 action, 2 exitCodes ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: 1 operator, 2 values int[]
ContainerState: 1 waiting ContainerStateWaiting, 2 running ContainerStateRunning, 3 terminated
  ContainerStateTerminated
ContainerStateRunning: 1 startedAt Time
ContainerStateTerminated: 1 exitCode int, 2 ?signal int, 3 reason, 4 message, 5 startedAt Time, 6 finishedAt Time, 7
  containerID
ContainerStateWaiting: 1 reason, 2 message
ContainerStatus: 1 name, 2 state ContainerState, 3 lastState ContainerState, 4 ready bool, 5 restartCount int, 6
  image, 7 imageID, 8 containerID, 9 started bool, 10 allocatedResources map Quantity, 11 resources
  ResourceRequirements, 12 volumeMounts VolumeMountStatus[], 13 user ContainerUser, 14 allocatedResourcesStatus
  ResourceStatus[], 15 stopSignal
ContainerUser: 1 linux LinuxContainerUser
DaemonEndpoint: 1 Port int
DeleteOptions: 1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool, 4 propagationPolicy,
  5 dryRun string[], 6 ignoreStoreReadErrorWithClusterBreakingPotential bool
DownwardAPIProjection: 1 items DownwardAPIVolumeFile[]
DownwardAPIVolumeFile: 1 path, 2 fieldRef ObjectFieldSelector, 3 resourceFieldRef ResourceFieldSelector, 4 mode int
DownwardAPIVolumeSource: 1 items DownwardAPIVolumeFile[], 2 defaultMode int
EmptyDirVolumeSource: 1 medium, 2 sizeLimit Quantity
EndpointAddress: 1 ip, 2 targetRef ObjectReference, 3 hostname, 4 nodeName
EndpointPort: 1 name, 2 port int, 3 protocol, 4 appProtocol
EndpointSubset: 1 addresses EndpointAddress[], 2 notReadyAddresses EndpointAddress[], 3 ports EndpointPort[]
Endpoints: 1 metadata ObjectMeta, 2 subsets EndpointSubset[]
EnvFromSource: 1 prefix, 2 configMapRef ConfigMapEnvSource, 3 secretRef SecretEnvSource
EnvVar: 1 name, 2 value, 3 valueFrom EnvVarSource
EnvVarSource: 1 fieldRef ObjectFieldSelector, 2 resourceFieldRef ResourceFieldSelector, 3 configMapKeyRef
  ConfigMapKeySelector, 4 secretKeyRef SecretKeySelector, 5 fileKeyRef FileKeySelector
EphemeralContainer: 1 ~ephemeralContainerCommon EphemeralContainerCommon, 2 targetContainerName
EphemeralContainerCommon: 1 name, 2 image, 3 command string[], 4 args string[], 5 workingDir, 6 ports ContainerPort[],
  7 env EnvVar[], 8 resources ResourceRequirements, 9 volumeMounts VolumeMount[], 10 livenessProbe Probe, 11
  readinessProbe Probe, 12 lifecycle Lifecycle, 13 terminationMessagePath, 14 imagePullPolicy, 15 securityContext
  SecurityContext, 16 ?stdin bool, 17 ?stdinOnce bool, 18 ?tty bool, 19 envFrom EnvFromSource[], 20
  terminationMessagePolicy, 21 volumeDevices VolumeDevice[], 22 startupProbe Probe, 23 resizePolicy
  ContainerResizePolicy[], 24 restartPolicy, 25 restartPolicyRules ContainerRestartRule[]
EphemeralVolumeSource: 1 volumeClaimTemplate PersistentVolumeClaimTemplate
Event: 1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason, 4 message, 5 source EventSource, 6
  firstTimestamp Time, 7 lastTimestamp Time, 8 ?count int, 9 type, 10 eventTime MicroTime, 11 series EventSeries, 12
  action, 13 related ObjectReference, 14 reportingComponent, 15 reportingInstance
EventSeries: 1 ?count int, 2 lastObservedTime MicroTime
EventSource: 1 component, 2 host
ExecAction: 1 command string[]
FieldSelectorRequirement: 1 key, 2 operator, 3 values string[]
FileKeySelector: 1 volumeName, 2 path, 3 key, 4 optional bool
GRPCAction: 1 port int, 2 service
HTTPGetAction: 1 path, 2 port IntOrString, 3 host, 4 scheme, 5 httpHeaders HTTPHeader[]
HTTPHeader: 1 name, 2 value
HostAlias: 1 ip, 2 hostnames string[]
HostIP: 1 ip
HostPathVolumeSource: 1 path, 2 type
ImageVolumeSource: 1 reference, 2 pullPolicy
ImageVolumeStatus: 1 imageRef
KeyToPath: 1 key, 2 path, 3 mode int
LabelSelector: 1 matchLabels map, 2 matchExpressions LabelSelectorRequirement[]
LabelSelectorRequirement: 1 key, 2 operator, 3 values string[]
Lifecycle: 1 postStart LifecycleHandler, 2 preStop LifecycleHandler, 3 stopSignal
LifecycleHandler: 1 exec ExecAction, 2 httpGet HTTPGetAction, 3 tcpSocket TCPSocketAction, 4 sleep SleepAction
LimitRange: 1 metadata ObjectMeta, 2 spec LimitRangeSpec
LimitRangeItem: 1 type, 2 max map Quantity, 3 min map Quantity, 4 default map Quantity, 5 defaultRequest map Quantity,
  6 maxLimitRequestRatio map Quantity
LimitRangeSpec: 1 limits LimitRangeItem[]
LinuxContainerUser: 1 uid int, 2 gid int, 3 supplementalGroups int[]
LoadBalancerIngress: 1 ip, 2 hostname, 3 ipMode, 4 ports PortStatus[]
LoadBalancerStatus: 1 ingress LoadBalancerIngress[]
LocalObjectReference: 1 name
LocalVolumeSource: 1 path, 2 fsType
ManagedFieldsEntry: 1 manager, 2 operation, 3 apiVersion, 4 time Time, 6 fieldsType, 7 fieldsV1 FieldsV1, 8
  subresource
ModifyVolumeStatus: 1 targetVolumeAttributesClassName, 2 status
NFSVolumeSource: 1 server, 2 path, 3 ?readOnly bool
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceCondition: 1 type, 2 status, 4 lastTransitionTime Time, 5 reason, 6 message
NamespaceSpec: 1 finalizers string[]
NamespaceStatus: 1 phase, 2 conditions NamespaceCondition[]
Node: 1 metadata ObjectMeta, 2 spec NodeSpec, 3 status NodeStatus
NodeAddress: 1 type, 2 address
NodeAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution NodeSelector, 2
  preferredDuringSchedulingIgnoredDuringExecution PreferredSchedulingTerm[]
NodeAllocatableResourceClaimStatus: 1 resourceClaimName, 2 containers string[], 3 resources map Quantity
NodeCondition: 1 type, 2 status, 3 lastHeartbeatTime Time, 4 lastTransitionTime Time, 5 reason, 6 message
NodeConfigSource: 2 configMap ConfigMapNodeConfigSource
NodeConfigStatus: 1 assigned NodeConfigSource, 2 active NodeConfigSource, 3 lastKnownGood NodeConfigSource, 4 error
NodeDaemonEndpoints: 1 kubeletEndpoint DaemonEndpoint
NodeFeatures: 1 supplementalGroupsPolicy bool
NodeRuntimeHandler: 1 name, 2 features NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: 1 recursiveReadOnlyMounts bool, 2 userNamespaces bool
NodeSelector: 1 nodeSelectorTerms NodeSelectorTerm[]
NodeSelectorRequirement: 1 key, 2 operator, 3 values string[]
NodeSelectorTerm: 1 matchExpressions NodeSelectorRequirement[], 2 matchFields NodeSelectorRequirement[]
NodeSpec: 1 podCIDR, 2 externalID, 3 providerID, 4 ?unschedulable bool, 5 taints Taint[], 6 configSource
  NodeConfigSource, 7 podCIDRs string[]
NodeStatus: 1 capacity map Quantity, 2 allocatable map Quantity, 3 phase, 4 conditions NodeCondition[], 5 addresses
  NodeAddress[], 6 daemonEndpoints NodeDaemonEndpoints, 7 nodeInfo NodeSystemInfo, 8 images ContainerImage[], 9
  volumesInUse string[], 10 volumesAttached AttachedVolume[], 11 config NodeConfigStatus, 12 runtimeHandlers
  NodeRuntimeHandler[], 13 features NodeFeatures, 14 declaredFeatures string[]
NodeSwapStatus: 1 capacity int
NodeSystemInfo: 1 machineID, 2 systemUUID, 3 bootID, 4 kernelVersion, 5 osImage, 6 containerRuntimeVersion, 7
  kubeletVersion, 8 kubeProxyVersion, 9 operatingSystem, 10 architecture, 11 swap NodeSwapStatus
ObjectFieldSelector: 1 apiVersion, 2 fieldPath
ObjectMeta: 1 name, 2 generateName, 3 namespace, 4 selfLink, 5 uid, 6 resourceVersion, 7 ?generation int, 8
  creationTimestamp Time, 9 deletionTimestamp Time, 10 deletionGracePeriodSeconds int, 11 labels map, 12 annotations
  map, 13 ownerReferences OwnerReference[], 14 finalizers string[], 17 managedFields ManagedFieldsEntry[]
ObjectReference: 1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion, 6 resourceVersion, 7 fieldPath
OwnerReference: 1 kind, 3 name, 4 uid, 5 apiVersion, 6 controller bool, 7 blockOwnerDeletion bool
PersistentVolume: 1 metadata ObjectMeta, 2 spec PersistentVolumeSpec, 3 status PersistentVolumeStatus
PersistentVolumeClaim: 1 metadata ObjectMeta, 2 spec PersistentVolumeClaimSpec, 3 status PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: 1 type, 2 status, 3 lastProbeTime Time, 4 lastTransitionTime Time, 5 reason, 6 message
PersistentVolumeClaimSpec: 1 accessModes string[], 2 resources VolumeResourceRequirements, 3 volumeName, 4 selector
  LabelSelector, 5 storageClassName, 6 volumeMode, 7 dataSource TypedLocalObjectReference, 8 dataSourceRef
  TypedObjectReference, 9 volumeAttributesClassName
PersistentVolumeClaimStatus: 1 phase, 2 accessModes string[], 3 capacity map Quantity, 4 conditions
  PersistentVolumeClaimCondition[], 5 allocatedResources map Quantity, 7 allocatedResourceStatuses map, 8
  currentVolumeAttributesClassName, 9 modifyVolumeStatus ModifyVolumeStatus
PersistentVolumeClaimTemplate: 1 metadata ObjectMeta, 2 spec PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: 1 claimName, 2 ?readOnly bool
PersistentVolumeSource: 3 hostPath HostPathVolumeSource, 5 nfs NFSVolumeSource, 20 local LocalVolumeSource, 22 csi
  CSIPersistentVolumeSource
PersistentVolumeSpec: 1 capacity map Quantity, 2 ~persistentVolumeSource PersistentVolumeSource, 3 accessModes
  string[], 4 claimRef ObjectReference, 5 persistentVolumeReclaimPolicy, 6 storageClassName, 7 mountOptions string[],
  8 volumeMode, 9 nodeAffinity VolumeNodeAffinity, 10 volumeAttributesClassName
PersistentVolumeStatus: 1 phase, 2 message, 3 reason, 4 lastPhaseTransitionTime Time
Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution PodAffinityTerm[], 2
  preferredDuringSchedulingIgnoredDuringExecution WeightedPodAffinityTerm[]
PodAffinityTerm: 1 labelSelector LabelSelector, 2 namespaces string[], 3 topologyKey, 4 namespaceSelector
  LabelSelector, 5 matchLabelKeys string[], 6 mismatchLabelKeys string[]
PodAntiAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution PodAffinityTerm[], 2
  preferredDuringSchedulingIgnoredDuringExecution WeightedPodAffinityTerm[]
PodCertificateProjection: 1 signerName, 2 keyType, 3 maxExpirationSeconds int, 4 credentialBundlePath, 5 keyPath, 6
  certificateChainPath, 7 userAnnotations map
PodCondition: 1 type, 2 status, 3 lastProbeTime Time, 4 lastTransitionTime Time, 5 reason, 6 message, 7
  ?observedGeneration int
PodDNSConfig: 1 nameservers string[], 2 searches string[], 3 options PodDNSConfigOption[]
PodDNSConfigOption: 1 name, 2 value
PodExtendedResourceClaimStatus: 1 requestMappings ContainerExtendedResourceRequest[], 2 resourceClaimName
PodIP: 1 ip
PodOS: 1 name
PodReadinessGate: 1 conditionType
PodResourceClaim: 1 name, 3 resourceClaimName, 4 resourceClaimTemplateName
PodResourceClaimStatus: 1 name, 2 resourceClaimName
PodSchedulingGate: 1 name
PodSchedulingGroup: 1 podGroupName
PodSecurityContext: 1 seLinuxOptions SELinuxOptions, 2 runAsUser int, 3 runAsNonRoot bool, 4 supplementalGroups int[],
  5 fsGroup int, 6 runAsGroup int, 7 sysctls Sysctl[], 8 windowsOptions WindowsSecurityContextOptions, 9
  fsGroupChangePolicy, 10 seccompProfile SeccompProfile, 11 appArmorProfile AppArmorProfile, 12
  supplementalGroupsPolicy, 13 seLinuxChangePolicy
PodSpec: 1 volumes Volume[], 2 containers Container[], 3 restartPolicy, 4 terminationGracePeriodSeconds int, 5
  activeDeadlineSeconds int, 6 dnsPolicy, 7 nodeSelector map, 8 serviceAccountName, 9 serviceAccount, 10 nodeName, 11
  ?hostNetwork bool, 12 ?hostPID bool, 13 ?hostIPC bool, 14 securityContext PodSecurityContext, 15 imagePullSecrets
  LocalObjectReference[], 16 hostname, 17 subdomain, 18 affinity Affinity, 19 schedulerName, 20 initContainers
  Container[], 21 automountServiceAccountToken bool, 22 tolerations Toleration[], 23 hostAliases HostAlias[], 24
  priorityClassName, 25 priority int, 26 dnsConfig PodDNSConfig, 27 shareProcessNamespace bool, 28 readinessGates
  PodReadinessGate[], 29 runtimeClassName, 30 enableServiceLinks bool, 31 preemptionPolicy, 32 overhead map Quantity,
  33 topologySpreadConstraints TopologySpreadConstraint[], 34 ephemeralContainers EphemeralContainer[], 35
  setHostnameAsFQDN bool, 36 os PodOS, 37 hostUsers bool, 38 schedulingGates PodSchedulingGate[], 39 resourceClaims
  PodResourceClaim[], 40 resources ResourceRequirements, 41 hostnameOverride, 43 schedulingGroup PodSchedulingGroup
PodStatus: 1 phase, 2 conditions PodCondition[], 3 message, 4 reason, 5 hostIP, 6 podIP, 7 startTime Time, 8
  containerStatuses ContainerStatus[], 9 qosClass, 10 initContainerStatuses ContainerStatus[], 11 nominatedNodeName,
  12 podIPs PodIP[], 13 ephemeralContainerStatuses ContainerStatus[], 14 resize, 15 resourceClaimStatuses
  PodResourceClaimStatus[], 16 hostIPs HostIP[], 17 ?observedGeneration int, 18 extendedResourceClaimStatus
  PodExtendedResourceClaimStatus, 19 allocatedResources map Quantity, 20 resources ResourceRequirements, 21
  nodeAllocatableResourceClaimStatuses NodeAllocatableResourceClaimStatus[]
PodTemplate: 1 metadata ObjectMeta, 2 template PodTemplateSpec
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PortStatus: 1 port int, 2 protocol, 3 error
Preconditions: 1 uid, 2 resourceVersion
PreferredSchedulingTerm: 1 weight int, 2 preference NodeSelectorTerm
Probe: 1 ~handler ProbeHandler, 2 ?initialDelaySeconds int, 3 ?timeoutSeconds int, 4 ?periodSeconds int, 5
  ?successThreshold int, 6 ?failureThreshold int, 7 terminationGracePeriodSeconds int
ProbeHandler: 1 exec ExecAction, 2 httpGet HTTPGetAction, 3 tcpSocket TCPSocketAction, 4 grpc GRPCAction
ProjectedVolumeSource: 1 sources VolumeProjection[], 2 defaultMode int
ReplicationController: 1 metadata ObjectMeta, 2 spec ReplicationControllerSpec, 3 status ReplicationControllerStatus
ReplicationControllerCondition: 1 type, 2 status, 3 lastTransitionTime Time, 4 reason, 5 message
ReplicationControllerSpec: 1 replicas int, 2 selector map, 3 template PodTemplateSpec, 4 ?minReadySeconds int
ReplicationControllerStatus: 1 replicas int, 2 ?fullyLabeledReplicas int, 3 ?observedGeneration int, 4 ?readyReplicas
  int, 5 ?availableReplicas int, 6 conditions ReplicationControllerCondition[]
ResourceClaim: 1 name, 2 request
ResourceFieldSelector: 1 containerName, 2 resource, 3 divisor Quantity
ResourceHealth: 1 resourceID, 2 health, 6 message
ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status ResourceQuotaStatus
ResourceQuotaSpec: 1 hard map Quantity, 2 scopes string[], 3 scopeSelector ScopeSelector
ResourceQuotaStatus: 1 hard map Quantity, 2 used map Quantity
ResourceRequirements: 1 limits map Quantity, 2 requests map Quantity, 3 claims ResourceClaim[]
ResourceStatus: 1 name, 2 resources ResourceHealth[]
SELinuxOptions: 1 user, 2 role, 3 type, 4 level
ScopeSelector: 1 matchExpressions ScopedResourceSelectorRequirement[]
ScopedResourceSelectorRequirement: 1 scopeName, 2 operator, 3 values string[]
SeccompProfile: 1 type, 2 localhostProfile
Secret: 1 metadata ObjectMeta, 2 data map bytes, 3 type, 4 stringData map, 5 immutable bool
SecretEnvSource: 1 ~localObjectReference LocalObjectReference, 2 optional bool
SecretKeySelector: 1 ~localObjectReference LocalObjectReference, 2 key, 3 optional bool
SecretProjection: 1 ~localObjectReference LocalObjectReference, 2 items KeyToPath[], 4 optional bool
SecretReference: 1 name, 2 namespace
SecretVolumeSource: 1 secretName, 2 items KeyToPath[], 3 defaultMode int, 4 optional bool
SecurityContext: 1 capabilities Capabilities, 2 privileged bool, 3 seLinuxOptions SELinuxOptions, 4 runAsUser int, 5
  runAsNonRoot bool, 6 readOnlyRootFilesystem bool, 7 allowPrivilegeEscalation bool, 8 runAsGroup int, 9 procMount, 10
  windowsOptions WindowsSecurityContextOptions, 11 seccompProfile SeccompProfile, 12 appArmorProfile AppArmorProfile
Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus
ServiceAccount: 1 metadata ObjectMeta, 2 secrets ObjectReference[], 3 imagePullSecrets LocalObjectReference[], 4
  automountServiceAccountToken bool
ServiceAccountTokenProjection: 1 audience, 2 expirationSeconds int, 3 path
ServicePort: 1 name, 2 protocol, 3 port int, 4 targetPort IntOrString, 5 ?nodePort int, 6 appProtocol
ServiceSpec: 1 ports ServicePort[], 2 selector map, 3 clusterIP, 4 type, 5 externalIPs string[], 7 sessionAffinity, 8
  loadBalancerIP, 9 loadBalancerSourceRanges string[], 10 externalName, 11 externalTrafficPolicy, 12
  healthCheckNodePort int, 13 ?publishNotReadyAddresses bool, 14 sessionAffinityConfig SessionAffinityConfig, 17
  ipFamilyPolicy, 18 clusterIPs string[], 19 ipFamilies string[], 20 allocateLoadBalancerNodePorts bool, 21
  loadBalancerClass, 22 internalTrafficPolicy, 23 trafficDistribution
ServiceStatus: 1 loadBalancer LoadBalancerStatus, 2 conditions Condition[]
SessionAffinityConfig: 1 clientIP ClientIPConfig
SleepAction: 1 seconds int
Sysctl: 1 name, 2 value
TCPSocketAction: 1 port IntOrString, 2 host
Taint: 1 key, 2 value, 3 effect, 4 timeAdded Time
Toleration: 1 key, 2 operator, 3 value, 4 effect, 5 tolerationSeconds int
TopologySelectorLabelRequirement: 1 key, 2 values string[]
TopologySelectorTerm: 1 matchLabelExpressions TopologySelectorLabelRequirement[]
TopologySpreadConstraint: 1 maxSkew int, 2 topologyKey, 3 whenUnsatisfiable, 4 labelSelector LabelSelector, 5
  minDomains int, 6 nodeAffinityPolicy, 7 nodeTaintsPolicy, 8 matchLabelKeys string[]
TypedLocalObjectReference: 1 apiGroup, 2 kind, 3 name
TypedObjectReference: 1 apiGroup, 2 kind, 3 name, 4 namespace
Volume: 1 name, 2 ~volumeSource VolumeSource
VolumeDevice: 1 name, 2 devicePath
VolumeMount: 1 name, 2 ?readOnly bool, 3 mountPath, 4 subPath, 5 mountPropagation, 6 subPathExpr, 7 recursiveReadOnly
VolumeMountStatus: 1 name, 2 mountPath, 3 ?readOnly bool, 4 recursiveReadOnly, 5 volumeStatus VolumeStatus
VolumeNodeAffinity: 1 required NodeSelector
VolumeProjection: 1 secret SecretProjection, 2 downwardAPI DownwardAPIProjection, 3 configMap ConfigMapProjection, 4
  serviceAccountToken ServiceAccountTokenProjection, 5 clusterTrustBundle ClusterTrustBundleProjection, 6
  podCertificate PodCertificateProjection
VolumeResourceRequirements: 1 limits map Quantity, 2 requests map Quantity
VolumeSource: 1 hostPath HostPathVolumeSource, 2 emptyDir EmptyDirVolumeSource, 6 secret SecretVolumeSource, 7 nfs
  NFSVolumeSource, 10 persistentVolumeClaim PersistentVolumeClaimVolumeSource, 16 downwardAPI DownwardAPIVolumeSource,
  19 configMap ConfigMapVolumeSource, 26 projected ProjectedVolumeSource, 28 csi CSIVolumeSource, 29 ephemeral
  EphemeralVolumeSource, 30 image ImageVolumeSource
VolumeStatus: 1 image ImageVolumeStatus
WeightedPodAffinityTerm: 1 weight int, 2 podAffinityTerm PodAffinityTerm
WindowsSecurityContextOptions: 1 gmsaCredentialSpecName, 2 gmsaCredentialSpec, 3 runAsUserName, 4 hostProcess bool
admissionregistration.AuditAnnotation: 1 key, 2 valueExpression
admissionregistration.ExpressionWarning: 2 fieldRef, 3 warning
admissionregistration.MatchCondition: 1 name, 2 expression
admissionregistration.MatchResources: 1 namespaceSelector LabelSelector, 2 objectSelector LabelSelector, 3
  resourceRules admissionregistration.NamedRuleWithOperations[], 4 excludeResourceRules
  admissionregistration.NamedRuleWithOperations[], 7 matchPolicy
admissionregistration.MutatingWebhook: 1 name, 2 clientConfig admissionregistration.WebhookClientConfig, 3 rules
  admissionregistration.RuleWithOperations[], 4 failurePolicy, 5 namespaceSelector LabelSelector, 6 sideEffects, 7
  timeoutSeconds int, 8 admissionReviewVersions string[], 9 matchPolicy, 10 reinvocationPolicy, 11 objectSelector
  LabelSelector, 12 matchConditions admissionregistration.MatchCondition[]
admissionregistration.MutatingWebhookConfiguration: 1 metadata ObjectMeta, 2 Webhooks
  admissionregistration.MutatingWebhook[]
admissionregistration.NamedRuleWithOperations: 1 resourceNames string[], 2 ~ruleWithOperations
  admissionregistration.RuleWithOperations
admissionregistration.ParamKind: 1 apiVersion, 2 kind
admissionregistration.ParamRef: 1 name, 2 namespace, 3 selector LabelSelector, 4 parameterNotFoundAction
admissionregistration.Rule: 1 apiGroups string[], 2 apiVersions string[], 3 resources string[], 4 scope
admissionregistration.RuleWithOperations: 1 operations string[], 2 ~rule admissionregistration.Rule
admissionregistration.ServiceReference: 1 namespace, 2 name, 3 path, 4 port int
admissionregistration.TypeChecking: 1 expressionWarnings admissionregistration.ExpressionWarning[]
admissionregistration.ValidatingAdmissionPolicy: 1 metadata ObjectMeta, 2 spec
  admissionregistration.ValidatingAdmissionPolicySpec, 3 status admissionregistration.ValidatingAdmissionPolicyStatus
admissionregistration.ValidatingAdmissionPolicyBinding: 1 metadata ObjectMeta, 2 spec
  admissionregistration.ValidatingAdmissionPolicyBindingSpec
admissionregistration.ValidatingAdmissionPolicyBindingSpec: 1 policyName, 2 paramRef admissionregistration.ParamRef, 3
  matchResources admissionregistration.MatchResources, 4 validationActions string[]
admissionregistration.ValidatingAdmissionPolicySpec: 1 paramKind admissionregistration.ParamKind, 2 matchConstraints
  admissionregistration.MatchResources, 3 validations admissionregistration.Validation[], 4 failurePolicy, 5
  auditAnnotations admissionregistration.AuditAnnotation[], 6 matchConditions admissionregistration.MatchCondition[],
  7 variables admissionregistration.Variable[]
admissionregistration.ValidatingAdmissionPolicyStatus: 1 ?observedGeneration int, 2 typeChecking
  admissionregistration.TypeChecking, 3 conditions Condition[]
admissionregistration.ValidatingWebhook: 1 name, 2 clientConfig admissionregistration.WebhookClientConfig, 3 rules
  admissionregistration.RuleWithOperations[], 4 failurePolicy, 5 namespaceSelector LabelSelector, 6 sideEffects, 7
  timeoutSeconds int, 8 admissionReviewVersions string[], 9 matchPolicy, 10 objectSelector LabelSelector, 11
  matchConditions admissionregistration.MatchCondition[]
admissionregistration.ValidatingWebhookConfiguration: 1 metadata ObjectMeta, 2 Webhooks
  admissionregistration.ValidatingWebhook[]
admissionregistration.Validation: 1 Expression, 2 message, 3 reason, 4 messageExpression
admissionregistration.Variable: 1 Name, 2 Expression
admissionregistration.WebhookClientConfig: 1 service admissionregistration.ServiceReference, 2 caBundle bytes, 3 url
apps.ControllerRevision: 1 metadata ObjectMeta, 2 data RawExtension, 3 revision int
apps.DaemonSet: 1 metadata ObjectMeta, 2 spec apps.DaemonSetSpec, 3 status apps.DaemonSetStatus
apps.DaemonSetCondition: 1 type, 2 status, 3 lastTransitionTime Time, 4 reason, 5 message
apps.DaemonSetSpec: 1 selector LabelSelector, 2 template PodTemplateSpec, 3 updateStrategy
  apps.DaemonSetUpdateStrategy, 4 ?minReadySeconds int, 6 revisionHistoryLimit int
apps.DaemonSetStatus: 1 currentNumberScheduled int, 2 numberMisscheduled int, 3 desiredNumberScheduled int, 4
  numberReady int, 5 ?observedGeneration int, 6 ?updatedNumberScheduled int, 7 ?numberAvailable int, 8
  ?numberUnavailable int, 9 collisionCount int, 10 conditions apps.DaemonSetCondition[]
apps.DaemonSetUpdateStrategy: 1 type, 2 rollingUpdate apps.RollingUpdateDaemonSet
apps.Deployment: 1 metadata ObjectMeta, 2 spec apps.DeploymentSpec, 3 status apps.DeploymentStatus
apps.DeploymentCondition: 1 type, 2 status, 4 reason, 5 message, 6 lastUpdateTime Time, 7 lastTransitionTime Time
apps.DeploymentSpec: 1 replicas int, 2 selector LabelSelector, 3 template PodTemplateSpec, 4 strategy
  apps.DeploymentStrategy, 5 ?minReadySeconds int, 6 revisionHistoryLimit int, 7 ?paused bool, 9
  progressDeadlineSeconds int
apps.DeploymentStatus: 1 ?observedGeneration int, 2 ?replicas int, 3 ?updatedReplicas int, 4 ?availableReplicas int, 5
  ?unavailableReplicas int, 6 conditions apps.DeploymentCondition[], 7 ?readyReplicas int, 8 collisionCount int, 9
  terminatingReplicas int
apps.DeploymentStrategy: 1 type, 2 rollingUpdate apps.RollingUpdateDeployment
apps.ReplicaSet: 1 metadata ObjectMeta, 2 spec apps.ReplicaSetSpec, 3 status apps.ReplicaSetStatus
apps.ReplicaSetCondition: 1 type, 2 status, 3 lastTransitionTime Time, 4 reason, 5 message
apps.ReplicaSetSpec: 1 replicas int, 2 selector LabelSelector, 3 template PodTemplateSpec, 4 ?minReadySeconds int
apps.ReplicaSetStatus: 1 replicas int, 2 ?fullyLabeledReplicas int, 3 ?observedGeneration int, 4 ?readyReplicas int, 5
  ?availableReplicas int, 6 conditions apps.ReplicaSetCondition[], 7 terminatingReplicas int
apps.RollingUpdateDaemonSet: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
apps.RollingUpdateDeployment: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
apps.RollingUpdateStatefulSetStrategy: 1 partition int, 2 maxUnavailable IntOrString
apps.StatefulSet: 1 metadata ObjectMeta, 2 spec apps.StatefulSetSpec, 3 status apps.StatefulSetStatus
apps.StatefulSetCondition: 1 type, 2 status, 3 lastTransitionTime Time, 4 reason, 5 message
apps.StatefulSetOrdinals: 1 start int
apps.StatefulSetPersistentVolumeClaimRetentionPolicy: 1 whenDeleted, 2 whenScaled
apps.StatefulSetSpec: 1 replicas int, 2 selector LabelSelector, 3 template PodTemplateSpec, 4 volumeClaimTemplates
  PersistentVolumeClaim[], 5 serviceName, 6 podManagementPolicy, 7 updateStrategy apps.StatefulSetUpdateStrategy, 8
  revisionHistoryLimit int, 9 ?minReadySeconds int, 10 persistentVolumeClaimRetentionPolicy
  apps.StatefulSetPersistentVolumeClaimRetentionPolicy, 11 ordinals apps.StatefulSetOrdinals
apps.StatefulSetStatus: 1 ?observedGeneration int, 2 replicas int, 3 ?readyReplicas int, 4 ?currentReplicas int, 5
  ?updatedReplicas int, 6 currentRevision, 7 updateRevision, 9 collisionCount int, 10 conditions
  apps.StatefulSetCondition[], 11 availableReplicas int
apps.StatefulSetUpdateStrategy: 1 type, 2 rollingUpdate apps.RollingUpdateStatefulSetStrategy
authentication.ExtraValue: 1 items string[]
authentication.SelfSubjectReview: 1 metadata ObjectMeta, 2 status authentication.SelfSubjectReviewStatus
authentication.SelfSubjectReviewStatus: 1 userInfo authentication.UserInfo
authentication.UserInfo: 1 username, 2 uid, 3 groups string[], 4 extra map authentication.ExtraValue
authorization.FieldSelectorAttributes: 1 rawSelector, 2 requirements FieldSelectorRequirement[]
authorization.LabelSelectorAttributes: 1 rawSelector, 2 requirements LabelSelectorRequirement[]
authorization.NonResourceAttributes: 1 path, 2 verb
authorization.NonResourceRule: 1 verbs string[], 2 nonResourceURLs string[]
authorization.ResourceAttributes: 1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name, 8
  fieldSelector authorization.FieldSelectorAttributes, 9 labelSelector authorization.LabelSelectorAttributes
authorization.ResourceRule: 1 verbs string[], 2 apiGroups string[], 3 resources string[], 4 resourceNames string[]
authorization.SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec authorization.SelfSubjectAccessReviewSpec, 3
  status authorization.SubjectAccessReviewStatus
authorization.SelfSubjectAccessReviewSpec: 1 resourceAttributes authorization.ResourceAttributes, 2
  nonResourceAttributes authorization.NonResourceAttributes
authorization.SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec authorization.SelfSubjectRulesReviewSpec, 3 status
  authorization.SubjectRulesReviewStatus
authorization.SelfSubjectRulesReviewSpec: 1 namespace
authorization.SubjectAccessReviewStatus: 1 allowed bool, 2 reason, 3 evaluationError, 4 ?denied bool
authorization.SubjectRulesReviewStatus: 1 resourceRules authorization.ResourceRule[], 2 nonResourceRules
  authorization.NonResourceRule[], 3 incomplete bool, 4 evaluationError
autoscaling.ContainerResourceMetricSource: 1 name, 2 target autoscaling.MetricTarget, 3 container
autoscaling.ContainerResourceMetricStatus: 1 name, 2 current autoscaling.MetricValueStatus, 3 container
autoscaling.CrossVersionObjectReference: 1 kind, 2 name, 3 apiVersion
autoscaling.ExternalMetricSource: 1 metric autoscaling.MetricIdentifier, 2 target autoscaling.MetricTarget
autoscaling.ExternalMetricStatus: 1 metric autoscaling.MetricIdentifier, 2 current autoscaling.MetricValueStatus
autoscaling.HPAScalingPolicy: 1 type, 2 value int, 3 periodSeconds int
autoscaling.HPAScalingRules: 1 selectPolicy, 2 policies autoscaling.HPAScalingPolicy[], 3 stabilizationWindowSeconds
  int, 4 tolerance Quantity
autoscaling.HorizontalPodAutoscaler: 1 metadata ObjectMeta, 2 spec autoscaling.HorizontalPodAutoscalerSpec, 3 status
  autoscaling.HorizontalPodAutoscalerStatus
autoscaling.HorizontalPodAutoscalerBehavior: 1 scaleUp autoscaling.HPAScalingRules, 2 scaleDown
  autoscaling.HPAScalingRules
autoscaling.HorizontalPodAutoscalerCondition: 1 type, 2 status, 3 lastTransitionTime Time, 4 reason, 5 message
autoscaling.HorizontalPodAutoscalerSpec: 1 scaleTargetRef autoscaling.CrossVersionObjectReference, 2 minReplicas int,
  3 maxReplicas int, 4 metrics autoscaling.MetricSpec[], 5 behavior autoscaling.HorizontalPodAutoscalerBehavior
autoscaling.HorizontalPodAutoscalerStatus: 1 observedGeneration int, 2 lastScaleTime Time, 3 ?currentReplicas int, 4
  desiredReplicas int, 5 currentMetrics autoscaling.MetricStatus[], 6 conditions
  autoscaling.HorizontalPodAutoscalerCondition[]
autoscaling.MetricIdentifier: 1 name, 2 selector LabelSelector
autoscaling.MetricSpec: 1 type, 2 object autoscaling.ObjectMetricSource, 3 pods autoscaling.PodsMetricSource, 4
  resource autoscaling.ResourceMetricSource, 5 external autoscaling.ExternalMetricSource, 7 containerResource
  autoscaling.ContainerResourceMetricSource
autoscaling.MetricStatus: 1 type, 2 object autoscaling.ObjectMetricStatus, 3 pods autoscaling.PodsMetricStatus, 4
  resource autoscaling.ResourceMetricStatus, 5 external autoscaling.ExternalMetricStatus, 7 containerResource
  autoscaling.ContainerResourceMetricStatus
autoscaling.MetricTarget: 1 type, 2 value Quantity, 3 averageValue Quantity, 4 averageUtilization int
autoscaling.MetricValueStatus: 1 value Quantity, 2 averageValue Quantity, 3 averageUtilization int
autoscaling.ObjectMetricSource: 1 describedObject autoscaling.CrossVersionObjectReference, 2 target
  autoscaling.MetricTarget, 3 metric autoscaling.MetricIdentifier
autoscaling.ObjectMetricStatus: 1 metric autoscaling.MetricIdentifier, 2 current autoscaling.MetricValueStatus, 3
  describedObject autoscaling.CrossVersionObjectReference
autoscaling.PodsMetricSource: 1 metric autoscaling.MetricIdentifier, 2 target autoscaling.MetricTarget
autoscaling.PodsMetricStatus: 1 metric autoscaling.MetricIdentifier, 2 current autoscaling.MetricValueStatus
autoscaling.ResourceMetricSource: 1 name, 2 target autoscaling.MetricTarget
autoscaling.ResourceMetricStatus: 1 name, 2 current autoscaling.MetricValueStatus
autoscaling.v1.CrossVersionObjectReference: 1 kind, 2 name, 3 apiVersion
autoscaling.v1.HorizontalPodAutoscaler: 1 metadata ObjectMeta, 2 spec autoscaling.v1.HorizontalPodAutoscalerSpec, 3
  status autoscaling.v1.HorizontalPodAutoscalerStatus
autoscaling.v1.HorizontalPodAutoscalerSpec: 1 scaleTargetRef autoscaling.v1.CrossVersionObjectReference, 2 minReplicas
  int, 3 maxReplicas int, 4 targetCPUUtilizationPercentage int
autoscaling.v1.HorizontalPodAutoscalerStatus: 1 observedGeneration int, 2 lastScaleTime Time, 3 currentReplicas int, 4
  desiredReplicas int, 5 currentCPUUtilizationPercentage int
batch.CronJob: 1 metadata ObjectMeta, 2 spec batch.CronJobSpec, 3 status batch.CronJobStatus
batch.CronJobSpec: 1 schedule, 2 startingDeadlineSeconds int, 3 concurrencyPolicy, 4 suspend bool, 5 jobTemplate
  batch.JobTemplateSpec, 6 successfulJobsHistoryLimit int, 7 failedJobsHistoryLimit int, 8 timeZone
batch.CronJobStatus: 1 active ObjectReference[], 4 lastScheduleTime Time, 5 lastSuccessfulTime Time
batch.Job: 1 metadata ObjectMeta, 2 spec batch.JobSpec, 3 status batch.JobStatus
batch.JobCondition: 1 type, 2 status, 3 lastProbeTime Time, 4 lastTransitionTime Time, 5 reason, 6 message
batch.JobSpec: 1 parallelism int, 2 completions int, 3 activeDeadlineSeconds int, 4 selector LabelSelector, 5
  manualSelector bool, 6 template PodTemplateSpec, 7 backoffLimit int, 8 ttlSecondsAfterFinished int, 9
  completionMode, 10 suspend bool, 11 podFailurePolicy batch.PodFailurePolicy, 12 backoffLimitPerIndex int, 13
  maxFailedIndexes int, 14 podReplacementPolicy, 15 managedBy, 16 successPolicy batch.SuccessPolicy
batch.JobStatus: 1 conditions batch.JobCondition[], 2 startTime Time, 3 completionTime Time, 4 ?active int, 5
  ?succeeded int, 6 ?failed int, 7 completedIndexes, 8 uncountedTerminatedPods batch.UncountedTerminatedPods, 9 ready
  int, 10 failedIndexes, 11 terminating int
batch.JobTemplateSpec: 1 metadata ObjectMeta, 2 spec batch.JobSpec
batch.PodFailurePolicy: 1 rules batch.PodFailurePolicyRule[]
batch.PodFailurePolicyOnExitCodesRequirement: 1 containerName, 2 operator, 3 values int[]
batch.PodFailurePolicyOnPodConditionsPattern: 1 type, 2 status
batch.PodFailurePolicyRule: 1 action, 2 onExitCodes batch.PodFailurePolicyOnExitCodesRequirement, 3 onPodConditions
  batch.PodFailurePolicyOnPodConditionsPattern[]
batch.SuccessPolicy: 1 rules batch.SuccessPolicyRule[]
batch.SuccessPolicyRule: 1 succeededIndexes, 2 succeededCount int
batch.UncountedTerminatedPods: 1 succeeded string[], 2 failed string[]
coordination.Lease: 1 metadata ObjectMeta, 2 spec coordination.LeaseSpec
coordination.LeaseSpec: 1 holderIdentity, 2 leaseDurationSeconds int, 3 acquireTime MicroTime, 4 renewTime MicroTime,
  5 leaseTransitions int, 6 strategy, 7 preferredHolder
discovery.Endpoint: 1 addresses string[], 2 conditions discovery.EndpointConditions, 3 hostname, 4 targetRef
  ObjectReference, 5 deprecatedTopology map, 6 nodeName, 7 zone, 8 hints discovery.EndpointHints
discovery.EndpointConditions: 1 ready bool, 2 serving bool, 3 terminating bool
discovery.EndpointHints: 1 forZones discovery.ForZone[], 2 forNodes discovery.ForNode[]
discovery.EndpointPort: 1 name, 2 protocol, 3 port int, 4 appProtocol
discovery.EndpointSlice: 1 metadata ObjectMeta, 2 endpoints discovery.Endpoint[], 3 ports discovery.EndpointPort[], 4
  addressType
discovery.ForNode: 1 name
discovery.ForZone: 1 name
events.Event: 1 metadata ObjectMeta, 2 eventTime MicroTime, 3 series events.EventSeries, 4 reportingController, 5
  reportingInstance, 6 action, 7 reason, 8 regarding ObjectReference, 9 related ObjectReference, 10 note, 11 type, 12
  deprecatedSource EventSource, 13 deprecatedFirstTimestamp Time, 14 deprecatedLastTimestamp Time, 15 ?deprecatedCount
  int
events.EventSeries: 1 count int, 2 lastObservedTime MicroTime
networking.HTTPIngressPath: 1 path, 2 backend networking.IngressBackend, 3 pathType
networking.HTTPIngressRuleValue: 1 paths networking.HTTPIngressPath[]
networking.IPBlock: 1 cidr, 2 except string[]
networking.Ingress: 1 metadata ObjectMeta, 2 spec networking.IngressSpec, 3 status networking.IngressStatus
networking.IngressBackend: 3 resource TypedLocalObjectReference, 4 service networking.IngressServiceBackend
networking.IngressClass: 1 metadata ObjectMeta, 2 spec networking.IngressClassSpec
networking.IngressClassParametersReference: 1 aPIGroup, 2 kind, 3 name, 4 scope, 5 namespace
networking.IngressClassSpec: 1 controller, 2 parameters networking.IngressClassParametersReference
networking.IngressLoadBalancerIngress: 1 ip, 2 hostname, 4 ports networking.IngressPortStatus[]
networking.IngressLoadBalancerStatus: 1 ingress networking.IngressLoadBalancerIngress[]
networking.IngressPortStatus: 1 port int, 2 protocol, 3 error
networking.IngressRule: 1 host, 2 ~ingressRuleValue networking.IngressRuleValue
networking.IngressRuleValue: 1 http networking.HTTPIngressRuleValue
networking.IngressServiceBackend: 1 name, 2 port networking.ServiceBackendPort
networking.IngressSpec: 1 defaultBackend networking.IngressBackend, 2 tls networking.IngressTLS[], 3 rules
  networking.IngressRule[], 4 ingressClassName
networking.IngressStatus: 1 loadBalancer networking.IngressLoadBalancerStatus
networking.IngressTLS: 1 hosts string[], 2 secretName
networking.NetworkPolicy: 1 metadata ObjectMeta, 2 spec networking.NetworkPolicySpec
networking.NetworkPolicyEgressRule: 1 ports networking.NetworkPolicyPort[], 2 to networking.NetworkPolicyPeer[]
networking.NetworkPolicyIngressRule: 1 ports networking.NetworkPolicyPort[], 2 from networking.NetworkPolicyPeer[]
networking.NetworkPolicyPeer: 1 podSelector LabelSelector, 2 namespaceSelector LabelSelector, 3 ipBlock
  networking.IPBlock
networking.NetworkPolicyPort: 1 protocol, 2 port IntOrString, 3 endPort int
networking.NetworkPolicySpec: 1 podSelector LabelSelector, 2 ingress networking.NetworkPolicyIngressRule[], 3 egress
  networking.NetworkPolicyEgressRule[], 4 policyTypes string[]
networking.ServiceBackendPort: 1 name, 2 number int
node.Overhead: 1 podFixed map Quantity
node.RuntimeClass: 1 metadata ObjectMeta, 2 handler, 3 overhead node.Overhead, 4 scheduling node.Scheduling
node.Scheduling: 1 nodeSelector map, 2 tolerations Toleration[]
policy.Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
policy.PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec policy.PodDisruptionBudgetSpec, 3 status
  policy.PodDisruptionBudgetStatus
policy.PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector, 3 maxUnavailable IntOrString, 4
  unhealthyPodEvictionPolicy
policy.PodDisruptionBudgetStatus: 1 ?observedGeneration int, 2 disruptedPods map Time, 3 disruptionsAllowed int, 4
  currentHealthy int, 5 desiredHealthy int, 6 expectedPods int, 7 conditions Condition[]
rbac.AggregationRule: 1 clusterRoleSelectors LabelSelector[]
rbac.ClusterRole: 1 metadata ObjectMeta, 2 rules rbac.PolicyRule[], 3 aggregationRule rbac.AggregationRule
rbac.ClusterRoleBinding: 1 metadata ObjectMeta, 2 subjects rbac.Subject[], 3 roleRef rbac.RoleRef
rbac.PolicyRule: 1 verbs string[], 2 apiGroups string[], 3 resources string[], 4 resourceNames string[], 5
  nonResourceURLs string[]
rbac.Role: 1 metadata ObjectMeta, 2 rules rbac.PolicyRule[]
rbac.RoleBinding: 1 metadata ObjectMeta, 2 subjects rbac.Subject[], 3 roleRef rbac.RoleRef
rbac.RoleRef: 1 apiGroup, 2 kind, 3 name
rbac.Subject: 1 kind, 2 apiGroup, 3 name, 4 namespace
resource.AllocatedDeviceStatus: 1 driver, 2 pool, 3 device, 4 conditions Condition[], 5 data RawExtension, 6
  networkData resource.NetworkDeviceData, 7 shareID
resource.AllocationResult: 1 devices resource.DeviceAllocationResult, 3 nodeSelector NodeSelector, 5
  allocationTimestamp Time
resource.CELDeviceSelector: 1 expression
resource.CapacityRequestPolicy: 1 default Quantity, 3 validValues Quantity[], 4 validRange
  resource.CapacityRequestPolicyRange
resource.CapacityRequestPolicyRange: 1 min Quantity, 2 max Quantity, 3 step Quantity
resource.CapacityRequirements: 1 requests map Quantity
resource.Counter: 1 value Quantity
resource.CounterSet: 1 name, 2 counters map resource.Counter
resource.Device: 1 name, 2 attributes map resource.DeviceAttribute, 3 capacity map resource.DeviceCapacity, 4
  consumesCounters resource.DeviceCounterConsumption[], 5 nodeName, 6 nodeSelector NodeSelector, 7 allNodes bool, 8
  taints resource.DeviceTaint[], 9 bindsToNode bool, 10 bindingConditions string[], 11 bindingFailureConditions
  string[], 12 allowMultipleAllocations bool, 13 nodeAllocatableResourceMappings map
  resource.NodeAllocatableResourceMapping
resource.DeviceAllocationConfiguration: 1 source, 2 requests string[], 3 ~deviceConfiguration
  resource.DeviceConfiguration
resource.DeviceAllocationResult: 1 results resource.DeviceRequestAllocationResult[], 2 config
  resource.DeviceAllocationConfiguration[]
resource.DeviceAttribute: 2 int int, 3 bool bool, 4 string, 5 version, 6 ints int[], 7 bools bool[], 8 strings
  string[], 9 versions string[]
resource.DeviceCapacity: 1 value Quantity, 2 requestPolicy resource.CapacityRequestPolicy
resource.DeviceClaim: 1 requests resource.DeviceRequest[], 2 constraints resource.DeviceConstraint[], 3 config
  resource.DeviceClaimConfiguration[]
resource.DeviceClaimConfiguration: 1 requests string[], 2 ~deviceConfiguration resource.DeviceConfiguration
resource.DeviceClass: 1 metadata ObjectMeta, 2 spec resource.DeviceClassSpec
resource.DeviceClassConfiguration: 1 ~deviceConfiguration resource.DeviceConfiguration
resource.DeviceClassSpec: 1 selectors resource.DeviceSelector[], 2 config resource.DeviceClassConfiguration[], 4
  extendedResourceName
resource.DeviceConfiguration: 1 opaque resource.OpaqueDeviceConfiguration
resource.DeviceConstraint: 1 requests string[], 2 matchAttribute, 3 distinctAttribute
resource.DeviceCounterConsumption: 1 counterSet, 2 counters map resource.Counter
resource.DeviceRequest: 1 name, 2 exactly resource.ExactDeviceRequest, 3 firstAvailable resource.DeviceSubRequest[]
resource.DeviceRequestAllocationResult: 1 request, 2 driver, 3 pool, 4 device, 5 adminAccess bool, 6 tolerations
  resource.DeviceToleration[], 7 bindingConditions string[], 8 bindingFailureConditions string[], 9 shareID, 10
  consumedCapacity map Quantity
resource.DeviceSelector: 1 cel resource.CELDeviceSelector
resource.DeviceSubRequest: 1 name, 2 deviceClassName, 3 selectors resource.DeviceSelector[], 4 allocationMode, 5 count
  int, 6 tolerations resource.DeviceToleration[], 7 capacity resource.CapacityRequirements
resource.DeviceTaint: 1 key, 2 value, 3 effect, 4 timeAdded Time
resource.DeviceToleration: 1 key, 2 operator, 3 value, 4 effect, 5 tolerationSeconds int
resource.ExactDeviceRequest: 1 deviceClassName, 2 selectors resource.DeviceSelector[], 3 allocationMode, 4 count int,
  5 adminAccess bool, 6 tolerations resource.DeviceToleration[], 7 capacity resource.CapacityRequirements
resource.NetworkDeviceData: 1 interfaceName, 2 ips string[], 3 hardwareAddress
resource.NodeAllocatableResourceMapping: 1 capacityKey, 2 allocationMultiplier Quantity
resource.OpaqueDeviceConfiguration: 1 driver, 2 parameters RawExtension
resource.ResourceClaim: 1 metadata ObjectMeta, 2 spec resource.ResourceClaimSpec, 3 status
  resource.ResourceClaimStatus
resource.ResourceClaimConsumerReference: 1 apiGroup, 3 resource, 4 name, 5 uid
resource.ResourceClaimSpec: 1 devices resource.DeviceClaim
resource.ResourceClaimStatus: 1 allocation resource.AllocationResult, 2 reservedFor
  resource.ResourceClaimConsumerReference[], 4 devices resource.AllocatedDeviceStatus[]
resource.ResourceClaimTemplate: 1 metadata ObjectMeta, 2 spec resource.ResourceClaimTemplateSpec
resource.ResourceClaimTemplateSpec: 1 metadata ObjectMeta, 2 spec resource.ResourceClaimSpec
resource.ResourcePool: 1 name, 2 generation int, 3 resourceSliceCount int
resource.ResourceSlice: 1 metadata ObjectMeta, 2 spec resource.ResourceSliceSpec
resource.ResourceSliceSpec: 1 driver, 2 pool resource.ResourcePool, 3 nodeName, 4 nodeSelector NodeSelector, 5
  allNodes bool, 6 devices resource.Device[], 7 perDeviceNodeSelection bool, 8 sharedCounters resource.CounterSet[]
scheduling.PriorityClass: 1 metadata ObjectMeta, 2 value int, 3 globalDefault bool, 4 description, 5 preemptionPolicy
storage.CSIDriver: 1 metadata ObjectMeta, 2 spec storage.CSIDriverSpec
storage.CSIDriverSpec: 1 attachRequired bool, 2 podInfoOnMount bool, 3 volumeLifecycleModes string[], 4
  storageCapacity bool, 5 fsGroupPolicy, 6 tokenRequests storage.TokenRequest[], 7 requiresRepublish bool, 8
  seLinuxMount bool, 9 nodeAllocatableUpdatePeriodSeconds int, 10 serviceAccountTokenInSecrets bool, 11
  preventPodSchedulingIfMissing bool
storage.CSINode: 1 metadata ObjectMeta, 2 spec storage.CSINodeSpec
storage.CSINodeDriver: 1 name, 2 nodeID, 3 topologyKeys string[], 4 allocatable storage.VolumeNodeResources
storage.CSINodeSpec: 1 drivers storage.CSINodeDriver[]
storage.CSIStorageCapacity: 1 metadata ObjectMeta, 2 nodeTopology LabelSelector, 3 storageClassName, 4 capacity
  Quantity, 5 maximumVolumeSize Quantity
storage.StorageClass: 1 metadata ObjectMeta, 2 provisioner, 3 parameters map, 4 reclaimPolicy, 5 mountOptions
  string[], 6 allowVolumeExpansion bool, 7 volumeBindingMode, 8 allowedTopologies TopologySelectorTerm[]
storage.TokenRequest: 1 audience, 2 expirationSeconds int
storage.VolumeAttachment: 1 metadata ObjectMeta, 2 spec storage.VolumeAttachmentSpec, 3 status
  storage.VolumeAttachmentStatus
storage.VolumeAttachmentSource: 1 persistentVolumeName, 2 inlineVolumeSpec PersistentVolumeSpec
storage.VolumeAttachmentSpec: 1 attacher, 2 source storage.VolumeAttachmentSource, 3 nodeName
storage.VolumeAttachmentStatus: 1 attached bool, 2 attachmentMetadata map, 3 attachError storage.VolumeError, 4
  detachError storage.VolumeError
storage.VolumeError: 1 time Time, 2 message, 3 errorCode int
storage.VolumeNodeResources: 1 count int
"""
