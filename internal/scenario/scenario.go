// Package scenario is a cluster, a market and the expected plan as text, both ways.
//
// In: the text of a scenario, or the values.
// Out: the values, or the text; each error names its line.
// Never: a file, a decision, or anything that is lost on the way there and back.
//
// # The format
//
// Lines are words between blanks. A section begins at the left margin, its
// entries are indented, what belongs to an entry is indented further. Lines
// that begin with # before the first section are the story; elsewhere they
// are comments, which are not kept. Everything after a line "----" is the
// expected result.
//
//	# Three small pods share one instance.
//	catalog                                        or: catalog NODECLASS
//	  m7g.large  us-east-1a,us-east-1b on-demand,spot 0.0816 cpu=2 mem=8Gi pods=29 arch=arm64
//	  m7g.large  us-east-1c on-demand 0.09 short   a type's amounts stand on its first line
//	  m7g.large  us-east-1a reserved 0.00000001 reservation=cr-1 left=3
//	pools
//	  general class=default weight=10 limit:cpu=100 limit:nodes=5 used:cpu=4 used:nodes=1
//	    require karpenter.sh/capacity-type In spot on-demand min=2
//	    label team=a
//	    taint dedicated=gpu:NoSchedule
//	    startup-taint warming:NoExecute
//	    unusable its NodeClass is not ready
//	  varied min-values=best-effort                min= gives way where it cannot be met
//	nodes
//	  node-a pool=general cpu=4 mem=16Gi pods=58 used:cpu=1 leaving cordoned joining uninitialized
//	    label topology.kubernetes.io/zone=us-east-1a
//	    taint team=a:NoSchedule
//	    port 8080/TCP
//	    resident app=web,tier=front x2 ns=shop ending           pods that stay; <none> for no labels
//	      apart app=web by kubernetes.io/hostname
//	daemons
//	  kube-system/logs cpu=100m mem=100Mi
//	    tolerate *
//	pods
//	  web x3 cpu=1 mem=2Gi priority=10 owner=ReplicaSet/web     web-1, web-2, web-3 in namespace default
//	    label app=web
//	    require kubernetes.io/arch In arm64                     lines together; "or" begins an alternative
//	    or
//	    require topology.kubernetes.io/zone NotIn us-east-1c
//	    prefer 10 karpenter.sh/capacity-type In spot
//	    spread app=web over topology.kubernetes.io/zone max-skew=2 min-domains=3 soft any-node honor-taints
//	    near app=db,tier in (a,b),!old by topology.kubernetes.io/zone weight=10 ns=data,shop
//	    apart * by kubernetes.io/hostname ns=*
//	    tolerate dedicated=gpu:NoSchedule
//	    port 8080/TCP
//	    volume data                                             a claim that others share, without a volume yet
//	    unplannable it uses a volume that does not exist
//	solve
//	----
//	buy …
//
// Amounts are Kubernetes quantities; mem is memory, storage is
// ephemeral-storage, and volumes is how many volumes the EBS driver attaches. What a type offers to pods is written plainly, what it has
// in all as capacity:cpu=2 where it differs; a label of a type that does not
// follow from its name and amounts is label:key=value. A zone may carry its id:
// us-east-1a/use1-az1.
//
// An offering of a capacity reservation names it, and how many instances it has left;
// reservation=cr-1/capacity-block and reservation=cr-1/default/interruptible say of what kind it is.
//
// Pods are chosen as with kubectl: app=web, app!=web, tier in (a,b), tier notin
// (a,b), app, !app, with commas between terms; * is every pod and <none> no pod. A
// spread is over the domains of a label: max-skew is 1 unless it says otherwise,
// soft is ScheduleAnyway, any-node is nodeAffinityPolicy Ignore, honor-taints is
// nodeTaintsPolicy Honor. near is pod affinity and apart is anti-affinity, by the
// domains of a label; with a weight they are preferences. They are about pods of the
// same namespace, unless ns says which.
//
// Not in the format: when the snapshot was taken, creation times, UIDs, provider
// ids, and the pods that would have to leave a node.
package scenario

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Scenario is a story with its input and what should come of it.
type Scenario struct {
	Story    string // without the #, lines ended by \n
	Snapshot cluster.Snapshot
	Market   catalog.Market
	Effort   packing.Effort // 0: as usual
	Expect   string         // what stands below the line "----"
}

// defaultClass is the node class of pools and catalogs that name none.
const defaultClass = "default"

// defaultNamespace is that of pods that name none.
const defaultNamespace = "default"
