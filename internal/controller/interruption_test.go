package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// newSpotRig returns a rig with the interruption queue, and with one spot node, on which one pod runs.
func newSpotRig(t *testing.T, types ...string) *rig {
	t.Helper()
	r := newRig(t, types...)
	r.withQueue(t)
	pool := &karpv1.NodePool{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeSpot}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.bind(t)
	if i := r.instances(); len(i) != 1 || !i[0].Spot || len(r.nodes(t)) != 1 {
		t.Fatalf("launched %+v, want one spot instance\n%s", i, r.log)
	}
	r.connectEventBridge()
	return r
}

// TestSpotInterruption: EC2 announces the interruption of a spot instance. The node drains only after a replacement for
// its pod was planned. Then the instance is terminated.
func TestSpotInterruption(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium", "m5.large")
	old, claim := r.instances()[0], r.claims(t)[0]
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, old.ID) })
	if n := r.processQueue(t); n != 1 || r.queueLength(t) != 0 {
		t.Fatalf("read %d messages and %d are left, want 1 and 0", n, r.queueLength(t))
	}
	if r.Market.Shortages.Until(r.now(), old.Type, old.Zone, "spot").IsZero() {
		t.Errorf("no shortage of %s in %s is recorded\n%s", old.Type, old.Zone, r.log)
	}

	if left := r.drainPass(t); left != 1 || !isDisruptedNode(r.nodes(t)[0]) {
		t.Fatalf("%d claims wait, want 1; taints: %v, want the one of disrupted nodes", left, r.nodes(t)[0].Spec.Taints)
	}
	if left := r.drainPass(t); left != 1 || !r.Claims.Batch.ClosesNow() {
		t.Fatal("no plan is requested")
	}
	if left := r.drainPass(t); left != 1 || r.claims(t)[0].DeletionTimestamp != nil {
		t.Fatal("the node drains before anything was planned")
	}
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 2 {
		t.Fatalf("%d claims after the plan, want the old one and its replacement\n%s", len(claims), r.log)
	}
	for _, c := range claims {
		if c.DeletionTimestamp != nil {
			t.Errorf("%s is deleted before the replacement is launched", c.Name)
		}
	}
	r.reconcileClaims(t) // reconciling the marked claim changes nothing
	if pods := r.countPodsOn(t, claim.Status.NodeName); pods != 1 {
		t.Errorf("%d pods are on the node, want 1: the node does not drain yet", pods)
	}

	if left := r.drainPass(t); left != 0 {
		t.Fatalf("%d claims wait, want none", left)
	}
	r.finishDeleted(t)
	for _, c := range r.claims(t) {
		if c.Name == claim.Name {
			t.Errorf("the claim of the interrupted node is not gone\n%s", r.log)
		}
	}
	if i := r.instances(); len(i) != 1 || i[0].ID == old.ID || i[0].Type == old.Type && i[0].Zone == old.Zone {
		t.Errorf("instances now: %+v, want one of another offering than %s in %s", i, old.Type, old.Zone)
	}
	for _, want := range []string{"SpotInterrupted", "TerminatingOnInterruption"} {
		if r.events.find("NodeClaim/"+want) == "" || r.events.find("Node/"+want) == "" {
			t.Errorf("no event %s on NodeClaim and Node: %v", want, r.events.emitted)
		}
	}
	m := r.Claims.Metrics
	for name, got := range map[string]int{
		"received":  metricCount(t, m.Received, "spot_interrupted"),
		"disrupted": metricCount(t, m.Disrupted, "spot_interrupted", "apps", "spot", "graceful"),
	} {
		if got != 1 {
			t.Errorf("the metric %s counts %d, want 1", name, got)
		}
	}
	// Then EC2 reports the termination of the instance. This message has no effect, and is deleted.
	r.processQueue(t)
	if n := r.queueLength(t); n != 0 {
		t.Errorf("%d messages are left in the queue, want none", n)
	}
	if got, deleted := metricCount(t, m.QueueDuration), metricCount(t, m.Deleted); got != deleted || deleted < 2 {
		t.Errorf("the time in the queue was measured for %d messages, and %d were deleted; want both for at least 2", got, deleted)
	}
}

