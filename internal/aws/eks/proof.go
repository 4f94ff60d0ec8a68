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

// Local is the identity of the cluster as its API server reports it. Unknown fields are empty.
type Local struct {
	CA       []byte // PEM certificates that verify the API server
	Issuer   string // issuer of the cluster's service account tokens
	Endpoint string // URL of the API server that we connect to
	Region   string // region of our calls to AWS
}

// Mark is one fact that distinguishes clusters.
type Mark string

// The marks, most reliable first. Each cluster has its own issuer, and no proxy between us and the API server changes
// it.
const (
	ByIssuer    Mark = "issuer"
	ByEndpoint  Mark = "endpoint"
	ByAuthority Mark = "authority"
	ByRegion    Mark = "region"
)

// Marks returns all marks, most reliable first.
func Marks() []Mark { return []Mark{ByIssuer, ByEndpoint, ByAuthority, ByRegion} }

// Proof is the result of comparing the cluster that EKS describes with the cluster that we connect to.
type Proof struct {
	Same []Mark // marks that agree, most reliable first
	// Differ has the marks that differ, each with EKS's value and the cluster's. ByAuthority has no values, because
	// certificates are long.
	Differ map[Mark][]string
}

// Prove compares EKS's description with the cluster's own. A mark that one of them lacks is in neither Same nor Differ.
func (f Facts) Prove(l Local) Proof {
	p := Proof{Differ: map[Mark][]string{}}
	compare := func(mark Mark, eks, ours string) {
		switch {
		case eks == "" || ours == "":
		case eks == ours:
			p.Same = append(p.Same, mark)
		default:
			p.Differ[mark] = []string{eks, ours}
		}
	}
	compare(ByIssuer, strings.TrimSuffix(f.Issuer, "/"), strings.TrimSuffix(l.Issuer, "/"))
	compare(ByEndpoint, ClusterOf(f.Endpoint), ClusterOf(l.Endpoint))
	if theirs, err := base64.StdEncoding.DecodeString(f.CA); err == nil {
		switch same, known := SameAuthority(theirs, l.CA); {
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

// Refuted reports whether EKS certainly describes another cluster: the most reliable of the known marks differs. Less
// reliable marks do not matter, because a proxy before the API server has its own address and certificates.
func (p Proof) Refuted() bool {
	for _, mark := range Marks() {
		if _, differs := p.Differ[mark]; differs {
			return true
		}
		if slices.Contains(p.Same, mark) {
			return false
		}
	}
	return false
}

// Proven reports whether EKS certainly describes the same cluster: a mark other than the region agrees, and the marks
// are not Refuted.
func (p Proof) Proven() bool {
	return !p.Refuted() && slices.ContainsFunc(p.Same, func(m Mark) bool { return m != ByRegion })
}

// String describes the differences; it is empty if there are none.
func (p Proof) String() string {
	var out []string
	for _, mark := range Marks() {
		values, differs := p.Differ[mark]
		switch {
		case !differs:
		case mark == ByAuthority:
			out = append(out, "their certificate authorities differ")
		default:
			out = append(out, fmt.Sprintf("EKS says that its %s is %s, the cluster says %s", mark, values[0], values[1]))
		}
	}
	return strings.Join(out, "; ")
}

// SameAuthority reports whether two PEM texts have a certificate in common. known is false if one of the texts has no
// certificate.
func SameAuthority(a, b []byte) (same, known bool) {
	inA, inB := certificates(a), certificates(b)
	for _, one := range inA {
		if slices.ContainsFunc(inB, func(other []byte) bool { return bytes.Equal(one, other) }) {
			return true, true
		}
	}
	return false, len(inA) > 0 && len(inB) > 0
}

// certificates returns the blocks of a PEM text.
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

// ClusterOf returns the first part of an EKS endpoint's host name, which is unique to a cluster. It is empty for any
// other address.
func ClusterOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	isEKS := strings.Contains(host, ".eks.amazonaws.com") || strings.Contains(host, ".eks-cluster.") && strings.HasSuffix(host, ".api.aws")
	id, _, ok := strings.Cut(host, ".")
	if !ok || !isEKS {
		return ""
	}
	return id
}
