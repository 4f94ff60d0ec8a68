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
	for why, want := range map[string]string{
		"Client.UserInitiatedShutdown: User initiated shutdown":              nodeclaim.EndedByCall,
		"Client.InstanceInitiatedShutdown: Instance initiated shutdown":      nodeclaim.EndedWithin,
		"Server.SpotInstanceTermination: Spot instance termination":          "",
		"Client.VolumeLimitExceeded: Volume limit exceeded":                  "",
		"Server.InternalError: Internal error on launch":                     "",
		"Client.InvalidSnapshot.NotFound: The snapshot 'snap-1' is not here": "",
		"": "",
	} {
		if got := nodeclaim.HowEnded(why, true); got != want {
			t.Errorf("%q: %q, want %q", why, got, want)
		}
	}
	if got := nodeclaim.HowEnded("", false); got != nodeclaim.EndedUnknown {
		t.Errorf("an instance that EC2 has forgotten: %q", got)
	}
}

// TestTerminatedFromOutside: an instance that another client terminates is counted and reported once, with a way to
// find the caller. This holds whether the sweeper, a queue message or the deletion of its Node by the cloud controller
// shows it. Our own terminations are not reported.
func TestTerminatedFromOutside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"found by the sweeper", "told by the queue", "its Node is deleted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.withQueue(t)
			r.classes(t)
			r.pending(t, "web", "500m", "512Mi")
			r.plan(t)
			r.work(t)
			r.join(t)
			r.work(t)
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
			case "told by the queue":
				r.post(t, about(id, stateChange, `,"state":"terminated"`))
				r.read(t)
				r.depart(t)
			default:
				if err := r.api.Delete(t.Context(), &node); err != nil { // as the cloud controller does
					t.Fatal(err)
				}
				r.work(t)
			}
			r.ahead += 2 * time.Minute
			for range 3 {
				if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
					t.Fatal(err)
				}
			}
			if n := counted(t, r.Claims.Metrics.Foreign, "apps", nodeclaim.EndedByCall); n != 1 {
				t.Errorf("counted %d times\n%s", n, r.log)
			}
			if r.events.has("NodeClaim/TerminatedFromOutside", id, "another client called TerminateInstances",
				"aws cloudtrail lookup-events") == "" {
				t.Errorf("no event was emitted: %v", r.events.told)
			}
			if n := strings.Count(r.log.String(), "an instance was ended from outside"); n != 1 {
				t.Errorf("the log says it %d times", n)
			}
		})
	}
}

// TestOwnTerminationsAreNotForeign: deleting a claim terminates its instance by our own call.
func TestOwnTerminationsAreNotForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	if err := r.api.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.work(t)
		r.ahead += time.Minute
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	if left := len(r.claims(t)); left > 0 || r.events.has("TerminatedFromOutside") != "" {
		t.Errorf("%d claims are left; events: %q", left, r.events.has("TerminatedFromOutside"))
	}
}
