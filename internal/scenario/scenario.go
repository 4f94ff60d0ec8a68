// Package scenario converts a cluster, its instance types and the expected plan to text and back.
//
// In: the text of a scenario, or a Scenario.
// Out: a Scenario, or its text; each parse error begins with the number of the line.
// Never: access to a file, a decision, or the loss of a field that the format has.
//
// # The format
//
// A line consists of words separated by blanks. The header of a section is not
// indented, its entries are indented by one or two blanks, and the details of an
// entry are indented further. Lines that begin with # before the first section are
// the story. Elsewhere they are comments, which Parse drops. Everything after a
// line "----" is the expected plan.
//
//	# Three small pods share one instance.
//	catalog                                        or: catalog NODECLASS
//	  m7g.large  us-east-1a,us-east-1b on-demand,spot 0.0816 cpu=2 mem=8Gi pods=29 arch=arm64
//	  m7g.large  us-east-1c on-demand 0.09 short   only the first line of a type gives its amounts
//	  m7g.large  us-east-1a reserved 0.00000001 reservation=cr-1 left=3
//	pools
//	  general class=default weight=10 limit:cpu=100 limit:nodes=5 used:cpu=4 used:nodes=1
//	    require karpenter.sh/capacity-type In spot on-demand min=2
//	    label team=a
//	    taint dedicated=gpu:NoSchedule
//	    startup-taint warming:NoExecute
//	    unusable its NodeClass is not ready
//	  varied min-values=best-effort                min= is relaxed if it cannot be met
//	nodes
//	  node-a pool=general cpu=4 mem=16Gi pods=58 used:cpu=1 leaving cordoned joining uninitialized
//	    label topology.kubernetes.io/zone=us-east-1a
//	    taint team=a:NoSchedule
//	    port 8080/TCP
//	    resident app=web,tier=front x2 ns=shop ending           pods that stay on the node; <none> for no labels
//	      apart app=web by kubernetes.io/hostname
//	daemons
//	  kube-system/logs cpu=100m mem=100Mi
//	    tolerate *
//	pods
//	  web x3 cpu=1 mem=2Gi priority=10 owner=ReplicaSet/web     web-1, web-2, web-3 in namespace default
//	    label app=web
//	    require kubernetes.io/arch In arm64                     all lines must hold; "or" begins an alternative
//	    or
//	    require topology.kubernetes.io/zone NotIn us-east-1c
//	    prefer 10 karpenter.sh/capacity-type In spot
//	    spread app=web over topology.kubernetes.io/zone max-skew=2 min-domains=3 soft any-node honor-taints
//	    near app=db,tier in (a,b),!old by topology.kubernetes.io/zone weight=10 ns=data,shop
//	    apart * by kubernetes.io/hostname ns=*
//	    tolerate dedicated=gpu:NoSchedule
//	    port 8080/TCP
//	    volume data                                             an unbound claim that several pods share
//	    unplannable it uses a volume that does not exist
//	solve
//	----
//	buy …
//
// Amounts are Kubernetes quantities. mem is memory, storage is ephemeral-storage,
// and volumes is the number of volumes that the EBS CSI driver can attach. For an
// instance type, cpu=2 is the allocatable amount; capacity:cpu=2 is the capacity,
// if it differs. label:key=value is a label that does not follow from the type's
// name and amounts. The ID of a zone may follow its name: us-east-1a/use1-az1.
// EC2 has no capacity for a short offering. ending residents are terminating.
//
// An offering of a capacity reservation has reservation=ID, and left=N for its N
// unused instances. The type of the reservation may follow the ID:
// reservation=cr-1/capacity-block, reservation=cr-1/default/interruptible.
//
// closed REASON is the same as unusable REASON, but the user has nothing to fix: the pool is static, being deleted or
// of another controller. Below a daemon, pods LABELS gives the labels of its pods, and a line apart … after it gives
// their anti-affinity. solve effort=STEPS limits the work of the plan.
//
// Pods are selected as with kubectl: app=web, app!=web, tier in (a,b), tier notin
// (a,b), app, !app, with commas between terms. * selects every pod, <none> no pod.
//
// spread is a topology spread constraint over the domains of a label. The default
// of max-skew is 1. soft is ScheduleAnyway, any-node is nodeAffinityPolicy Ignore,
// honor-taints is nodeTaintsPolicy Honor.
//
// near is pod affinity and apart is pod anti-affinity, over the domains of a label. With a weight, the term is a
// preference. The term selects pods of the same namespace, unless ns gives other namespaces.
//
// Not in the format: when the snapshot was taken, creation times, UIDs, provider IDs, the pods that a move would evict
// from a node (Node.Pods), types without offerings, and the fields of catalog.Catalog besides Region and Types.
package scenario

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Scenario is the input of a plan, the expected plan, and an explanation of both.
type Scenario struct {
	Story    string           // explanation, without "#"; each line ends with \n
	Snapshot cluster.Snapshot // pools, nodes, daemons and pods
	Market   catalog.Market   // catalogs by EC2NodeClass
	Effort   packing.Effort   // work limit of the plan; 0: the default limit
	Expect   string           // expected plan: the text below the line "----"
}

// defaultClass is the EC2NodeClass of pools and catalogs for which the text names none.
const defaultClass = "default"

// defaultNamespace is the namespace of pods and daemons for which the text names none.
const defaultNamespace = "default"