// isDisruptedNode reports whether the Node has the taint of disrupted nodes and is excluded from load balancers.
func isDisruptedNode(node corev1.Node) bool {
	return nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) && node.Labels[karpv1.LabelExcludeFromLoadBalancers] != ""
}

func (r *rig) countPodsOn(t testing.TB, node string) int {
	t.Helper()
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pods.Items {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func eventBridgeMessage(source, detailType, detail string) string {
	return `{"version":"0","id":"1","source":"` + source + `","detail-type":"` + detailType + `","account":"` +
		emulator.DefaultAccount + `","region":"` + testRegion + `","time":"2026-03-01T12:00:00Z","detail":` + detail + `}`
}

// instanceMessage returns a message of EC2 about one instance. more are further JSON fields, each after a comma.
func instanceMessage(id, detailType string, more ...string) string {
	return eventBridgeMessage("aws.ec2", detailType, `{"instance-id":"`+id+`"`+strings.Join(more, "")+`}`)
}

// healthMessage returns a message of AWS Health about a scheduled change of the instance.
func healthMessage(id, more string) string {
	return eventBridgeMessage("aws.health", "AWS Health Event",
		`{"service":"EC2","eventTypeCategory":"scheduledChange"`+more+`,"affectedEntities":[{"entityValue":"`+id+`"}]}`)
}

const stateChange = "EC2 Instance State-change Notification"

func TestKindsOfMessages(t *testing.T) {
	t.Parallel()
	const reservation = "cr-0123456789abcdef0"
	for name, c := range map[string]struct {
		body   func(id string) string
		before func(r *rig, id string) // runs before the message is sent; may be nil
		kind   string                  // the kind under which the message is counted
		event  string                  // the event that is emitted on the NodeClaim; empty: not checked
		leaves bool                    // the claim is deleted
		stays  bool                    // the message stays in the queue
	}{
		"rebalance": {body: func(id string) string { return instanceMessage(id, "EC2 Instance Rebalance Recommendation") },
			kind: "rebalance_recommendation", event: "SpotRebalanceRecommendation"},
		"scheduled change": {body: func(id string) string { return healthMessage(id, "") },
			kind: "scheduled_change", event: "InstanceUnhealthy", leaves: true},
		"a scheduled change in the past": {body: func(id string) string { return healthMessage(id, `,"endTime":"Fri, 20 Mar 2020 06:02:51 GMT"`) },
			kind: "scheduled_change"},
		"reservation": {body: func(id string) string {
			return instanceMessage(id, "EC2 Capacity Reservation Instance Interruption Warning")
		},
			kind: "capacity_reservation_interrupted", event: "CapacityReservationInstanceInterrupted", leaves: true},
		"capacity block": {body: func(string) string {
			return eventBridgeMessage("aws.ec2", "Capacity Block Reservation Expiration Warning", `{"capacity-reservation-id":"`+reservation+`"}`)
		}, kind: "capacity_block_expiring", event: "CapacityReservationInstanceInterrupted", leaves: true},
		"a capacity block of another cluster": {body: func(string) string {
			return eventBridgeMessage("aws.ec2", "Capacity Block Reservation Expiration Warning", `{"capacity-reservation-id":"cr-0123456789abcdef9"}`)
		}, kind: "capacity_block_expiring", stays: true},
		"terminated": {body: func(id string) string { return instanceMessage(id, stateChange, `,"state":"terminated"`) },
			before: func(r *rig, id string) {
				r.Do(func(w *world.World, now time.Time) { w.FailHost(now, id) })
			}, kind: "instance_terminated", event: "InstanceTerminating", leaves: true},
		"terminated, but still running in EC2": {body: func(id string) string { return instanceMessage(id, stateChange, `,"state":"terminated"`) },
			kind: "instance_terminated", stays: true},
		"stopped, but running in EC2 now": {body: func(id string) string { return instanceMessage(id, stateChange, `,"state":"stopped"`) },
			kind: "instance_stopped", stays: true},
		"running": {body: func(id string) string { return instanceMessage(id, stateChange, `,"state":"running"`) }, kind: "no_op"},
		"unknown": {body: func(id string) string { return instanceMessage(id, "EC2 Instance Dreams") }, kind: "no_op"},
		"broken":  {body: func(string) string { return `{"source":` }, kind: "no_op"},
		"an instance that EC2 does not know": {body: func(string) string {
			return instanceMessage("i-00000000000000001",
				"EC2 Spot Instance Interruption Warning")
		}, kind: "spot_interrupted", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSpotRig(t, "t3.medium")
			id, claim := r.instances()[0].ID, r.claims(t)[0]
			claim.Labels[awsv1.LabelCapacityReservationID] = reservation
			if strings.HasPrefix(c.kind, "capacity_") {
				claim.Labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeReserved
			}
			if err := r.api.Update(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				r.Do(func(*world.World, time.Time) { r.estate.Region.EventQueues = nil }) // EC2 sends no message of its own
				c.before(r, id)
			}
			r.send(t, c.body(id))
			if n := r.processQueue(t); n != 1 {
				t.Fatalf("read %d messages, want 1", n)
			}
			for range 3 {
				r.drainPass(t)
				r.plan(t)
			}
			if stays := r.queueLength(t) == 1; stays != c.stays {
				t.Errorf("the message stays in the queue: %t, want the opposite\n%s", stays, r.log)
			}
			if n := metricCount(t, r.Claims.Metrics.Received, c.kind); n != 1 {
				t.Errorf("%d messages of kind %s are counted, want 1", n, c.kind)
			}
			leaves := true
			for _, current := range r.claims(t) {
				leaves = leaves && (current.Name != claim.Name || current.DeletionTimestamp != nil)
			}
			if leaves != c.leaves {
				t.Errorf("the claim is deleted: %t, want the opposite\n%s", leaves, r.log)
			}
			if event := r.events.find("NodeClaim/" + c.event); c.event != "" && event == "" {
				t.Errorf("no event %s: %v", c.event, r.events.emitted)
			}
			if event := r.events.find("TerminatingOnInterruption"); (event != "") != c.leaves {
				t.Errorf("event TerminatingOnInterruption: %q, want one: %t", event, c.leaves)
			}
		})
	}
}

// TestMessagesOfOtherClusters: a message about an instance of another cluster with the same name is never deleted. A
// message about an instance of an unknown owner is deleted when it is received for the third time, so that other
// clusters can receive it first.
func TestMessagesOfOtherClusters(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium")
	awsClient, err := ec2.New(r.cfg(), ec2.Cluster{Name: testCluster, UID: "another-uid"})
	if err != nil {
		t.Fatal(err)
	}
	ours := r.instances()[0]
	var foreign string
	r.Do(func(w *world.World, now time.Time) {
		r.estate.Region.EventQueues = nil
		tags := maps.Clone(ours.Tags)
		for k := range tags {
			if strings.HasPrefix(k, "aws:") { // only AWS sets these
				delete(tags, k)
			}
		}
		tags[ec2.TagUID] = "another-uid"
		got, err := r.estate.Region.Launches.RunInstances(now, world.RunRequest{
			Data: world.TemplateData{ImageID: ours.ImageID, InstanceType: "t3.medium"}, SubnetID: ours.SubnetID, Min: 1, Max: 1,
			Tags: world.Tagging{"instance": tags},
		})
		if err != nil {
			t.Fatal(err)
		}
		foreign = got[0].ID
	})
	if i, err := awsClient.Instance(t.Context(), foreign); err != nil || i.Owner != ec2.Ours {
		t.Fatalf("the other cluster's client finds %+v, %v, want an instance of its own", i, err)
	}
	r.send(t, instanceMessage(foreign, "EC2 Spot Instance Interruption Warning"))
	r.send(t, instanceMessage("i-00000000000000001", "EC2 Spot Instance Interruption Warning"))
	left := []int{}
	for range 8 {
		r.processQueue(t)
		left = append(left, r.queueLength(t))
		r.ahead += interruption.VisibilityTimeout + time.Second
	}
	if want := []int{2, 2, 1, 1, 1, 1, 1, 1}; !slices.Equal(left, want) {
		t.Errorf("messages in the queue after each read: %v, want %v", left, want)
	}
	if c := r.claims(t); len(c) != 1 || c[0].Annotations[nodestate.AnnotationInterrupted] != "" {
		t.Errorf("the claim of this cluster is marked as interrupted: %+v", c[0].Annotations)
	}
	m := r.Claims.Metrics
	if n, w := metricCount(t, m.Left, "namesake"), metricCount(t, m.Left, "nobody"); n != 8 || w != 2 {
		t.Errorf("messages were left in the queue %d times for a cluster with the same name, %d times for an unknown owner; want 8 and 2", n, w)
	}
	if n := metricCount(t, m.Deleted); n != 1 {
		t.Errorf("%d messages were deleted, want 1", n)
	}
	if event := r.events.find("Interrupted"); event != "" {
		t.Errorf("an event reports an interruption: %s", event)
	}
}

// TestCopiedClaim: a message does not affect a claim that was copied from another cluster and has that cluster's UID.
func TestCopiedClaim(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium")
	claim := r.claims(t)[0]
	claim.Annotations[karpv1.KeyClusterUID] = "another-uid"
	if err := r.api.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, r.estate.Region.Instances.All()[0].ID) })
	r.processQueue(t)
	r.drainPass(t)
	if c := r.claims(t)[0]; c.Annotations[nodestate.AnnotationInterrupted] != "" || c.DeletionTimestamp != nil {
		t.Errorf("the claim is marked as interrupted or deleted: %+v", c.Annotations)
	}
}

