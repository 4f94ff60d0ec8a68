package checks_test

import (
	"slices"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestFallbackByClass: on instances of one EC2NodeClass, the kubelet rejects a flag, which explains why a script fails:
// BOOT-13 does not report the script. On instances of another EC2NodeClass, only the script fails: BOOT-13
// reports it.
func TestFallbackByClass(t *testing.T) {
	t.Parallel()
	const refused, failed = "kubelet: failed to parse kubelet flag", "cloud-init: Failed to run module scripts-user"
	s := (&situation{healthy()}).addConsoleLine(refused).addConsoleLine(failed)
	if got := brokenSubjects(s, "BOOT-13"); len(got) > 0 {
		t.Errorf("BOOT-13 reports %v, although BOOT-9 explains why the script fails", got)
	}
	other := s.e.Instances.Value[1]
	other.ID, other.Claim, other.Class, other.Console.Value = "i-3", "claim-3", "other", failed+"\n"
	s.e.Instances.Value = append(s.e.Instances.Value, other)
	claim := s.e.Claims.Value[1]
	claim.Name, claim.UID, claim.Class, claim.Pool, claim.ProviderID = "claim-3", "uid-claim-3", "other", "other", "aws:///us-east-1a/i-3"
	s.e.Claims.Value = append(s.e.Claims.Value, claim)
	class, pool := *s.class(), *s.pool()
	class.Name, class.UID, pool.Name, pool.UID, pool.Class = "other", "uid-other", "other", "uid-other-pool", "other"
	s.e.Classes.Value, s.e.Pools.Value = append(s.e.Classes.Value, class), append(s.e.Pools.Value, pool)
	if got, want := brokenSubjects(s, "BOOT-13"), []string{"EC2NodeClass other"}; !slices.Equal(got, want) {
		t.Errorf("BOOT-13 reports %v, want %v", got, want)
	}
	if got, want := brokenSubjects(s, "BOOT-9"), []string{"EC2NodeClass default"}; !slices.Equal(got, want) {
		t.Errorf("BOOT-9 reports %v, want %v", got, want)
	}
}

func brokenSubjects(s *situation, check string) (out []string) {
	for _, f := range Diagnose(s.e) {
		if f.Check == check && f.Verdict == Broken {
			out = append(out, f.Subject)
		}
	}
	return out
}
