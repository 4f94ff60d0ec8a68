{{/* Written by go test ./internal/permissions -run TestChart -rewrite: change package permissions, not this file. */}}
{{- define "joiner.rights.cluster" }}
# NodePools define what may be launched
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [list, watch]
# the state of nodes in progress; get bypasses a cache that may be stale
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [get, list, watch]
# prices and sizes that users set; an overlay without effect is reported
- apiGroups: [karpenter.sh]
  resources: [nodeoverlays]
  verbs: [list, watch]
# the settings of instances
- apiGroups: [karpenter.k8s.aws]
  resources: [ec2nodeclasses]
  verbs: [list, watch]
# pending pods, and the free resources of nodes
- apiGroups: [""]
  resources: [pods, nodes]
  verbs: [list, watch]
# the zones to which volumes bind pods
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch]
# the zones of volumes, how many volumes a node can attach, and which volumes are still attached to a terminating node
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, volumeattachments]
  verbs: [list, watch]
# pod affinity selects namespaces by label
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
# its UID identifies this cluster
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
# the DaemonSet pods of every new node
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, watch]
# which pods may be evicted
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{- if .Values.settings.schedulerConfig }}
# kube-scheduler derives the selectors of its default topology spread constraints from them
- apiGroups: [""]
  resources: [services, replicationcontrollers]
  verbs: [list, watch]
{{- end }}
{{- if .Values.settings.schedulerConfig }}
# the selectors of the default topology spread constraints, as for Services
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
{{- end }}
# a NodeClaim for each instance
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [create, patch, delete]
# the hash that shows drift, and failed rollouts
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [patch]
# the progress, and problems
- apiGroups: [karpenter.sh]
  resources: [nodeclaims/status, nodepools/status]
  verbs: [patch]
{{- if .Values.settings.featureGates.nodeOverlay }}
# whether the overlay has an effect
- apiGroups: [karpenter.sh]
  resources: [nodeoverlays/status]
  verbs: [patch]
{{- end }}
# its finalizer, the hash that shows drift, and which of its images are good
- apiGroups: [karpenter.k8s.aws]
  resources: [ec2nodeclasses]
  verbs: [patch]
# the selected AWS resources, and problems
- apiGroups: [karpenter.k8s.aws]
  resources: [ec2nodeclasses/status]
  verbs: [patch]
# labels and taints of its own nodes, and the deletion of terminated nodes
- apiGroups: [""]
  resources: [nodes]
  verbs: [patch, delete]
# the nomination of pods to the nodes that were launched for them
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# the binding of pods to the nodes that were launched for them, before other pods can be bound there
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# the drain of nodes, which honors PodDisruptionBudgets
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# pods that are left when the grace period of a node ends
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# events on the objects of this API, pods and nodes
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.crds.apply }}
# the leader updates the CRDs
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [ec2nodeclasses.karpenter.k8s.aws, nodeclaims.karpenter.sh, nodeoverlays.karpenter.sh, nodepools.karpenter.sh]
  verbs: [create, get, patch]
{{- end }}
{{- end }}
{{- define "joiner.rights.own" }}
# leader election: only one of the controllers acts
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# leader election: the lease of the controller
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [karpenter-leader-election]
  verbs: [get, update]
# the measured sizes of nodes, kept for a restart
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
# the measured sizes of nodes, kept for a restart
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [joiner-measured-capacity]
  verbs: [get, update]
# recent moves of pods, kept for a restart
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [joiner-moves]
  verbs: [get, update]
# whether all NodePools are paused
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [joiner]
  verbs: [get]
{{- end }}
{{- define "joiner.rights.system" }}
# the address of cluster DNS for nodes
- apiGroups: [""]
  resources: [services]
  resourceNames: [kube-dns]
  verbs: [get]
# which node roles aws-auth maps, to explain why a node does not join
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [aws-auth]
  verbs: [get]
{{- end }}
