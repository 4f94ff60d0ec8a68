// Package nomination decides which pods get the room of a Node that opens.
//
// In: the pods planned for the Node and for nodes that open later, and where other pods run.
// Out: exchanges of pods between the Node and later nodes.
// Never: a nomination of a pod, or a change of the plan's nodes.
package nomination
