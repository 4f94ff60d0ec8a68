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
//	# Three small pods share one machine.
//	catalog                                        or: catalog NODECLASS
//	  m7g.large  us-east-1a,us-east-1b on-demand,spot 0.0816 cpu=2 mem=8Gi pods=29 arch=arm64
//	  m7g.large  us-east-1c on-demand 0.09 short   a type's amounts stand on its first line
//	pools
//	  general class=default weight=10 limit:cpu=100 limit:nodes=5 used:cpu=4 used:nodes=1
//	    require karpenter.sh/capacity-type In spot on-demand min=2
//	    label team=a
//	    taint dedicated=gpu:NoSchedule
//	    startup-taint warming:NoExecute
//	    unusable its NodeClass is not ready
//	nodes
//	  node-a pool=general cpu=4 mem=16Gi pods=58 used:cpu=1 leaving joining uninitialized
//	    label topology.kubernetes.io/zone=us-east-1a
//	    taint team=a:NoSchedule
//	    port 8080/TCP
//	daemons
//	  kube-system/logs cpu=100m mem=100Mi
//	    tolerate *
//	pods
//	  web x3 cpu=1 mem=2Gi priority=10 owner=ReplicaSet/web     web-1, web-2, web-3 in namespace default
//	    require kubernetes.io/arch In arm64                     lines together; "or" begins an alternative
//	    or
//	    require topology.kubernetes.io/zone NotIn us-east-1c
//	    prefer 10 karpenter.sh/capacity-type In spot
//	    tolerate dedicated=gpu:NoSchedule
//	    port 8080/TCP
//	    unplannable it uses a volume that does not exist
//	solve
//	----
//	buy …
//
// Amounts are Kubernetes quantities; mem is memory and storage is
// ephemeral-storage. What a type offers to pods is written plainly, what it has
// in all as capacity:cpu=2 where it differs; a label of a type that does not
// follow from its name and amounts is label:key=value. A zone may carry its id:
// us-east-1a/use1-az1.
//
// Not in the format: when the snapshot was taken, creation times, UIDs, provider
// ids, labels of pods, and the pods that would have to leave a node.
package scenario

import (
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
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
