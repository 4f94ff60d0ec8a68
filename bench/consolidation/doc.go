// Package consolidation lets upstream and us make the same wasteful fleet cheaper, one after the other, and says how far each came.
//
// In: fleets, each made anew for either side.
// Out: rows: when nothing more was worth doing, the price then and what no plan could beat, pods moved, what was paid on the way,
// seconds and memory of a pass; as a table.
// Never: other rules for one side than for the other, or a number that was not measured in this run.
package consolidation
