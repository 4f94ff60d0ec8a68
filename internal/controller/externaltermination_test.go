package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
)

// TestHowEnded: EC2's state reason distinguishes terminations by API call from terminations by AWS.
func TestHowEnded(t *testing.T) {
	t.Parallel()
	for stateReason, want := range map[string]string{
		"Client.UserInitiatedShutdown: User initiated shutdown":              nodeclaim.EndedByCall,
		"Client.InstanceInitiatedShutdown: Instance initiated shutdown":      nodeclaim.EndedWithin,
		"Server.SpotInstanceTermination: Spot instance termination":          "",
		"Client.VolumeLimitExceeded: Volume limit exceeded":                  "",
		"Server.InternalError: Internal error on launch":                     "",
		"Client.InvalidSnapshot.NotFound: The snapshot 'snap-1' is not here": "",
		"": "",
	} {
		if got := nodeclaim.HowEnded(stateReason, true); got != want {
			t.Errorf("HowEnded(%q) is %q, want %q", stateReason, got, want)
		}
	}
	if got := nodeclaim.HowEnded("", false); got != nodeclaim.EndedUnknown {
		t.Errorf("an instance that EC2 no longer returns: %q, want %q", got, nodeclaim.EndedUnknown)
	}
}

// TestTerminatedFromOutside: if another client terminates an instance, this is counted and reported once, with a
// command that finds the client.
func TestTerminatedFromOutside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"found by the sweeper", "reported by the queue", "its Node is deleted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.withQueue(t)
			r.reconcileClassAndPool(t)
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			r.join(t)
			r.reconcileClaims(t)
			id := r.instances()[0].ID
			if _, err := ec2.NewFromConfig(r.cfg()).TerminateInstances(t.Context(),
				&ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
				t.Fatal(err)
			}
			node := r.nodes(t)[0]
			switch name {
			case "found by the sweeper":
				node.Status.Conditions = nil // its kubelet does not report
				if err := r.api.Status().Update(t.Context(), &node); err != nil {
					t.Fatal(err)
				}
			case "reported by the queue":
				r.send(t, instanceMessage(id, stateChange, `,"state":"terminated"`))
				r.processQueue(t)
				r.drainPass(t)
			case "its Node is deleted":
				if err := r.api.Delete(t.Context(), &node); err != nil { // as the cloud controller manager does
					t.Fatal(err)
				}
				r.reconcileClaims(t)
			}
			r.ahead += 2 * time.Minute
			for range 3 { // more passes must not report it again
				if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
					t.Fatal(err)
				}
			}
			if n := metricCount(t, r.Claims.Metrics.ForeignTerminations, "apps", nodeclaim.EndedByCall); n != 1 {
				t.Errorf("%d terminations are counted, want 1\n%s", n, r.log)
			}
			if r.events.find("NodeClaim/TerminatedFromOutside", id, "another client called TerminateInstances",
				"aws cloudtrail lookup-events") == "" {
				t.Errorf("no event reports the termination: %v", r.events.emitted)
			}
			if n := strings.Count(r.log.String(), "an instance was terminated from outside Joiner"); n != 1 {
				t.Errorf("the termination is logged %d times, want once", n)
			}
		})
	}
}

func TestOwnTerminationsAreNotForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	if err := r.api.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.reconcileClaims(t)
		r.ahead += time.Minute
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	if left := len(r.claims(t)); left > 0 || r.events.find("TerminatedFromOutside") != "" {
		t.Errorf("%d claims are left, want none; event %q, want none", left, r.events.find("TerminatedFromOutside"))
	}
}
