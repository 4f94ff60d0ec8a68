// Package compare plans each workload with Joiner and with upstream (Karpenter), one after the other in one process,
// and measures both.
//
// In: workloads.
// Out: rows: seconds, memory, new nodes, price, lower bound, and whether the plans are valid; as a table and as plots.
// Never: a verdict on whose plan is better, or a number that was not measured in this run.
package compare
