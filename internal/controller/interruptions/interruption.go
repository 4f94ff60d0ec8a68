package interruptions

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// queue is the SQS queue that receives AWS's interruption messages.
type queue interface {
	Receive(ctx context.Context, wait time.Duration) ([]interruption.Message, error)
	Delete(ctx context.Context, messages []interruption.Message) (int, error)
}

// Handler handles the interruptions that AWS announces for our instances. It runs four loops:
//
//   - Listen reads the queue and marks the claims of instances that will end. The mark is an annotation of the claim, so
//     that it survives a restart, and a repeated message changes nothing.
//   - DrainMarked drains and deletes marked claims.
//   - processUnverified handles the messages that need an answer of EC2. They have a loop of their own, so that no spot
//     message waits behind a throttled call to EC2.
//   - checkStatusLoop reads failed status checks and scheduled events from EC2.
type Handler struct {
	Queue            queue                       // the interruption queue; nil: no queue is read, and only marked claims are drained
	Cache            client.Reader               // reads objects from the informers
	Cluster          loop.NodeReader             // reads Nodes and their pods from the informers
	Objects          loop.ObjectWriter           // writes objects to the API server
	Instances        loop.InstanceClient         // describes and terminates instances
	StatusChecks     StatusChecks                // status checks and scheduled events; nil: they are not read from EC2
	Shortages        *ec2.Shortages              // offerings for which EC2 reported insufficient capacity
	PlannedEvictions *nodestate.PlannedEvictions // claims whose pods were in the last plan; the provisioner writes them
	Ledger           *snapshot.Ledger            // claims created by this process that the cache may not show yet
	Batch            *loop.Batch                 // collects requests for the next plan
	ClusterUID       string                      // UID of this cluster; claims with another UID are ignored
	// Account is the AWS account of the cluster; messages from other accounts are ignored. Empty: messages from all
	// accounts are accepted.
	Account string
	Region  string             // region of the cluster; messages from other regions are ignored. Empty: all regions are accepted
	Events  loop.EventRecorder // emits events
	Metrics *metrics.Metrics   // the metrics of this process
	Log     *slog.Logger       // the log of this process
	Now     loop.Clock         // the clock; nil uses time.Now

	newest   loop.NewestVersions         // the last version of each claim that these loops wrote
	owners   owners                      // owners of instances without a claim
	failures loop.Backoff                // back-off after failures, by loop or claim
	logged   map[interruption.Cause]bool // causes of broken messages that were logged

	Wake  chan struct{} // holds a token after a claim was marked; nil until Start
	drain drainState    // state of DrainMarked

	// unverified has the messages for processUnverified. It is nil until Start; until then, Pass processes such messages
	// itself.
	unverified chan *queuedMessage
}

// ParallelCalls is how many calls receive and delete messages concurrently, while the queue holds more messages than
// one call returns. One call to SQS takes about 20 ms, so ten calls process a few thousand messages per second.
const ParallelCalls = 10

// maxUnverified is how many messages may wait for an answer of EC2. Further messages stay in the queue, and SQS delivers
// them again later.
const maxUnverified = 2000

const maxParallelClaims = 20

// Start runs the loops until ctx ends.
func (i *Handler) Start(ctx context.Context) error {
	i.Wake, i.unverified = make(chan struct{}, 1), make(chan *queuedMessage, maxUnverified)
	var loops sync.WaitGroup
	loops.Go(func() { i.DrainMarked(ctx) })
	if i.Queue != nil {
		loops.Go(func() { i.Listen(ctx) })
		loops.Go(func() { i.processUnverified(ctx) })
	}
	if i.StatusChecks != nil {
		loops.Go(func() { i.checkStatusLoop(ctx) })
	}
	loops.Wait()
	return nil
}

// Listen reads the queue and processes its messages until ctx ends.
func (i *Handler) Listen(ctx context.Context) {
	calls := 1
	for ctx.Err() == nil {
		messages, err := i.receive(ctx, calls)
		err = errors.Join(err, i.Pass(ctx, messages))
		calls = 1
		if len(messages) >= interruption.MaxBatch {
			calls = ParallelCalls
		}
		i.backOff(ctx, "queue", "cannot follow the interruption queue", err)
	}
}

