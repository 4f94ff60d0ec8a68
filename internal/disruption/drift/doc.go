// Package drift finds nodes that differ from what their NodePool and node class require, and selects those to replace
// now.
//
// In: nodes, pools and node classes as values, with their state at creation and their history; the time.
// Out: verdicts, each with Karpenter's reason and one sentence about the difference; the hashes that detect changes;
// the images to launch from; the nodes to replace first, and why other nodes stay.
// Never: an API object, a call, or a replacement.
package drift
