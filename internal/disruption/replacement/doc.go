// Package replacement decides the next step of a move, which replaces nodes with other nodes.
//
// In: the state of one move: its candidates, the NodeClaims of their replacements, and whether the pods could be
// scheduled now.
// Out: one step, with its reason.
// Never: an API object, a clock, or a memory. All state is on the objects, so that another controller can continue.
//
// # The life of a move
//
//	mark ──► launch ──► close ──► wait for replacements ──► validate ──► commit ──► delete ──► done
//	  │         │         │                  │                  │
//	  └─────────┴─────────┴────── undo ◄─────┴──────────────────┘
//
// Before its first commit, a move is undone if a replacement fails or the pods would not fit any more. Once one of its
// candidates is committed, all candidates are removed, if necessary by another controller process.
package replacement