// receive returns messages of the queue. With one call it waits for messages; with several calls it takes only the
// messages that are in the queue already.
func (i *Handler) receive(ctx context.Context, calls int) ([]interruption.Message, error) {
	wait := interruption.LongPoll
	if calls > 1 {
		wait = 0
	}
	got := make([][]interruption.Message, calls)
	var group errgroup.Group
	for n := range got {
		group.Go(func() error {
			var err error
			got[n], err = i.Queue.Receive(ctx, wait)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(got...), err
}

// backOff waits after an error before the next try, longer each time. Without an error it returns at once.
func (i *Handler) backOff(ctx context.Context, key, message string, err error) {
	if err == nil {
		i.failures.Clear(key)
		return
	}
	until := i.logError(ctx, key, message, err)
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(until)):
	}
}

// logError logs the error, once for each cause, and returns when to try again.
func (i *Handler) logError(ctx context.Context, key, message string, err error) time.Time {
	now := time.Now()
	if ctx.Err() != nil || isStaleState(err) {
		return now // the process is stopping, or the next pass reads fresh state
	}
	next, hint := loop.ClassifyError(err)
	i.Metrics.Failures.WithLabelValues("interruption", string(next)).Inc()
	until, isNews := i.failures.Fail(now, key, awserr.StableText(err))
	if isNews {
		i.Log.Error(message, "error", err.Error(), "hint", hint)
	}
	return until
}

// queuedMessage is a message of the queue, with the claims and instances that it is about.
type queuedMessage struct {
	message   interruption.Message
	parsed    interruption.ParsedMessage
	claims    []*karpv1.NodeClaim // our claims that the message is about
	unclaimed []string            // IDs of the instances in the message that have no claim of ours
	keep      atomic.Bool         // the message stays in the queue, and is delivered again
}

// Pass processes messages, and deletes the messages that are no longer needed.
func (i *Handler) Pass(ctx context.Context, messages []interruption.Message) error {
	defer loop.Working(ctx, loop.LoopInterruption, "messages of the queue").End()
	if len(messages) == 0 {
		return nil
	}
	// 1. read
	queued := i.parseAll(messages)
	index, err := i.readIndex(ctx)
	if err != nil {
		return err
	}
	var plain, unverified []*queuedMessage
	now := i.Now.Now()
	for _, q := range queued {
		index.resolve(q)
		i.dropOtherCapacityTypes(q)
		if index.reservations[q.parsed.Reservation] {
			i.noteEnding(q.parsed.Reservation, q.parsed.Kind, now) // even if none of our instances runs in the reservation
		}
		if q.needsEC2() {
			unverified = append(unverified, q)
		} else {
			plain = append(plain, q)
		}
	}
	// 2. decide, 3. act, 4. report
	i.processAll(ctx, plain)
	err = i.discard(ctx, plain)
	if i.unverified == nil {
		return errors.Join(err, i.verifyAndProcess(ctx, unverified))
	}
	for _, q := range unverified {
		select {
		case i.unverified <- q:
		default: // SQS delivers the message again
			i.Metrics.Left.WithLabelValues(ownerUnknown).Inc()
		}
	}
	return err
}

// dropOtherCapacityTypes removes from the message the claims whose capacity type does not fit the kind of the message.
func (i *Handler) dropOtherCapacityTypes(q *queuedMessage) {
	var kept []*karpv1.NodeClaim
	for _, c := range q.claims {
		if q.parsed.Kind.Suits(c.Labels[karpv1.LabelCapacityType]) {
			kept = append(kept, c)
			continue
		}
		id, _ := ec2.ParseProviderID(c.Status.ProviderID)
		i.ignore(q.parsed, ignoredCapacityType, []string{id})
	}
	q.claims = kept
}

// needsEC2 reports whether EC2 must be asked before the message is processed. It must be asked in two cases:
//   - The message is about instances or a reservation that none of our claims has.
//   - The message reports the end of one of our instances, which EC2 must confirm.
func (q *queuedMessage) needsEC2() bool {
	isActive := func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp == nil }
	return len(q.unclaimed) > 0 || q.parsed.Reservation != "" && len(q.claims) == 0 ||
		q.parsed.Kind.IsEnd() && slices.ContainsFunc(q.claims, isActive)
}

