package eks

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// LocalFacts has the facts about the cluster that do not come from EKS, but from the cluster's API server and from our
// configuration. Unknown fields are empty.
type LocalFacts struct {
	CA       []byte // PEM certificates that verify the API server
	Issuer   string // issuer of the cluster's service account tokens
	Endpoint string // URL of the API server that we connect to
	Region   string // region in which we call AWS
}

// IdentityFact is one fact that distinguishes clusters.
type IdentityFact string

// The facts, most reliable first. The issuer is the most reliable: each cluster has its own, and a proxy between us and
// the API server does not change it.
const (
	ByIssuer    IdentityFact = "issuer"
	ByEndpoint  IdentityFact = "endpoint"
	ByAuthority IdentityFact = "authority"
	ByRegion    IdentityFact = "region"
)

// Marks returns all IdentityFacts, most reliable first.
func Marks() []IdentityFact { return []IdentityFact{ByIssuer, ByEndpoint, ByAuthority, ByRegion} }

// Comparison is the result of comparing the cluster that EKS describes with the cluster that we connect to.
type Comparison struct {
	Same []IdentityFact // facts that agree, most reliable first
	// Differ has the facts that differ, each with two values: EKS's, and that of the LocalFacts. ByAuthority has no
	// values, because certificates are long.
	Differ map[IdentityFact][]string
}

// CompareWith compares EKS's description of the cluster with l. A fact that is unknown on either side is in neither
// Same nor Differ.
func (f Facts) CompareWith(l LocalFacts) Comparison {
	p := Comparison{Differ: map[IdentityFact][]string{}}
	compare := func(fact IdentityFact, eksValue, localValue string) {
		switch {
		case eksValue == "" || localValue == "":
		case eksValue == localValue:
			p.Same = append(p.Same, fact)
		default:
			p.Differ[fact] = []string{eksValue, localValue}
		}
	}
	compare(ByIssuer, strings.TrimSuffix(f.Issuer, "/"), strings.TrimSuffix(l.Issuer, "/"))
	compare(ByEndpoint, EndpointID(f.Endpoint), EndpointID(l.Endpoint))
	if eksCA, err := base64.StdEncoding.DecodeString(f.CA); err == nil {
		switch same, known := SameAuthority(eksCA, l.CA); {
		case known && same:
			p.Same = append(p.Same, ByAuthority)
		case known:
			p.Differ[ByAuthority] = nil
		}
	}
	if parts := strings.Split(f.ARN, ":"); len(parts) > 3 {
		compare(ByRegion, parts[3], l.Region)
	}
	return p
}

// Refuted reports whether EKS certainly describes another cluster: whether the most reliable of the compared facts
// differs. It ignores other facts, because a proxy before the API server has its own address and certificates.
func (p Comparison) Refuted() bool {
	for _, fact := range Marks() {
		if _, differs := p.Differ[fact]; differs {
			return true
		}
		if slices.Contains(p.Same, fact) {
			return false
		}
	}
	return false
}

// Proven reports whether EKS certainly describes the cluster that we connect to: whether a fact other than the region
// agrees, and p is not Refuted.
func (p Comparison) Proven() bool {
	return !p.Refuted() && slices.ContainsFunc(p.Same, func(m IdentityFact) bool { return m != ByRegion })
}

// String describes the differences; it is empty if there are none.
func (p Comparison) String() string {
	var out []string
	for _, fact := range Marks() {
		values, differs := p.Differ[fact]
		switch {
		case !differs:
		case fact == ByAuthority:
			out = append(out, "their certificate authorities differ")
		default:
			out = append(out, fmt.Sprintf("the %s is %s in EKS, but %s in the cluster", fact, values[0], values[1]))
		}
	}
	return strings.Join(out, "; ")
}

// SameAuthority reports whether two PEM texts have a certificate in common. known is false if either text has no
// certificate.
func SameAuthority(a, b []byte) (same, known bool) {
	inA, inB := certificates(a), certificates(b)
	for _, certificate := range inA {
		if slices.ContainsFunc(inB, func(other []byte) bool { return bytes.Equal(certificate, other) }) {
			return true, true
		}
	}
	return false, len(inA) > 0 && len(inB) > 0
}

func certificates(text []byte) [][]byte {
	var out [][]byte
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			return out
		}
		out = append(out, block.Bytes)
	}
}

// EndpointID returns the first part of the host name of an EKS endpoint, which is unique to a cluster. It is empty for
// any other address.
func EndpointID(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	// The second form has IPv4 and IPv6 addresses.
	isEKS := strings.Contains(host, ".eks.amazonaws.com") || strings.Contains(host, ".eks-cluster.") && strings.HasSuffix(host, ".api.aws")
	id, _, ok := strings.Cut(host, ".")
	if !ok || !isEKS {
		return ""
	}
	return id
}
