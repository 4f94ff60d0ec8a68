package main

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestCheckJoinSettings: an endpoint or certificate authority of another cluster in the settings is an error.
func TestCheckJoinSettings(t *testing.T) {
	t.Parallel()
	authority := func(name string) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)}))
	}
	const endpoint = "https://AAAA.gr7.us-east-1.eks.amazonaws.com"
	facts := eks.Facts{Endpoint: endpoint, CA: authority("a")}
	for name, c := range map[string]struct {
		settings config.Settings
		facts    eks.Facts
		want     string // part of the error; empty: no error
	}{
		"neither is set":                   {config.Settings{}, facts, ""},
		"own endpoint and certificates":    {config.Settings{ClusterEndpoint: endpoint, ClusterCABundle: authority("a")}, facts, ""},
		"own endpoint in another spelling": {config.Settings{ClusterEndpoint: strings.ToLower(endpoint) + ":443"}, facts, ""},
		"own endpoint, dual-stack name":    {config.Settings{ClusterEndpoint: "https://aaaa.eks-cluster.us-east-1.api.aws"}, facts, ""},
		"name outside of EKS":              {config.Settings{ClusterEndpoint: "https://api.example.com"}, facts, ""},
		"no facts from EKS": {config.Settings{ClusterEndpoint: "https://BBBB.gr7.us-east-1.eks.amazonaws.com",
			ClusterCABundle: authority("b")}, eks.Facts{}, ""},
		"endpoint of another cluster": {
			config.Settings{ClusterName: "c", ClusterEndpoint: "https://BBBB.gr7.us-east-1.eks.amazonaws.com"}, facts,
			`CLUSTER_ENDPOINT) is that of another cluster than EKS cluster "c" (did you mean ` + endpoint + "?)",
		},
		"certificates of another cluster": {config.Settings{ClusterCABundle: authority("b")}, facts, "CLUSTER_CA_BUNDLE) is not that of EKS cluster"},
	} {
		text := ""
		if err := checkJoinSettings(c.settings, c.facts); err != nil {
			text = err.Error()
		}
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("%s: error %q, want one line with %q", name, text, c.want)
		}
	}
}

func TestRegionHint(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]string{
		"us-east-1": "", "us-eest-1": "did you mean us-east-1?", "eu-wset-1": "did you mean eu-west-1?", "moon-base-900": "",
	} {
		if got := regionHint(region, table.Regions()); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: hint %q, want %q in it", region, got, want)
		}
	}
}
