// Package consolidation runs upstream's and Joiner's consolidation on the same wasteful fleets, and compares the
// results.
//
// In: fleets; each side gets its own copy.
// Out: a table. For each fleet and side: the time until the price was final, the final price and its lower bound, the
// pods moved, the cost, and the seconds and memory of a pass (one scan of the cluster).
// Never: different rules for the two sides, or a number that was not measured in this run.
package consolidation
