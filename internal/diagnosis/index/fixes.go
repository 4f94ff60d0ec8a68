package index

import (
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// RegionParam is the parameter --region of a call to AWS.
func (ix *Index) RegionParam() fix.Param { return fix.P("--region", fix.Region(ix.Evidence.Region)) }

// ClusterParam is the parameter --cluster-name of a call to EKS.
func (ix *Index) ClusterParam() fix.Param {
	return fix.P("--cluster-name", fix.ClusterName(ix.Evidence.Name))
}

// ControllerDeployment is the Deployment of the controller. If not known, its namespace is kube-system, its name
// joiner.
func (ix *Index) ControllerDeployment() fix.Object {
	c := ix.Evidence.Controller.Value
	return fix.Deployment(diagnosis.OrElse(c.Namespace, "kube-system"), diagnosis.OrElse(c.Workload(), "joiner"))
}
