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

// checkJoinSettings returns an error if the settings have the endpoint or certificate authority of another cluster than
// that of facts: nodes could not join with them. It accepts each endpoint that is not a host name of EKS.
func checkJoinSettings(settings config.Settings, facts eks.Facts) error {
	bundle, err := base64.StdEncoding.DecodeString(settings.ClusterCABundle)
	if err == nil && len(bundle) > 0 && !sameAuthority(facts.CA, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: bundle}}) {
		return fmt.Errorf("--cluster-ca-bundle (CLUSTER_CA_BUNDLE) is not that of EKS cluster %q: nodes would not trust the API server; leave it out, and the controller asks EKS", settings.ClusterName)
	}
	configured, actual := eks.EndpointID(settings.ClusterEndpoint), eks.EndpointID(facts.Endpoint)
	if configured != "" && actual != "" && configured != actual {
		return fmt.Errorf("--cluster-endpoint (CLUSTER_ENDPOINT) is that of another cluster than EKS cluster %q (did you mean %s?); leave it out, and the controller asks EKS",
			settings.ClusterName, facts.Endpoint)
	}
	return nil
}

// regionHint returns a hint if known does not contain the region, but contains one with a similar name; empty
// otherwise. The region may still exist, so the caller only adds the hint to an error.
func regionHint(region string, known []string) string {
	near := suggest.Nearest(region, known)
	if slices.Contains(known, region) || near == "" {
		return ""
	}
	return fmt.Sprintf("; region %s is not known to this version (did you mean %s?)", region, near)
}
