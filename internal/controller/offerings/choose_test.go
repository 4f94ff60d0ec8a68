package offerings

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// offered makes types from lines "a cpu=2 arch=amd64 gpu: x/od=10 y/spot=4!": name, options, and offerings as
// ZONE/CAPACITY-TYPE=PRICE, where "!" marks an unavailable offering.
func offered(lines ...string) []catalog.Type {
	var out []catalog.Type
	for _, line := range lines {
		head, tail, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		t := catalog.Type{Name: words[0], Labels: requirements.Labels{catalog.LabelInstanceType: words[0], catalog.LabelArch: "amd64"},
			Allocatable: resources.Amounts{CPU: 2000, Memory: 1 << 30, Pods: 10}}
		for _, w := range words[1:] {
			switch {
			case strings.HasPrefix(w, "cpu="):
				fmt.Sscan(w[4:], &t.Allocatable.CPU)
				t.Allocatable.CPU *= 1000
			case strings.HasPrefix(w, "arch="):
				t.Labels[catalog.LabelArch] = w[5:]
			case w == "gpu":
				t.Labels[awsv1.LabelInstanceGPUCount] = "1"
			}
		}
		for _, w := range strings.Fields(tail) {
			place, price, _ := strings.Cut(w, "=")
			zone, capacityType, _ := strings.Cut(place, "/")
			o := catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Available: !strings.HasSuffix(price, "!")}
			if capacityType == "spot" {
				o.CapacityType = catalog.Spot
			}
			fmt.Sscan(strings.TrimSuffix(price, "!"), &o.Price)
			t.Offerings = append(t.Offerings, o)
		}
		out = append(out, t.WithOfferings(t.Offerings))
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	needs := func(reqs ...requirements.Requirement) requirements.Requirements {
		all, invalid := requirements.All(reqs...)
		if invalid != nil {
			t.Fatalf("invalid requirement %+v", invalid)
		}
		return all
	}
	is := func(key string, values ...string) requirements.Requirement {
		return requirements.Requirement{Key: key, Operator: requirements.In, Values: values}
	}
	types := offered("a: x/od=10 y/od=10 x/spot=4 y/spot=12", "b arch=arm64: x/od=8 x/spot=9", "c cpu=8 gpu: x/od=50 y/od=50!")
	for name, c := range map[string]struct {
		accepted requirements.Requirements
		cpu      int64
		variety  bool
		want     string
	}{
		"everything: spot, but not above the cheapest on-demand price": {want: "spot: a/x=4"},
		"only on-demand": {
			accepted: needs(is(catalog.LabelCapacityType, catalog.OnDemand)), want: "on-demand: b/x=8 a/x=10 a/y=10 c/x=50",
		},
		"only spot: no price limit": {
			accepted: needs(is(catalog.LabelCapacityType, catalog.Spot)), want: "spot: a/x=4 b/x=9 a/y=12",
		},
		"one zone": {
			accepted: needs(is(catalog.LabelZone, "y"), is(catalog.LabelCapacityType, catalog.OnDemand)), want: "on-demand: a/y=10",
		},
		"a zone without a subnet": {accepted: needs(is(catalog.LabelZone, "z")), want: "on-demand:"},
		"named types, one of which EC2 does not offer": {
			accepted: needs(is(catalog.LabelInstanceType, "b", "zz"), is(catalog.LabelCapacityType, catalog.OnDemand)), want: "on-demand: b/x=8",
		},
		"architecture":                    {accepted: needs(is(catalog.LabelArch, "arm64")), want: "on-demand: b/x=8"},
		"requests that fit only one type": {cpu: 4000, want: "on-demand: c/x=50"},
		"a label that only some types have": {
			accepted: needs(requirements.Requirement{Key: awsv1.LabelInstanceGPUCount, Operator: requirements.Exists}), want: "on-demand: c/x=50",
		},
		"a label that types must not have": {
			accepted: needs(requirements.Requirement{Key: awsv1.LabelInstanceGPUCount, Operator: requirements.DoesNotExist},
				is(catalog.LabelCapacityType, catalog.OnDemand)),
			want: "on-demand: b/x=8 a/x=10 a/y=10",
		},
		"a label that neither types nor offerings define": {accepted: needs(is("team", "a")), want: "spot: a/x=4"},
		"variety: spot above the on-demand price too": {
			variety: true, want: "spot: a/x=4 b/x=9 a/y=12",
		},
	} {
		subnets := map[string]vpc.Subnet{"x": {ID: "s-x"}, "y": {ID: "s-y"}}
		capacityType, picks := Choose(types, LaunchRequirements{Accepted: c.accepted, requests: resources.Amounts{CPU: c.cpu},
			variety: c.variety, Subnets: subnets})
		got := capacityType + ":"
		for _, p := range picks {
			got += fmt.Sprintf(" %s/%s=%d", p.Type.Name, p.Offering.Zone, p.Offering.Price)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestChooseNamesNoMoreThanEC2Takes(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("t%02d: x/od=%d y/od=%d", i, 10+i, 10+i))
	}
	subnets := map[string]vpc.Subnet{"x": {}, "y": {}}
	_, picks := Choose(offered(lines...), LaunchRequirements{Subnets: subnets})
	// The 60 choices (ec2.MaxChoices) are the 30 cheapest types in two zones.
	if len(picks) != ec2.MaxChoices || picks[len(picks)-1].Type.Name != "t29" {
		t.Errorf("%d picks, the last is %s; want ec2.MaxChoices, the last t29", len(picks), picks[len(picks)-1].Type.Name)
	}
	_, picks = Choose(offered(lines...), LaunchRequirements{Subnets: subnets, variety: true})
	types := map[string]bool{}
	for _, p := range picks {
		types[p.Type.Name] = true
	}
	if len(picks) != ec2.MaxChoices || len(types) != 50 {
		t.Errorf("with variety: %d picks of %d types, want ec2.MaxChoices of 50 types", len(picks), len(types))
	}
}

func TestIsOfType(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"team": false, "karpenter.sh/nodepool": false, "karpenter.k8s.aws/ec2nodeclass": false, "karpenter.k8s.aws/instance-tenancy": false,
		corev1.LabelTopologyZone: false, corev1.LabelArchStable: true, "karpenter.k8s.aws/instance-gpu-count": true,
	} {
		if got := isOfType(key); got != want {
			t.Errorf("isOfType(%s) is %t, want %t", key, got, want)
		}
	}
}
