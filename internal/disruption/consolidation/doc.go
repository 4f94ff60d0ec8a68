// Package consolidation finds the nodes that money is saved by doing without.
//
// In: a snapshot of the cluster, the market, and which nodes may go, with what they cost and what moving their pods takes.
// Out: moves: nodes to remove together, the machines that are bought in their place, where their pods go, and what it saves.
// Never: a clock, a budget, an API object; whoever acts on a move checks it again against newer state.
//
// # How Find works
//
// A trial is a plan (packing.Solve) for the snapshot as it would be if some nodes were leaving. It falls apart into moves: a node
// whose pods all fit onto nodes that stay is a move by itself, and nodes whose pods share machines that are bought are one. A move
// is worth it if what it saves, as a share of the price of all nodes, is more than a little of what it moves, as a share of all
// pods (weigh). Moves that are not are left out of the trial.
//
// At first a move must save, for what it moves, some times what all nodes together would save: pods are moved for much before they are moved for
// little. Only where nothing is worth that much, all of what follows is done once more for what is worth a little (bars).
//
// The first trial lets every node go. What its machines cost is what the pods of each node are worth; what a node costs beyond
// that is waste. Nodes with the most waste for the pods that they move come first. Of that order, trials take the first half, a
// quarter and so on, and then look closer where most was saved (search), and never let more nodes of a pool go than it has room for.
// Beyond the best trial, single nodes go whose pods kube-scheduler would deal out to nodes that stay, for which no plan is needed (more,
// spill); then nodes are tried in small groups, which are made smaller as long as nothing is saved (sift): so what few nodes save is
// found too.
//
// A plan packs better than kube-scheduler does, which knows nothing of it and spreads pods over the emptiest nodes. So the moves of a
// trial count only if its pods would also find their places one by one, as kube-scheduler deals them out by default (board, bind).
// Unbound asks the same of moves that are about to be made.
//
// Moves that are made together find their places together, too: their machines are ready at the same time, and then the pods of all
// of their nodes come mixed. All moves of a look are dealt out once more in such orders, and as many are made as save most by that (jointly).
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
