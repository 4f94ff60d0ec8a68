package checks_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestPastProblems: an error of EC2 leads to no finding if a later instance of the class became a node, if the
// NodeClaim was launched later, or if the class does not exist any more.
func TestPastProblems(t *testing.T) {
	t.Parallel()
	addFailed := func(s *situation) { // an instance that ended because of the KMS key of its volumes
		s.e.Instances.Value = append(s.e.Instances.Value,
			Instance{ID: "i-0", State: "terminated", StateReason: "Client.InternalError: Client error on launch",
				Launched: noon.Add(-2 * time.Hour), Class: "default", UID: "uid-1"})
	}
	cases := map[string]struct {
		check  string
		change func(*situation)
		want   Verdict // of the check
	}{
		"no later instance": {"LAUNCH-2", func(s *situation) {
			addFailed(s)
			s.e.Instances.Value[2].Launched = noon.Add(-time.Minute) // i-0
		}, Broken},
		"later instance is a node": {"LAUNCH-2", addFailed, Fine},
		"later instance was a node and was terminated": {"LAUNCH-2", func(s *situation) {
			s.e.Instances.Value, s.e.Nodes.Value, s.e.Claims.Value = nil, nil, nil
			addFailed(s)
			s.e.Instances.Value = append(s.e.Instances.Value,
				Instance{ID: "i-9", State: "terminated", StateReason: "Client.UserInitiatedShutdown: User initiated shutdown",
					Launched: noon.Add(-time.Hour), Class: "default", UID: "uid-1"})
		}, Fine},
		"later instance ended by itself too": {"LAUNCH-2", func(s *situation) {
			s.e.Instances.Value, s.e.Nodes.Value, s.e.Claims.Value = nil, nil, nil
			addFailed(s)
			later := s.e.Instances.Value[0]
			later.ID, later.Launched = "i-9", noon.Add(-time.Hour)
			s.e.Instances.Value = append(s.e.Instances.Value, later)
		}, Broken},
		"class does not exist any more": {"LAUNCH-2", func(s *situation) {
			addFailed(s)
			s.e.Instances.Value[2].Class, s.e.Instances.Value[2].Launched = "old", noon
		}, Fine},
		"NodeClaim is not launched": {"LAUNCH-5", func(s *situation) {
			s.addEvent("NodeClaim", "claim-2", "InsufficientCapacity", "VcpuLimitExceeded: limit of 8")
			s.e.Claims.Value[1].Conditions[0].Status = "Unknown"
		}, Broken},
		"NodeClaim is deleted, no later instance": {"LAUNCH-5", func(s *situation) {
			s.e.Instances.Value = slices.DeleteFunc(s.e.Instances.Value,
				func(i Instance) bool { return !i.Launched.Before(noon.Add(-30 * time.Second)) })
			s.addEvent("NodeClaim", "claim-9", "InsufficientCapacity", "VcpuLimitExceeded: limit of 8")
			s.e.Events.Value[len(s.e.Events.Value)-1].Last = noon.Add(-30 * time.Second)
		}, Broken},
		"NodeClaim is deleted, later instance": {"LAUNCH-5", func(s *situation) {
			s.addEvent("NodeClaim", "claim-9", "InsufficientCapacity", "VcpuLimitExceeded: limit of 8")
			s.e.Events.Value[len(s.e.Events.Value)-1].Last = noon.Add(-30 * time.Second)
			s.e.Instances.Value[0].Launched = noon.Add(-10 * time.Second)
		}, Fine},
		"NodeClaim was launched later": {"LAUNCH-5", func(s *situation) {
			s.addEvent("NodeClaim", "claim-2", "InsufficientCapacity", "VcpuLimitExceeded: limit of 8")
			s.e.Claims.Value[1].Conditions[0].Since = noon.Add(time.Second)
		}, Fine},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			c.change(s)
			found := Diagnose(s.e)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == c.check })
			if i < 0 || found[i].Verdict != c.want {
				t.Errorf("want the verdict %[2]s of %[1]s:\n%[3]s", c.check, c.want, failures(found))
			}
		})
	}
}
