package main

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/aws/access"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// belongs refuses settings that were meant for another cluster: nodes are told the endpoint and the certificates, and would look for
// that one. An address of one's own for the cluster, in front of EKS's, is nobody else's.
func belongs(settings config.Settings, facts access.Facts) error {
	ours, err := base64.StdEncoding.DecodeString(settings.ClusterCABundle)
	if err == nil && len(ours) > 0 && !sameAuthority(facts.CA, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ours}}) {
		return fmt.Errorf("--cluster-ca-bundle (CLUSTER_CA_BUNDLE) is not that of EKS cluster %q: nodes could not trust it; leave it out, and EKS is asked", settings.ClusterName)
	}
	given, asked := access.ClusterOf(settings.ClusterEndpoint), access.ClusterOf(facts.Endpoint)
	if given != "" && asked != "" && given != asked {
		return fmt.Errorf("--cluster-endpoint (CLUSTER_ENDPOINT) is that of another cluster than EKS cluster %q: is %s meant? leave it out, and EKS is asked",
			settings.ClusterName, facts.Endpoint)
	}
	return nil
}

// knownRegion says which region was probably meant, where the one that is set is in no table of ours. It may be there all the same: this
// stands behind an error, and is none.
func knownRegion(name string, known []string) string {
	near := suggest.Nearest(name, known)
	if slices.Contains(known, name) || near == "" {
		return ""
	}
	return fmt.Sprintf("; region %s is new to this version: is %s meant?", name, near)
}
