// Package drift says which nodes are no longer what their NodePool and node class ask for, and which of those may be
// replaced now.
//
// In: nodes, pools and node classes as values; what they were made from, and what has become of it; the time.
// Out: verdicts, each with Karpenter's reason and one sentence of what differs; the hashes that tell changes; the images to
// launch from; which nodes go first, and why the others stay.
// Never: an API object, a call, or a replacement.
package drift