// processUnverified processes the messages in i.unverified, many at once, until ctx ends.
func (i *Handler) processUnverified(ctx context.Context) {
	for {
		var queued []*queuedMessage
		select {
		case <-ctx.Done():
			return
		case q := <-i.unverified:
			queued = append(queued, q)
		}
		for len(queued) < maxAskedAtOnce && len(i.unverified) > 0 {
			queued = append(queued, <-i.unverified)
		}
		i.backOff(ctx, "unverified", "cannot process interruption messages", i.verifyAndProcess(ctx, queued))
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
}

// verifyAndProcess asks EC2 about the instances in the messages, and then processes the messages. Messages about
// instances of other clusters stay in the queue.
func (i *Handler) verifyAndProcess(ctx context.Context, queued []*queuedMessage) error {
	if len(queued) == 0 {
		return nil
	}
	// 1. read
	ownerOf := i.owners.find(ctx, i.Instances, othersOf(queued), i.Now.Now())
	// 2. decide
	for _, q := range queued {
		owner, isReturned := mustReturn(q, ownerOf)
		switch {
		case isReturned:
			q.keep.Store(true)
			i.Metrics.Left.WithLabelValues(owner).Inc()
		case len(q.unclaimed) > 0 && owner == ownerNone:
			i.ignore(q.parsed, ignoredInstance, q.unclaimed)
		}
	}
	// 3. act, 4. report
	i.processAll(ctx, queued)
	return i.discard(ctx, queued)
}

func (i *Handler) parseAll(messages []interruption.Message) []*queuedMessage {
	out := make([]*queuedMessage, 0, len(messages))
	for _, m := range messages {
		q := &queuedMessage{message: m}
		var err error
		q.parsed, err = interruption.Parse(m.Body)
		var broken *interruption.ParseError
		switch {
		case errors.As(err, &broken):
			q.parsed = interruption.ParsedMessage{Kind: interruption.NoOp}
			i.Metrics.Dropped.WithLabelValues(string(broken.Cause)).Inc()
			i.reportBroken(broken)
		case q.parsed.IsUnknown():
			i.Metrics.Dropped.WithLabelValues("unknown_kind").Inc()
			i.Log.Debug("message of an unknown kind", "source", q.parsed.Source, "detailType", q.parsed.DetailType)
		}
		if cause := i.originMismatch(q.parsed); cause != "" {
			i.ignore(q.parsed, cause, q.parsed.Instances)
			q.parsed = interruption.ParsedMessage{Kind: interruption.NoOp}
		}
		i.Metrics.Received.WithLabelValues(string(q.parsed.Kind)).Inc()
		out = append(out, q)
	}
	return out
}

// Causes for ignoring a message that could be parsed: values of the metric's label cause.
const (
	ignoredAccount      = "other_account"
	ignoredRegion       = "other_region"
	ignoredCapacityType = "capacity_type"
	ignoredInstance     = "no_nodeclaim"
)

// originMismatch returns which part of the message's origin, account or region, differs from the cluster's; empty if both
// match. A missing account or region differs too: EventBridge writes both into every event, so a message without them
// does not come from EventBridge.
func (i *Handler) originMismatch(parsed interruption.ParsedMessage) string {
	switch {
	case parsed.Kind == interruption.NoOp:
		return ""
	case i.Account != "" && parsed.Account != i.Account:
		return ignoredAccount
	case i.Region != "" && parsed.Region != i.Region:
		return ignoredRegion
	}
	return ""
}

// ignore counts and logs that a message is not processed for these instances. why is the cause. EventBridge rules send
// the events of all instances of the account, so events of instances without a NodeClaim are logged only at level debug.
func (i *Handler) ignore(parsed interruption.ParsedMessage, why string, instances []string) {
	level := slog.LevelWarn
	if why == ignoredInstance {
		level = slog.LevelDebug
	}
	i.Metrics.Dropped.WithLabelValues(why).Inc()
	i.Log.Log(context.Background(), level, "ignored an interruption message", "cause", why, "kind", string(parsed.Kind),
		"instances", instances,
		"account", parsed.Account, "region", parsed.Region, "hint", "check who may send to the queue, and which rules send to it: docs/interruption.md")
}

// reportBroken logs messages that cannot be parsed: at level warn once for each cause, then at level debug, because a
// sender may send many of them.
func (i *Handler) reportBroken(b *interruption.ParseError) {
	level := slog.LevelDebug
	if !i.logged[b.Cause] {
		if i.logged == nil {
			i.logged = map[interruption.Cause]bool{}
		}
		i.logged[b.Cause] = true
		level = slog.LevelWarn
	}
	i.Log.Log(context.Background(), level, "dropped a message that is not an AWS event", "cause", string(b.Cause), "detail", b.Detail,
		"hint", "check who may send to the queue; joiner_interruption_dropped_messages_total counts such messages")
}

// processAll processes the messages. It processes messages about the same claim one after another, and different claims
// concurrently. If a message is not done for a claim, it stays in the queue.
func (i *Handler) processAll(ctx context.Context, queued []*queuedMessage) {
	now := i.Now.Now()
	byClaim := map[string][]*queuedMessage{}
	claims := map[string]*karpv1.NodeClaim{}
	for _, q := range queued {
		for _, c := range q.claims {
			byClaim[c.Name] = append(byClaim[c.Name], q)
			claims[c.Name] = c
		}
	}
	var group errgroup.Group
	group.SetLimit(maxParallelClaims)
	for name, ofClaim := range byClaim {
		group.Go(func() error {
			for _, q := range ofClaim {
				isDone, err := i.handle(ctx, claims[name], q, now)
				if err != nil {
					i.logError(ctx, "process", "cannot process an interruption message about NodeClaim "+name, err)
				}
				if !isDone || err != nil {
					q.keep.Store(true)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are logged above
}

// discard deletes the messages from the queue, except those with keep.
func (i *Handler) discard(ctx context.Context, queued []*queuedMessage) error {
	var done []interruption.Message
	for _, q := range queued {
		if !q.keep.Load() {
			done = append(done, q.message)
			if !q.message.Sent.IsZero() {
				i.Metrics.QueueDuration.Observe(i.Now.Now().Sub(q.message.Sent).Seconds())
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(ParallelCalls)
	for batch := range slices.Chunk(done, interruption.MaxBatch) {
		group.Go(func() error {
			n, err := i.Queue.Delete(ctx, batch)
			i.Metrics.Deleted.Add(float64(n))
			return err
		})
	}
	return group.Wait()
}
