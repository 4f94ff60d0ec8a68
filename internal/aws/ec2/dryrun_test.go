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
		"valid":                       {},
		"denied CreateLaunchTemplate": {faults: denied("ec2:CreateLaunchTemplate"), want: awserr.Denied, op: "CreateLaunchTemplate"},
		"denied CreateFleet":          {faults: denied("ec2:CreateFleet"), want: awserr.Denied, op: "CreateFleet"},
		"denied RunInstances":         {faults: denied("ec2:RunInstances"), want: awserr.Denied, op: "RunInstances"},
		"unknown image": {change: func(r *ec2.DryRun) { r.Blueprint.ImageID = "ami-00000000000000000" },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.amiSelectorTerms"},
		"unknown security group": {change: func(r *ec2.DryRun) { r.Blueprint.SecurityGroups = []string{"sg-00000000000000000"} },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.securityGroupSelectorTerms"},
		"one subnet is gone": {change: func(r *ec2.DryRun) { r.Subnets = append([]string{"subnet-00000000000000000"}, r.Subnets...) }},
		"all subnets are gone": {change: func(r *ec2.DryRun) { r.Subnets = []string{"subnet-00000000000000000"} },
			want: awserr.Misconfigured, op: "RunInstances", text: "spec.subnetSelectorTerms"},
		"unknown profile": {change: func(r *ec2.DryRun) { r.Blueprint.Profile = "no-such-profile" }, want: awserr.Transient,
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
				t.Errorf("%d launch templates are left after DeleteTemplates, want none", len(left))
			}
		})
	}
}

func denied(call string) world.Faults { return world.Faults{Denials: []world.Denial{{Call: call}}} }
