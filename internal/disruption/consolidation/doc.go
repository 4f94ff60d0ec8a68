// Package consolidation finds the nodes whose removal saves money.
//
// In: a snapshot of the cluster, the market, and which nodes may be removed, with their prices and the cost of moving their pods.
// Out: moves: nodes to remove together, the nodes to launch in their place, where their pods go, and the saving.
// Never: a clock, an API object; the caller revalidates a move against newer state before it acts.
//
// # Terms
//
// An attempt is a plan (packing.Solve) for the snapshot without some of the candidates. It splits into independent moves. A move is worth it
// if its share of the price of all candidates is at least a threshold times its share of the cost of moving all their pods (weigh).
//
// At first a move must save, for what it moves, some times what all nodes together would save: pods are moved for much before they are moved for
// little. Only where nothing is worth that much, all of what follows is done once more for what is worth a little (bars).
//
// # Find
//
// Find runs a numbered list of strategies (strategies in find.go). The first that finds moves decides the result. If pods are in transit to
// scarce capacity, Find waits. A high first threshold moves pods for much before they are moved for little; with high churn, all thresholds
// are higher. A node is not replaced by an equivalent one (equivalent.go).
//
// # Replace
//
// Where all is full and only prices have changed, hardly any plan passes that: what is bought is packed as tightly as the market
// allows. So at last all nodes that are left are planned for at once, the pods of each as one (bundle, fill): what has room for all of
// them has room for each of them in any order, and the best of these moves fill what room the pools have left.
//
// Until then those that may go are out of the way of the pods of others, as they may go themselves. Where nothing is found in all that, or nothing
// of it would come to its end, and nobody is on the way to another place, none of them goes, and single nodes are tried for which their room is enough, or nearly so (opened, shrink).
// Nodes of few large pods are looked at in all pairs, and some threes, once nobody has come or gone for a while (Steady): package estimate says for which
// of these other machines would do (handfuls).
// Large groups of nodes are planned for with some room to spare (last, ease). In both, pods may come in about the order in which they
// are let go: large ones first (usual). In the worst order, small ones first, no node could be filled beyond what leaves its largest pod out,
// and a fleet would rest far above what its pods cost.
// At last a handful may go whose pods find their places only one by one, in an order that is looked for (oneByOne): the move says in which (Turns).
//
// Where pods come and go all the time (Restless), all moves must be worth more, as what they save does not last.
//
// Where more could be saved by buying otherwise than there is room on nodes, all of them will be replaced, and room is scarce (isScarce). It is
// given away before all else, to the single nodes that save most by it for what moving them takes (bargains), and not below its worth; nothing
// else is done while pods are on the way to it (isOnTheWay).
//
// What was found and then not made has kept other nodes from going, to which its pods were to come. Where nothing is left in the end, nodes
// whose pods fit onto one cheaper machine are looked for once more by themselves (filled).
//
// A trial lets nodes go together and may buy, for their pods, a machine that is like one of them. Such a node stays, and the pods of that
// machine come to it: the best trial is made once more without these nodes (replanned), and of moves that came later, what is left when
// they stay is the move (spared).
//
// The moves of the best trial are planned once more by themselves: nothing that a move relies on comes from one that was left out (settle).
//
// # How Replace works
//
// Nodes that must go, whatever it costs, are planned for one after the other, or group by group where there are many (relay): each plan
// stands on the ones before, but uses nothing that they buy. So each node is a move that needs no other.
package consolidation
