package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/loop"
)

// TestSweep covers which instances and claims a sweep removes, which of them the breaker holds, and which instances the
// sweep only reports.
func TestSweep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// instance parses an instance: "ID [ours|samename|legacy|foreign] [young] [terminating] [for=CLAIM]".
	instance := func(line string) ec2.Instance {
		words := strings.Fields(line)
		i := ec2.Instance{ID: words[0], Zone: "z", State: ec2.Running, Launched: now.Add(-time.Hour), Tags: map[string]string{}}
		for _, w := range words[1:] {
			switch {
			case w == "ours":
				i.Owner = ec2.Ours
			case w == "samename":
				i.Owner = ec2.SameName
			case w == "legacy":
				i.Owner = ec2.Legacy
			case w == "foreign":
				i.Owner = ec2.Foreign
			case w == "young":
				i.Launched = now.Add(-gc.SweepGrace)
			case w == "terminating":
				i.State = ec2.ShuttingDown
			case strings.HasPrefix(w, "for="):
				i.Tags[ec2.TagNodeClaim] = w[4:]
			default:
				panic(w)
			}
		}
		return i
	}
	// claim parses a claim: "NAME [on=INSTANCE] [young] [deleted]".
	claim := func(line string) *karpv1.NodeClaim {
		words := strings.Fields(line)
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: words[0], CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		c.Spec.NodeClassRef = testPool().Spec.Template.Spec.NodeClassRef
		launched := now.Add(-time.Hour)
		for _, w := range words[1:] {
			switch {
			case strings.HasPrefix(w, "on="):
				c.Status.ProviderID = "aws:///z/" + w[3:]
			case w == "young":
				launched = now.Add(-time.Second)
			case w == "deleted":
				at := metav1.NewTime(now)
				c.DeletionTimestamp = &at
			default:
				panic(w)
			}
		}
		if c.Status.ProviderID != "" {
			c.StatusConditions().SetUnknown(now.Add(-time.Hour), karpv1.ConditionLaunched, "x", "")
			c.StatusConditions().SetTrue(launched, karpv1.ConditionLaunched)
		}
		return c
	}
	// many formats n lines, with the number of the line in place of both %d.
	many := func(n int, format string) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(format, i, i))
		}
		return out
	}
	for name, c := range map[string]struct {
		instances, claims []string
		ready             string       // IDs of the instances whose Nodes are ready
		breaker           loop.Breaker // zero fields have their defaults

		wantInstances, wantClaims, wantHeld, wantSameName, wantLegacy string
	}{
		"all instances have claims": {
			instances: []string{"i-1 ours for=a"}, claims: []string{"a on=i-1"},
		},
		"an instance without a claim": {
			instances: []string{"i-1 ours for=gone", "i-2 ours"}, wantInstances: "i-1 i-2",
		},
		"an instance too young to be an orphan": {
			instances: []string{"i-1 ours young"},
		},
		"an instance that its claim has not recorded yet": {
			instances: []string{"i-1 ours for=a"}, claims: []string{"a"},
		},
		"an instance whose claim is being deleted": {
			instances: []string{"i-1 ours for=a"}, claims: []string{"a deleted"},
		},
		"a second instance for the same claim": {
			instances: []string{"i-1 ours for=a", "i-2 ours for=a"}, claims: []string{"a on=i-1"}, wantInstances: "i-2",
		},
		"an instance that is terminating": {
			instances: []string{"i-1 ours terminating"},
		},
		"instances of other owners": {
			instances: []string{"i-1 samename", "i-2 foreign", "i-3 legacy", "i-4 legacy", "i-5 legacy"},
			claims:    []string{"a on=i-4"}, ready: "i-5", wantSameName: "i-1", wantLegacy: "i-3",
		},
		"a claim without an instance": {
			claims: []string{"a on=i-1", "b on=i-2"}, ready: "i-2", wantClaims: "a",
		},
		"a claim whose instance is terminating": {
			instances: []string{"i-1 ours terminating"}, claims: []string{"a on=i-1"}, wantClaims: "a",
		},
		"a young claim, and a deleted one": {
			claims: []string{"a on=i-1 young", "b on=i-2 deleted", "c"},
		},
		// The default breaker opens at more than ten orphans that are also more than a quarter of the objects.
		"ten of ten instances without a claim": {
			instances: many(10, "i-%d ours for=c%d"), wantInstances: "i-0 i-1 i-2 i-3 i-4 i-5 i-6 i-7 i-8 i-9",
		},
		"eleven of eleven instances without a claim": {
			instances: many(11, "i-%d ours for=c%d"), wantHeld: "instance 11/11",
		},
		"eleven of a hundred instances without a claim": {
			instances: append(many(89, "i-%d ours for=c%d"), many(11, "i-lost%d ours for=lost%d")...), claims: many(89, "c%d on=i-%d"),
			wantInstances: "i-lost0 i-lost1 i-lost2 i-lost3 i-lost4 i-lost5 i-lost6 i-lost7 i-lost8 i-lost9 i-lost10",
		},
		"eleven of eleven with a breaker share of 1": {
			instances: many(11, "i-%d ours for=c%d"), breaker: loop.Breaker{Share: 1},
			wantInstances: "i-0 i-1 i-2 i-3 i-4 i-5 i-6 i-7 i-8 i-9 i-10",
		},
		"two of two with a breaker count of 1": {
			instances: many(2, "i-%d ours for=c%d"), breaker: loop.Breaker{Count: 1}, wantHeld: "instance 2/2",
		},
		"EC2 returns no instances": {
			claims: many(50, "c%d on=i-%d"), wantHeld: "nodeclaim 50/50",
		},
	} {
		in := gc.SweepInput{Now: now, Breaker: c.breaker, Nodes: map[string]bool{}}
		for _, line := range c.instances {
			in.Instances = append(in.Instances, instance(line))
		}
		for _, line := range c.claims {
			in.Claims = append(in.Claims, claim(line))
		}
		for _, id := range strings.Fields(c.ready) {
			in.Nodes["aws:///z/"+id] = true
		}
		out := gc.Sweep(in)
		var claims, held []string
		for _, orphan := range out.Claims {
			claims = append(claims, orphan.Name)
		}
		for _, h := range out.Held {
			held = append(held, fmt.Sprintf("%s %d/%d", h.Kind, h.Found, h.Total))
		}
		for what, pair := range map[string][2]string{
			"instances": {ids(out.Instances), c.wantInstances}, "claims": {strings.Join(claims, " "), c.wantClaims},
			"held": {strings.Join(held, " "), c.wantHeld}, "same name": {ids(out.SameName), c.wantSameName},
			"legacy": {ids(out.Legacy), c.wantLegacy},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s %q, want %q", name, what, pair[0], pair[1])
			}
		}
	}
}

func ids(instances []ec2.Instance) string {
	var out []string
	for _, i := range instances {
		out = append(out, i.ID)
	}
	return strings.Join(out, " ")
}