// TestRedelivered: many messages about one node, duplicated and out of order, lead to one replacement of the node.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium", "m5.large")
	old := r.instances()[0]
	r.Do(func(w *world.World, now time.Time) {
		w.Faults.Redeliver, w.Faults.Reorder = 1, true
		w.RecommendRebalance(now, old.ID)
		for range 12 {
			w.AnnounceRetirement(now, old.ID)
		}
		w.Interrupt(now, old.ID)
	})
	until := time.Time{}
	for turn := range 6 {
		if n := r.processQueue(t); turn == 0 && n != 28 {
			t.Errorf("read %d messages, want 14 twice", n)
		}
		if turn == 0 {
			until = r.Market.Shortages.Until(r.now(), old.Type, old.Zone, "spot")
			for range 4 {
				r.drainPass(t)
				r.plan(t)
			}
		}
		r.Do(func(w *world.World, now time.Time) { w.AnnounceRetirement(now, old.ID) })
		r.ahead += 5 * time.Second
	}
	m := r.Claims.Metrics
	if n := metricCount(t, m.Disrupted); n != 1 {
		t.Errorf("%d claims were disrupted, want 1", n)
	}
	if again := r.Market.Shortages.Until(r.now(), old.Type, old.Zone, "spot"); until.IsZero() || !again.Equal(until) {
		t.Errorf("the shortage lasts until %s, and after further messages until %s; want the same time", until, again)
	}
	if n := len(r.claims(t)); n != 2 {
		t.Errorf("%d claims, want the old one and one replacement\n%s", n, r.log)
	}
	r.finishDeleted(t)
	for range 3 {
		r.processQueue(t)
		r.ahead += interruption.VisibilityTimeout + time.Second
	}
	if n := r.queueLength(t); n != 0 {
		t.Errorf("%d messages are left, want none", n)
	}
}

