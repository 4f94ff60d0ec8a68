// Package nomination decides which pods get the room of a Node that opens.
//
// In: the Node, the pods planned for it and for nodes that open later, and where other pods run.
// Out: exchanges of pods between the Node and later nodes, and the pods to bind to the Node.
// Never: a write, or a change of the plan's nodes.
package nomination
