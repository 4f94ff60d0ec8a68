// Package packing plans which new nodes to launch, and assigns every pod to a node.
//
// In: a snapshot of the cluster, the market, and a limit for the work.
// Out: a Plan: nodes to launch, pods for existing nodes, and a reason for every unplaced pod.
// Never: a clock, randomness, I/O, or a plan that depends on the order of its input.
//
// # How Solve works
//
// The input is a problem, which does not change (package pending). Each attempt to plan has a solution: the pods
// that are placed so far, and on which nodes (solution.go), and the progress of each class (pending.Queue).
// Every step below is a type of its own that changes the solution.
//
// Pods with equal requirements form a pod group, here a class (package podgroup). Package
// offering numbers the offerings that can be launched. A class has stages: the sets of offerings that it
// accepts, with fewer preferences from one set to the next. Package existing has the nodes, and
// the topology domains of the labels that rules use.
//
//  1. Topology domains (package topology): each class with spread or affinity over zones, or
//     over another label, is split into parts, one per combination of domains (split.go). Host
//     rules are checked node by node. Pods that must share a node, or prefer to, are bundled
//     (package bundle).
//  2. Existing nodes are filled first (existingnodes.go), then instances of capacity
//     reservations (reservation.go), and new nodes take the rest (strategy.go).
//  3. The lower bound (packages dualprice and lowerbound) gives each class a dual price: what one pod
//     adds to the lowest possible price. A strategy repeatedly adds the node with the lowest price
//     per total dual price of its pods (run.go). To fill a node, it compares only the largest
//     fitting class of each row, which has classes with similar proportions (rows.go, fill.go). So the
//     work grows with classes, not with pods.
//  4. A plan that is close to the lower bound is accepted. Otherwise classes on nodes are swapped (fill.go), the most
//     expensive nodes are planned again (improve.go), and nodes exchange pods (exchange.go). A small number of
//     pods is solved exactly (exact.go). Of plans with about the same price, the plan that puts the fewest
//     pods of a class on one node is chosen.
//  5. If a domain has no room for its pods, or new nodes add domains, planning restarts with this
//     knowledge (restart.go, projection.go). Binding is then simulated (package
//     binding), and pods that kube-scheduler would not bind are removed (bindorder.go,
//     affinitycycle.go).
//  6. Unplaced pods are retried against the finished plan (retry.go). For pods that are still unplaced,
//     package refusal finds the causes and the smallest change that would help.
//
// Each new node keeps the offerings that fit its pods, of at most 60 instance types, cheapest first (launchoptions.go).
package packing
