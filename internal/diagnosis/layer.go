package diagnosis

// Layer is a stage in the life of a node.
type Layer int

// The layers, in the order in which a node goes through them.
const (
	LayerController Layer = iota // does the controller run, and for this cluster?
	LayerPlan                    // does a NodePool admit the pod?
	LayerLaunch                  // does EC2 launch an instance?
	LayerBoot                    // does the instance boot, and does its user data start a kubelet?
	LayerNetwork                 // does the kubelet reach the API server?
	LayerAuth                    // does the API server authenticate the kubelet?
	LayerReady                   // does the node become ready?
	LayerFleet                   // does the node stay in this cluster, unchanged?
)
