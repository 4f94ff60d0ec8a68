package main

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// belongs returns an error if the endpoint or certificate authority in the settings belongs to a cluster other than the
// one in facts. Nodes would try to join that other cluster. A custom endpoint that is not an EKS endpoint is accepted.
func belongs(settings config.Settings, facts eks.Facts) error {
	ours, err := base64.StdEncoding.DecodeString(settings.ClusterCABundle)
	if err == nil && len(ours) > 0 && !sameAuthority(facts.CA, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ours}}) {
		return fmt.Errorf("--cluster-ca-bundle (CLUSTER_CA_BUNDLE) is not that of EKS cluster %q: nodes would not trust the API server; leave it out, and the controller asks EKS", settings.ClusterName)
	}
	given, asked := eks.ClusterOf(settings.ClusterEndpoint), eks.ClusterOf(facts.Endpoint)
	if given != "" && asked != "" && given != asked {
		return fmt.Errorf("--cluster-endpoint (CLUSTER_ENDPOINT) is that of another cluster than EKS cluster %q (did you mean %s?); leave it out, and the controller asks EKS",
			settings.ClusterName, facts.Endpoint)
	}
	return nil
}

// knownRegion returns a hint if the embedded table does not have the configured region but a similar one; empty
// otherwise. The region may still exist, so the hint is only added to an error.
func knownRegion(name string, known []string) string {
	near := suggest.Nearest(name, known)
	if slices.Contains(known, name) || near == "" {
		return ""
	}
	return fmt.Sprintf("; region %s is not known to this version (did you mean %s?)", name, near)
}
