package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

//go:embed first.yaml
var firstManifest string

// printFirstSteps writes the first manifest into the lab's folder, and prints the commands for a user's first steps.
func printFirstSteps(w io.Writer, l *lab.Lab, hasController bool) error {
	path := filepath.Join(l.Home, "first.yaml")
	if err := os.WriteFile(path, []byte(fillFirstManifest(l.Cluster)), 0o600); err != nil {
		return fmt.Errorf("write the first manifest: %w", err)
	}
	fmt.Fprintf(w, "The lab is up. Ctrl-C ends it and removes %s\n\n", l.Home)
	fmt.Fprintf(w, "Nodes may have the role %s. Subnets and security groups have the tag karpenter.sh/discovery: %s\n",
		lab.NodeRole, l.Cluster)
	if l.AuthMode == ekscluster.AuthAPI {
		fmt.Fprintf(w, "This cluster does not read aws-auth. To map the role:\n  aws eks create-access-entry --cluster-name %s --principal-arn %s --type EC2_LINUX\n",
			l.Cluster, l.Roles.ARN(lab.NodeRole))
	}
	if hasController { // the namespace must be given, because there is no Deployment of the controller
		fmt.Fprint(w, "The controller is in namespace kube-system. To pause it:\n  joiner pause --namespace kube-system\n")
	} else {
		fmt.Fprintf(w, "To run a controller, with the variables above:\n  %s\n", controllerLine(l.Cluster, "joiner"))
	}
	fmt.Fprintf(w, "To create a node class, a NodePool and three pods:\n  kubectl apply -f %s\n",
		strings.TrimPrefix(quoted("="+path), "="))
	fmt.Fprint(w, "To inject a fault, and to find out why nodes do not join:\n  bin/lab fault list\n  bin/lab fault entry-of-wrong-type\n  joiner doctor\n  bin/lab fault --undo entry-of-wrong-type\nMore information: lab/README.md\n")
	return nil
}

// controllerLine returns the command line that runs the given controller program in the lab of the cluster.
func controllerLine(cluster, program string) string {
	return "CLUSTER_NAME=" + cluster + " BIND_ADDRESS=127.0.0.1 " + strings.TrimPrefix(quoted("="+program), "=") + " controller"
}

// fillFirstManifest returns the first manifest, filled in for the named cluster.
func fillFirstManifest(cluster string) string {
	return strings.NewReplacer("${NODE_ROLE}", lab.NodeRole, "${CLUSTER}", cluster).Replace(firstManifest)
}
