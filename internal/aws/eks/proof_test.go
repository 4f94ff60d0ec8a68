package eks

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

// TestProve compares EKS's description of a cluster with what is known about the cluster without EKS.
func TestProve(t *testing.T) {
	t.Parallel()
	authority := func(name string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)})
	}
	facts := Facts{
		ARN: "arn:aws:eks:us-east-1:111122223333:cluster/c", Issuer: "https://oidc.eks.us-east-1.amazonaws.com/id/AAAA",
		Endpoint: "https://AAAA.gr7.us-east-1.eks.amazonaws.com", CA: base64.StdEncoding.EncodeToString(authority("a")),
	}
	const other = "https://oidc.eks.us-east-1.amazonaws.com/id/BBBB"
	for name, c := range map[string]struct {
		facts           Facts
		local           LocalFacts
		proven, refuted bool
		wantText        string // part of Comparison.String; empty: no text
	}{
		"all agree": {facts,
			LocalFacts{CA: authority("a"), Issuer: facts.Issuer + "/", Endpoint: "https://aaaa.gr7.us-east-1.eks.amazonaws.com:443",
				Region: "us-east-1"}, true, false, ""},
		"nothing is known": {facts, LocalFacts{}, false, false, ""},
		"no facts of EKS":  {Facts{}, LocalFacts{CA: authority("b"), Issuer: other}, false, false, ""},
		"only the region":  {facts, LocalFacts{Region: "us-east-1"}, false, false, ""},
		"another issuer": {facts, LocalFacts{CA: authority("a"), Issuer: other}, false, true,
			"issuer is " + facts.Issuer + " in EKS, but " + other},
		"another authority": {facts, LocalFacts{CA: authority("b")}, false, true, "certificate authorities differ"},
		"another endpoint": {facts, LocalFacts{Endpoint: "https://BBBB.gr7.us-east-1.eks.amazonaws.com"}, false, true,
			"the endpoint is aaaa in EKS, but bbbb in the cluster"},
		"another region": {facts, LocalFacts{Region: "eu-west-1"}, false, true, "the region is us-east-1 in EKS, but eu-west-1 in the cluster"},
		"proxy with its own address and certificates": {facts,
			LocalFacts{CA: authority("proxy"), Issuer: facts.Issuer, Endpoint: "https://proxy.example"}, true, false, "certificate authorities differ"},
		"address in the VPC":      {facts, LocalFacts{CA: authority("a"), Endpoint: "https://172.20.0.1:443"}, true, false, ""},
		"certificates not in PEM": {facts, LocalFacts{CA: []byte("nonsense")}, false, false, ""},
		"one of two certificates": {facts, LocalFacts{CA: append(authority("b"), authority("a")...)}, true, false, ""},
		"several differences":     {facts, LocalFacts{CA: authority("b"), Issuer: other}, false, true, "; their certificate"},
	} {
		p := c.facts.CompareWith(c.local)
		if p.Proven() != c.proven || p.Refuted() != c.refuted || !strings.Contains(p.String(), c.wantText) || c.wantText == "" && p.String() != "" {
			t.Errorf("%s: proven %t, refuted %t, %q; want %t, %t, %q", name, p.Proven(), p.Refuted(), p, c.proven, c.refuted, c.wantText)
		}
	}
}
