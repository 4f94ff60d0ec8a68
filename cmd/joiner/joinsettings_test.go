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

// TestBelongs: an endpoint or certificate authority of another cluster is refused before any node gets it.
func TestBelongs(t *testing.T) {
	t.Parallel()
	authority := func(name string) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)}))
	}
	const endpoint = "https://AAAA.gr7.us-east-1.eks.amazonaws.com"
	facts := eks.Facts{Endpoint: endpoint, CA: authority("a")}
	for name, c := range map[string]struct {
		settings config.Settings
		facts    eks.Facts
		want     string // of the error; empty for none
	}{
		"nothing given":                    {config.Settings{}, facts, ""},
		"own endpoint and certificates":    {config.Settings{ClusterEndpoint: endpoint, ClusterCABundle: authority("a")}, facts, ""},
		"own endpoint in another spelling": {config.Settings{ClusterEndpoint: strings.ToLower(endpoint) + ":443"}, facts, ""},
		"its own, by the other name":       {config.Settings{ClusterEndpoint: "https://aaaa.eks-cluster.us-east-1.api.aws"}, facts, ""},
		"a name of one's own":              {config.Settings{ClusterEndpoint: "https://api.example.com"}, facts, ""},
		"EKS does not say": {config.Settings{ClusterEndpoint: "https://BBBB.gr7.us-east-1.eks.amazonaws.com",
			ClusterCABundle: authority("b")}, eks.Facts{}, ""},
		"endpoint of another cluster": {
			config.Settings{ClusterName: "c", ClusterEndpoint: "https://BBBB.gr7.us-east-1.eks.amazonaws.com"}, facts,
			`CLUSTER_ENDPOINT) is that of another cluster than EKS cluster "c" (did you mean ` + endpoint + "?)",
		},
		"certificates of another cluster": {config.Settings{ClusterCABundle: authority("b")}, facts, "CLUSTER_CA_BUNDLE) is not that of EKS cluster"},
	} {
		text := ""
		if err := belongs(c.settings, c.facts); err != nil {
			text = err.Error()
		}
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q, want one line with %q", name, text, c.want)
		}
	}
}

func TestKnownRegion(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]string{
		"us-east-1": "", "us-eest-1": "did you mean us-east-1?", "eu-wset-1": "did you mean eu-west-1?", "moon-base-900": "",
	} {
		if got := knownRegion(region, table.Regions()); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", region, got, want)
		}
	}
}
