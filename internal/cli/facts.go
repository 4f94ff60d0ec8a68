package cli

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
)

// completeCluster validates the flags about the cluster, and sets placeholders for missing facts. It sets
// isNamePlaceholder if the name is a placeholder, and hasPlaceholder if any fact is a placeholder.
func (r *renderFlags) completeCluster() error {
	c := &r.cluster
	if err := r.clusterProblem(); err != nil {
		return err
	}
	r.isNamePlaceholder = c.Name == ""
	for _, fact := range []struct {
		value       *string
		placeholder string
	}{
		{&c.Name, "CLUSTER"}, {&c.Endpoint, "https://ENDPOINT"}, {&c.CA, "Q0E="}, {&c.ServiceCIDR, "10.100.0.0/16"}, {&c.DNS, "10.100.0.10"},
	} { // "Q0E=" is the base64 of "CA"
		r.hasPlaceholder = r.hasPlaceholder || *fact.value == ""
		*fact.value = cmp.Or(*fact.value, fact.placeholder)
	}
	if _, err := netip.ParsePrefix(c.ServiceCIDR); err != nil {
		return fmt.Errorf("--service-cidr %q: want a range of addresses, for instance 10.100.0.0/16", c.ServiceCIDR)
	}
	dns, err := netip.ParseAddr(c.DNS)
	if err != nil {
		return fmt.Errorf("--cluster-dns %q: want an address, for instance 10.100.0.10", c.DNS)
	}
	c.IPv6 = dns.Is6()
	return nil
}

// clusterProblem returns an error about the first invalid flag about the cluster or its nodes; nil if there is none.
func (r *renderFlags) clusterProblem() error {
	c := r.cluster
	if c.Name != "" && !clusterPattern.MatchString(c.Name) {
		return fmt.Errorf("--cluster-name (CLUSTER_NAME) %q: want the name of an EKS cluster: letters, digits, - and _", c.Name)
	}
	if address, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || address.Scheme != "https" || address.Host == "") {
		return fmt.Errorf("--cluster-endpoint %q: want the address of the API server, https://HOST", c.Endpoint)
	}
	if c.CA != "" && !isCertificate(c.CA) {
		return fmt.Errorf("--cluster-ca %q: want the base64 of a PEM certificate: aws eks describe-cluster --name NAME --query cluster.certificateAuthority.data --output text",
			shortened(c.CA))
	}
	if r.reservedENIs < 0 {
		return fmt.Errorf("--reserved-enis %d: want a count of network interfaces, from 0", r.reservedENIs)
	}
	return nil
}

// isCertificate reports whether the text is the base64 of a PEM certificate.
func isCertificate(text string) bool {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	return block != nil && block.Type == "CERTIFICATE"
}

// shortened returns a text of up to 20 bytes unchanged, else its first 20 bytes and an ellipsis.
func shortened(text string) string {
	const maxBytes = 20
	if len(text) <= maxBytes {
		return text
	}
	return text[:maxBytes] + "…"
}