// TestMarkOutlivesTheProcess: if a process dies after it has marked a claim as interrupted and deleted the message, the
// next process replaces the node.
func TestMarkOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium", "m5.large")
	old := r.instances()[0]
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, old.ID) })
	r.processQueue(t)
	r.start(t)
	// A new, empty queue: the next process finds no message about the node.
	r.Do(func(*world.World, time.Time) { _ = r.estate.Region.SQS.DeleteQueue(testQueue) })
	r.withQueue(t)
	for range 2 {
		r.drainPass(t)
	}
	r.plan(t)
	if left := r.drainPass(t); left != 0 {
		t.Errorf("%d claims wait, want none", left)
	}
	deleted := 0
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp != nil {
			deleted++
		}
	}
	if n := len(r.claims(t)); n != 2 || deleted != 1 {
		t.Errorf("%d claims, %d of them deleted; want 2 and 1\n%s", n, deleted, r.log)
	}
}

func TestMissingPlanHoldsNothingUp(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium")
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, r.estate.Region.Instances.All()[0].ID) })
	r.processQueue(t)
	for range 3 {
		r.drainPass(t)
	}
	if r.claims(t)[0].DeletionTimestamp != nil {
		t.Fatal("the node did not wait for a plan")
	}
	r.ahead += interruptions.MaxPlanWait
	if left := r.drainPass(t); left != 0 || r.claims(t)[0].DeletionTimestamp == nil {
		t.Errorf("%d claims wait; want none, and the claim deleted", left)
	}
}

