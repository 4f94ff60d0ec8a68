package checks_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestDeniedDNS: without the permission to read cluster DNS, FG-6 is unknown and names the permission.
func TestDeniedDNS(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.pending("fargate-scheduler", "fargate-ip-1", "lookup sts.us-east-1.amazonaws.com: i/o timeout")
	s.e.Identity.Value.DNSReady, s.e.Identity.Value.DNSAbsent, s.e.Identity.Value.DNSWhy = false, Denied, "to list endpointslices in kube-system"
	findings := Diagnose(s.e)
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Check == "FG-6" })
	if i < 0 || findings[i].Verdict != Unknown ||
		!strings.Contains(findings[i].Cause, "the permission to list endpointslices in kube-system is missing") {
		t.Errorf("want an unknown finding of FG-6 that names the permission: %+v", findings)
	}
}
