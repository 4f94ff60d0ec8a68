package ec2_test

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestDryRun: a dry run finds the errors of a launch, and launches nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ec2.DryRun)
		faults world.Faults

		want     awserr.Kind // kind of the error; empty: no error
		op, text string      // call and text that the error names
	}{
		"valid":               {},
		"no launch templates": {faults: denied("ec2:CreateLaunchTemplate"), want: awserr.Denied, op: "CreateLaunchTemplate"},
		"no fleets":           {faults: denied("ec2:CreateFleet"), want: awserr.Denied, op: "CreateFleet"},
		"no instances":        {faults: denied("ec2:RunInstances"), want: awserr.Denied, op: "RunInstances"},
		"no such image": {change: func(t *ec2.DryRun) { t.Blueprint.ImageID = "ami-00000000000000000" },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.amiSelectorTerms"},
		"no such group": {change: func(t *ec2.DryRun) { t.Blueprint.SecurityGroups = []string{"sg-00000000000000000"} },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.securityGroupSelectorTerms"},
		"one subnet is gone": {change: func(t *ec2.DryRun) { t.Subnets = append([]string{"subnet-00000000000000000"}, t.Subnets...) }},
		"all subnets are gone": {change: func(t *ec2.DryRun) { t.Subnets = []string{"subnet-00000000000000000"} },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.subnetSelectorTerms"},
		"unknown profile": {change: func(t *ec2.DryRun) { t.Blueprint.Profile = "no-such-profile" }, want: awserr.Transient,
			op: "RunInstances", text: "spec.instanceProfile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, "m5.large")
			s.change(func(_ *world.Region, w *world.World) { w.Faults = c.faults })
			d := s.client(t, "uid-1")
			run := ec2.DryRun{NodeClass: "default", Tags: map[string]string{"team": "a"}, Blueprint: s.blueprint("amd64"),
				InstanceType: "m5.large", Subnets: []string{s.estate.PrivateSubnets[0].ID, s.estate.PrivateSubnets[1].ID}}
			if c.change != nil {
				c.change(&run)
			}
			err := d.DryRun(t.Context(), run)
			if e := awserr.Of(err); c.want == "" && err != nil || c.want != "" &&
				(e == nil || e.Kind != c.want || e.Op != c.op || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("%v; want an error of kind %q from %s with %q", err, c.want, c.op, c.text)
			}
			if n := len(s.liveInstances()); n > 0 {
				t.Errorf("%d instances were launched, want none", n)
			}
			if _, err := d.DeleteTemplates(t.Context(), "default"); err != nil {
				t.Fatal(err)
			}
			if left := s.estate.Region.LaunchTemplates.All(); len(left) > 0 {
				t.Errorf("%d launch templates are left after the class was deleted, want none", len(left))
			}
		})
	}
}

// denied returns the faults of a world in which the call is denied.
func denied(call string) world.Faults { return world.Faults{Denials: []world.Denial{{Call: call}}} }