// spotClaim creates a claim for an instance that EC2 does not know, and returns the ID of the instance.
func (r *rig) spotClaim(t testing.TB, n int) (id string) {
	t.Helper()
	id = fmt.Sprintf("i-%017x", n)
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("spot-%d", n), Finalizers: []string{karpv1.FinalizerTermination},
			Labels: map[string]string{
				karpv1.LabelNodePool: "apps", karpv1.LabelCapacityType: "spot",
				corev1.LabelInstanceTypeStable: "t3.medium", corev1.LabelTopologyZone: "us-east-1a",
			}},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: testPool().Spec.Template.Spec.NodeClassRef},
	}
	claim.Status.ProviderID = "aws:///us-east-1a/" + id
	if err := r.api.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	return id
}

// flood sends n messages to the queue: about a hundred claims of the cluster, about other instances that start, of an
// unknown kind, or unreadable.
func (r *rig) flood(t testing.TB, n int) {
	t.Helper()
	var ids []string
	for i := range 100 {
		ids = append(ids, r.spotClaim(t, i+1))
	}
	r.Do(func(_ *world.World, now time.Time) {
		for i := range n {
			id := ids[i%len(ids)]
			body := []string{
				instanceMessage(id, "EC2 Spot Instance Interruption Warning"), instanceMessage(id, "EC2 Instance Rebalance Recommendation"),
				instanceMessage(fmt.Sprintf("i-f%016x", i), stateChange, `,"state":"pending"`), instanceMessage(fmt.Sprintf("i-f%016x", i), stateChange,
					`,"state":"running"`),
				healthMessage(id, ""), eventBridgeMessage("aws.s3", "Object Created", "{}"), `{"source":`,
			}[i%7]
			if _, err := r.estate.Region.SQS.SendMessage(now, testQueue, body); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (r *rig) drainQueue(t testing.TB) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Interruption.Listen(ctx)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	m := r.Interruption.Metrics // SQS deletes a message before the loop gets the response and counts it
	for (r.queueLength(t) > 0 || metricCount(t, m.Deleted) < metricCount(t, m.Received)) && ctx.Err() == nil {
		<-tick.C
	}
	stop()
	<-ended
	if n := r.queueLength(t); n > 0 {
		t.Fatalf("%d messages are left\n%s", n, r.log)
	}
}

// TestManyMessages: the loop makes as few calls as SQS allows: one to receive ten messages, and one to delete them. It
// writes no claim twice.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.withQueue(t)
	const n = 2000
	r.flood(t, n)
	before := r.Calls()
	r.drainQueue(t)
	calls := r.Calls()
	receives, deletes := calls["sqs:ReceiveMessage"]-before["sqs:ReceiveMessage"], calls["sqs:DeleteMessageBatch"]-before["sqs:DeleteMessageBatch"]
	// The receivers run in parallel, and each may get some incomplete or empty batches.
	if receives > n/10+3*interruptions.ParallelCalls || deletes > n/10+interruptions.ParallelCalls || deletes < n/10 {
		t.Errorf("%d calls to receive %d messages, and %d to delete them; want about one for ten messages each", receives, n, deletes)
	}
	if describes := calls["ec2:DescribeInstances"] - before["ec2:DescribeInstances"]; describes != 0 {
		t.Errorf("%d calls of DescribeInstances for instances that start, want none", describes)
	}
	if writes := r.fuse.count("patch nodeclaim"); writes != 100 {
		t.Errorf("%d writes to mark 100 claims, want 100", writes)
	}
	m := r.Claims.Metrics
	if got, deleted := metricCount(t, m.Received), metricCount(t, m.Deleted); got != n || deleted != n {
		t.Errorf("received %d and deleted %d messages, want %d", got, deleted, n)
	}
	if broken, unknown := metricCount(t, m.Dropped, "unreadable"), metricCount(t, m.Dropped, "unknown_kind"); broken != n/7 || unknown != n/7 {
		t.Errorf("dropped %d unreadable messages and %d of an unknown kind, want %d of each", broken, unknown, n/7)
	}
	if lines := strings.Count(r.log.String(), "dropped a message"); lines != 1 {
		t.Errorf("%d log lines about dropped messages, want 1", lines)
	}
}

// BenchmarkMessages reads a thousand messages from the emulated queue, over HTTP on localhost, and deletes them.
func BenchmarkMessages(b *testing.B) {
	const n = 1000
	for range b.N {
		b.StopTimer()
		r := newRig(b, "t3.medium")
		r.withQueue(b)
		r.flood(b, n)
		b.StartTimer()
		r.drainQueue(b)
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "messages/s")
}

// laggingCache is a cache that lags behind: its first three lists show claims without their annotations.
type laggingCache struct {
	client.Reader
	lists atomic.Int32
}

func (b *laggingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := b.Reader.List(ctx, list, opts...)
	if claims, ok := list.(*karpv1.NodeClaimList); ok && b.lists.Add(1) <= 3 {
		for n := range claims.Items {
			claims.Items[n].Annotations = nil
		}
	}
	return err
}

// TestMarkThatTheCacheDoesNotShowYet: a claim that was marked a moment ago is drained, although the cache does not show
// the mark yet.
func TestMarkThatTheCacheDoesNotShowYet(t *testing.T) {
	t.Parallel()
	r := newSpotRig(t, "t3.medium", "m5.large")
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, r.estate.Region.Instances.All()[0].ID) })
	ctx, stop := context.WithCancel(t.Context())
	r.Interruption.Wake = make(chan struct{}, 1) // Start does the same
	r.processQueue(t)
	r.Interruption.Cache = &laggingCache{Reader: r.api}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Interruption.DrainMarked(ctx)
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for !isDisruptedNode(r.nodes(t)[0]) && time.Now().Before(deadline) {
		<-tick.C
	}
	stop()
	<-ended
	if !isDisruptedNode(r.nodes(t)[0]) {
		t.Errorf("the node is not tainted 20 s after the interruption message\n%s", r.log)
	}
}
