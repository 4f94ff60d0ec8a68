package controller

import (
	"testing"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestStatusChecksAndEvents: status checks and scheduled events are read from EC2, without a queue. The node of a
// failing instance is drained at once and by force. The node of an instance with a scheduled retirement is drained
// after a plan has included its pods.
func TestStatusChecksAndEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens  func(w *world.World, now time.Time, id string)
		after    time.Duration // until the status is read from EC2
		category string        // label value of the metric; empty: the node stays
		byForce  bool          // the node is drained before a plan, and its pods have a deadline
	}{
		"the instance fails": {func(w *world.World, now time.Time, id string) { w.Impair(now, id, world.InstanceCheck) },
			interruptions.FailsFor, "instance_status", true},
		"its host fails": {func(w *world.World, now time.Time, id string) { w.Impair(now, id, world.SystemCheck) },
			interruptions.FailsFor, "system_status", true},
		"the instance fails for a short time": {func(w *world.World, now time.Time, id string) { w.Impair(now, id, world.InstanceCheck) },
			interruptions.FailsFor / 2, "", false},
		"the instance has recovered": {func(w *world.World, now time.Time, id string) {
			w.Impair(now, id, world.InstanceCheck)
			w.Impair(now, id)
		}, interruptions.FailsFor, "", false},
		"scheduled retirement": {func(w *world.World, now time.Time, id string) {
			w.ScheduleEvent(now, id, "instance-retirement", "degraded hardware", now.Add(72*time.Hour))
		}, 0, "event_status", false},
		"failure and scheduled retirement": {func(w *world.World, now time.Time, id string) {
			w.ScheduleEvent(now, id, "instance-retirement", "degraded hardware", now.Add(72*time.Hour))
			w.Impair(now, id, world.SystemCheck)
		}, interruptions.FailsFor, "system_status", true},
		"a reboot in the past": {func(w *world.World, now time.Time, id string) {
			w.ScheduleEvent(now, id, "system-reboot", "a new host", now.Add(time.Minute))
		}, interruptions.FailsFor, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium", "m5.large")
			r.withQueue(t)
			r.Interruption.Queue = nil
			old := r.createServing(t, "web")[0].Name
			id := r.instances()[0].ID
			r.Do(func(w *world.World, now time.Time) { c.happens(w, now, id) })
			r.ahead += c.after
			r.checkStatus(t)
			r.drainPass(t)
			claim := r.claim(t, old)
			if leaves := claim.DeletionTimestamp != nil; leaves != c.byForce {
				t.Fatalf("the claim is deleted before a plan: %t, want the opposite\n%s", leaves, r.log)
			}
			r.plan(t)
			r.drainPass(t)
			if claim = r.claim(t, old); (claim.DeletionTimestamp != nil) != (c.category != "") {
				t.Errorf("the claim is deleted after a plan: %t, want the opposite\n%s", claim.DeletionTimestamp != nil, r.log)
			}
			if _, byForce := claim.Annotations[karpv1.AnnotationTerminationTimestamp]; byForce != c.byForce {
				t.Errorf("the claim has a deadline for its pods: %t, want the opposite", byForce)
			}
			r.checkStatus(t) // the same finding is not counted again
			n := metricCount(t, r.Claims.Metrics.Failing)
			isCounted := n == 1 && metricCount(t, r.Claims.Metrics.Failing, c.category) == 1
			if stays := c.category == ""; stays && n != 0 || !stays && !isCounted {
				t.Errorf("the metric counts %d instances, want one of category %q (empty: none)", n, c.category)
			}
			if event := r.events.find("NodeClaim/InstanceUnhealthy"); (event != "") != (c.category != "") {
				t.Errorf("the event InstanceUnhealthy is %q, want one only if the node leaves", event)
			}
		})
	}
}

// TestMostInstancesFail: if more than a fifth of the instances fail, none is replaced, because new instances would fail
// too.
func TestMostInstancesFail(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.withQueue(t)
	r.createServing(t, "web", "db")
	r.Do(func(w *world.World, now time.Time) {
		for _, i := range r.estate.Region.Instances.All() {
			w.Impair(now, i.ID, world.SystemCheck)
		}
	})
	r.ahead += interruptions.FailsFor
	r.checkStatus(t)
	r.drainPass(t)
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp != nil {
			t.Errorf("%s is deleted although most instances fail\n%s", c.Name, r.log)
		}
	}
	if r.events.find("NodeClaim/NodeRepairBlocked", "2 of 2 instances") == "" {
		t.Errorf("no event reports that nodes are not replaced: %v", r.events.emitted)
	}
}

// TestStatusChecksDenied: without the permission to read status checks, which older IAM policies of Karpenter lack,
// CheckStatus returns an error.
func TestStatusChecksDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.withQueue(t)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribeInstanceStatus"}}
	})
	if err := r.Interruption.CheckStatus(t.Context()); !awserr.Is(err, awserr.Denied) {
		t.Errorf("CheckStatus returns %v, want Denied", err)
	}
}

func (r *rig) checkStatus(t *testing.T) {
	t.Helper()
	if err := r.Interruption.CheckStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
}
