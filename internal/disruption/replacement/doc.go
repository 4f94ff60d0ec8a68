// Package replacement says what to do next with nodes that are being replaced.
//
// In: what was seen of one move: the nodes that go, the claims that were made in their place, and whether the pods could go there now.
// Out: one step, with its reason.
// Never: an API object, a clock, or a memory: what a step rests on is written on the objects, so that whoever leads next goes on.
//
// # The life of a move
//
//	mark ──► buy ──► close ──► wait until all is ready ──► look again ──► commit ──► delete ──► over
//	  │        │       │                 │                     │
//	  └────────┴───────┴──── undo ◄──────┴─────────────────────┘
//
// Until it is committed a move can be undone without a trace, and is, as soon as one of its nodes does not come or the pods would
// find no place any more. Once one of its nodes bears the word that it goes, all of them go, whoever leads.
package replacement
