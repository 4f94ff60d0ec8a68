// Package site has the data that the resources of one emulated region share: account, zones, ARNs, IDs, tags, and the
// timetable.
//
// In: names of regions and accounts, a seed, and the time.
// Out: ARNs, zones, IDs that are the same in two worlds with the same seed, and events when they are due.
// Never: a resource, a clock or randomness.
package site
