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
# who needs a place, and where there is one
- apiGroups: [""]
  resources: [pods, nodes]
  verbs: [list, watch]
# the zones that volumes tie pods to
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch]
# the same, how many volumes a node takes, and which are still attached to one that leaves
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
# the pods that come to every new node
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, watch]
# which pods may leave
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{- if .Values.settings.schedulerConfig }}
# kube-scheduler makes the selectors of its default spreads from them
- apiGroups: [""]
  resources: [services, replicationcontrollers]
  verbs: [list, watch]
{{- end }}
{{- if .Values.settings.schedulerConfig }}
# the same
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
{{- end }}
# a NodeClaim for each instance
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [create, patch, delete]
# the hash by which drift is seen, and what failed
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [patch]
# how far it is, and what is wrong
- apiGroups: [karpenter.sh]
  resources: [nodeclaims/status, nodepools/status]
  verbs: [patch]
{{- if .Values.settings.featureGates.nodeOverlay }}
# whether it counts
- apiGroups: [karpenter.sh]
  resources: [nodeoverlays/status]
  verbs: [patch]
{{- end }}
# its finalizer, the hash by which drift is seen, and which of its images are good
- apiGroups: [karpenter.k8s.aws]
  resources: [ec2nodeclasses]
  verbs: [patch]
# what was found for it, and what is wrong
- apiGroups: [karpenter.k8s.aws]
  resources: [ec2nodeclasses/status]
  verbs: [patch]
# labels and taints of its own nodes; the end of those that leave
- apiGroups: [""]
  resources: [nodes]
  verbs: [patch, delete]
# nodes are emptied under PodDisruptionBudgets
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# when the grace period of a node is over
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# what happened and why, on the objects that it is about
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.crds.apply }}
# the leader brings the definitions of the API up to date
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [ec2nodeclasses.karpenter.k8s.aws, nodeclaims.karpenter.sh, nodeoverlays.karpenter.sh, nodepools.karpenter.sh]
  verbs: [create, get, patch]
{{- end }}
{{- end }}
{{- define "joiner.rights.own" }}
# one of the controllers acts
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# the same
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [karpenter-leader-election]
  verbs: [get, update]
# what nodes turned out to have, for the next start
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
# the same
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
# which roles of nodes the cluster lets in, to say why one does not join
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [aws-auth]
  verbs: [get]
{{- end }}
