// Package consolidation runs upstream's and Joiner's consolidation on the same wasteful fleets, and compares the
// results.
//
// In: fleets; each side gets its own copy.
// Out: rows: the time until the price was final, the final price and its lower bound, pods moved, the cost until that
// time, seconds and memory of a pass; as a table.
// Never: different rules for the two sides, or a number that was not measured in this run.
package consolidation
