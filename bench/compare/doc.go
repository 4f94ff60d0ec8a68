// Package compare plans each workload with both, one after the other in one process, and says what it took and what it costs.
//
// In: workloads.
// Out: rows: seconds, memory, machines, price, bound, and whether the plans hold; as a table and as plots.
// Never: a verdict on whose plan is better, or a number that was not measured in this run.
package compare
