package index

import (
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// A fix may need a value that the broken object lacks, such as a role. The fix takes the value of the nodes that
// joined, or else the value of most other EC2NodeClasses. On a tie, the user chooses.

// InRegion is the parameter --region of a call to AWS.
func (ix *Index) InRegion() fix.Param { return fix.P("--region", fix.Region(ix.Evidence.Region)) }

// OfCluster is the parameter --cluster-name of a call to EKS.
func (ix *Index) OfCluster() fix.Param {
	return fix.P("--cluster-name", fix.ClusterName(ix.Evidence.Name))
}

// ControllerDeployment is the Deployment of the controller.
func (ix *Index) ControllerDeployment() fix.Object {
	c := ix.Evidence.Controller.Value
	return fix.Deployment(diagnosis.OrElse(c.Namespace, "kube-system"), diagnosis.OrElse(c.Workload(), "joiner"))
}
