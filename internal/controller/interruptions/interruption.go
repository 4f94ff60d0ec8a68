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

// Handler handles interruptions of our instances that AWS announces. It runs four loops:
//
//   - Listen reads the queue and marks the claims of instances that will end. The mark is an annotation of the claim, so
//     that it survives a restart, and a repeated message changes nothing.
//   - DrainMarked drains and deletes marked claims.
//   - verifyOwners handles messages that need an answer of EC2, so that no spot message waits behind a throttled call to
//     EC2.
//   - examineAll reads failed status checks and scheduled events from EC2.
type Handler struct {
	Queue      queue                       // the interruption queue; nil: no queue is read, and only marked claims are drained
	Cache      client.Reader               // reads objects from the informers
	Cluster    loop.NodeReader             // reads cluster state from the informers
	Objects    loop.ObjectWriter           // writes objects to the API server
	Machines   loop.InstanceClient         // describes and terminates instances
	Troubles   StatusChecks                // status checks and scheduled events; nil: they are not read from EC2
	Shortages  *ec2.Shortages              // offerings for which EC2 reported insufficient capacity
	Departures *nodestate.PlannedEvictions // claims whose pods the last plan has provided for; the provisioner writes them
	Ledger     *snapshot.Ledger            // claims created by this process that the cache may not show yet
	Batch      *loop.Batch                 // collects requests for the next plan
	ClusterUID string                      // UID of this cluster; claims with another UID are ignored
	// Account is the AWS account of the cluster; messages from other accounts are ignored. Empty: messages from all
	// accounts are accepted.
	Account string
	Region  string             // region of the cluster; messages from other regions are ignored. Empty: all regions are accepted
	Events  loop.EventRecorder // emits events
	Metrics *metrics.Metrics   // the metrics of this process
	Log     *slog.Logger       // the log of this process
	Now     loop.Clock         // the clock; nil uses time.Now

	newest   loop.NewestVersions         // claims as this loop wrote them last
	owners   owners                      // owners of instances without a claim
	failures loop.Backoff                // by loop or claim
	logged   map[interruption.Cause]bool // causes of broken messages that were logged

	Wake      chan struct{}       // holds a token after a claim was marked; nil until Start
	departing departing           // state of DrainMarked
	doubts    chan *queuedMessage // messages for verifyOwners; nil until Start: Pass then judges them itself
}

// ParallelCalls is how many calls receive and delete messages concurrently, while the queue holds more messages than
// one call returns. One call to SQS takes about 20 ms, so ten calls process a few thousand messages per second.
const ParallelCalls = 10

// maxPendingDoubts is how many messages may wait for an answer of EC2. SQS delivers further messages again later.
const maxPendingDoubts = 2000

// parallelNotices is how many claims are marked or deleted concurrently.
const parallelNotices = 20

// Start runs the loops until ctx ends.
func (i *Handler) Start(ctx context.Context) error {
	i.Wake, i.doubts = make(chan struct{}, 1), make(chan *queuedMessage, maxPendingDoubts)
	var parts sync.WaitGroup
	parts.Go(func() { i.DrainMarked(ctx) })
	if i.Queue != nil {
		parts.Go(func() { i.Listen(ctx) })
		parts.Go(func() { i.verifyOwners(ctx) })
	}
	if i.Troubles != nil {
		parts.Go(func() { i.examineAll(ctx) })
	}
	parts.Wait()
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
		i.pause(ctx, "queue", "cannot follow the interruption queue", err)
	}
}

// receive waits for messages with one call, or takes the messages that are already in the queue with several calls.
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

// pause waits after an error before the next try, longer each time. Without an error it returns at once.
func (i *Handler) pause(ctx context.Context, key, message string, err error) {
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
	next, hint := loop.SortError(err)
	i.Metrics.Failures.WithLabelValues("interruption", string(next)).Inc()
	until, isNews := i.failures.Fail(now, key, awserr.Lasting(err))
	if isNews {
		i.Log.Error(message, "error", err.Error(), "hint", hint)
	}
	return until
}

// queuedMessage is a message of the queue with the objects that it is about.
type queuedMessage struct {
	message interruption.Message
	notice  interruption.Notice // the parsed message
	claims  []*karpv1.NodeClaim // our claims that the message is about
	others  []string            // IDs of the instances in the message that none of our claims has
	keep    atomic.Bool         // the message stays in the queue, and is delivered again
}

// Pass processes messages, and deletes the messages that are no longer needed.
func (i *Handler) Pass(ctx context.Context, messages []interruption.Message) error {
	defer loop.Working(ctx, loop.LoopInterruption, "messages of the queue").End()
	if len(messages) == 0 {
		return nil
	}
	// 1. read
	queued := i.open(messages)
	index, err := i.readIndex(ctx)
	if err != nil {
		return err
	}
	var plain, doubted []*queuedMessage
	now := i.Now.Now()
	for _, l := range queued {
		index.resolve(l)
		i.checkCapacityType(l)
		if index.reservations[l.notice.Reservation] {
			i.noteEnding(l.notice.Reservation, l.notice.Kind, now) // also if none of our instances runs in the reservation
		}
		if l.isDoubtful() {
			doubted = append(doubted, l)
		} else {
			plain = append(plain, l)
		}
	}
	// 2. decide, 3. act, 4. report
	i.processAll(ctx, plain)
	err = i.discard(ctx, plain)
	if i.doubts == nil {
		return errors.Join(err, i.judge(ctx, doubted))
	}
	for _, l := range doubted {
		select {
		case i.doubts <- l:
		default:
			i.Metrics.Left.WithLabelValues(ownerUnknown).Inc()
		}
	}
	return err
}

// checkCapacityType removes from the message the claims whose capacity type does not fit the kind of the message.
func (i *Handler) checkCapacityType(l *queuedMessage) {
	var kept []*karpv1.NodeClaim
	for _, c := range l.claims {
		if l.notice.Kind.Suits(c.Labels[karpv1.LabelCapacityType]) {
			kept = append(kept, c)
			continue
		}
		id, _ := ec2.ParseProviderID(c.Status.ProviderID)
		i.ignore(l.notice, ignoredCapacityType, []string{id})
	}
	l.claims = kept
}

// isDoubtful reports whether EC2 must be asked before the message is processed: the message is about instances that
// none of our claims has, or it reports the end of one of our instances, which EC2 must confirm.
func (l *queuedMessage) isDoubtful() bool {
	isAlive := func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp == nil }
	return len(l.others) > 0 || l.notice.Reservation != "" && len(l.claims) == 0 ||
		l.notice.Kind.IsEnd() && slices.ContainsFunc(l.claims, isAlive)
}

// verifyOwners judges messages as they arrive, many at once, until ctx ends.
func (i *Handler) verifyOwners(ctx context.Context) {
	for {
		var queued []*queuedMessage
		select {
		case <-ctx.Done():
			return
		case l := <-i.doubts:
			queued = append(queued, l)
		}
		for len(queued) < askedAtOnce && len(i.doubts) > 0 {
			queued = append(queued, <-i.doubts)
		}
		i.pause(ctx, "doubts", "cannot process interruption messages", i.judge(ctx, queued))
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
}

// judge processes messages that need a call to EC2. Messages about instances of other clusters stay in the queue.
func (i *Handler) judge(ctx context.Context, queued []*queuedMessage) error {
	if len(queued) == 0 {
		return nil
	}
	// 1. read
	owners := i.owners.find(ctx, i.Machines, othersOf(queued), i.Now.Now())
	// 2. decide
	for _, l := range queued {
		whose, isLeft := leave(l, owners)
		switch {
		case isLeft:
			l.keep.Store(true)
			i.Metrics.Left.WithLabelValues(whose).Inc()
		case len(l.others) > 0 && whose == ownerNobody:
			i.ignore(l.notice, ignoredInstance, l.others)
		}
	}
	// 3. act, 4. report
	i.processAll(ctx, queued)
	return i.discard(ctx, queued)
}

// open parses the messages, and counts them.
func (i *Handler) open(messages []interruption.Message) []*queuedMessage {
	out := make([]*queuedMessage, 0, len(messages))
	for _, m := range messages {
		l := &queuedMessage{message: m}
		var err error
		l.notice, err = interruption.Parse(m.Body)
		var broken *interruption.Broken
		switch {
		case errors.As(err, &broken):
			l.notice = interruption.Notice{Kind: interruption.NoOp}
			i.Metrics.Dropped.WithLabelValues(string(broken.Cause)).Inc()
			i.reportBroken(broken)
		case l.notice.Unknown():
			i.Metrics.Dropped.WithLabelValues("unknown_kind").Inc()
			i.Log.Debug("message of an unknown kind", "source", l.notice.Source, "detailType", l.notice.DetailType)
		}
		if what := i.elsewhere(l.notice); what != "" {
			i.ignore(l.notice, what, l.notice.Instances)
			l.notice = interruption.Notice{Kind: interruption.NoOp}
		}
		i.Metrics.Received.WithLabelValues(string(l.notice.Kind)).Inc()
		out = append(out, l)
	}
	return out
}

// Why a message that could be parsed is ignored: values of the metric's label cause.
const (
	ignoredAccount      = "other_account"
	ignoredRegion       = "other_region"
	ignoredCapacityType = "capacity_type"
	ignoredInstance     = "no_nodeclaim"
)

// elsewhere returns which part of the message's origin, account or region, differs from the cluster's; empty if both
// match. EventBridge writes account and region into every event, so a message without them does not come from
// EventBridge.
func (i *Handler) elsewhere(n interruption.Notice) string {
	switch {
	case n.Kind == interruption.NoOp:
		return ""
	case i.Account != "" && n.Account != i.Account:
		return ignoredAccount
	case i.Region != "" && n.Region != i.Region:
		return ignoredRegion
	}
	return ""
}

// ignore counts and logs a message that is not processed, or its part about these instances. EventBridge rules send the
// events of all instances of the account, so events of instances without a NodeClaim are logged only at level debug.
func (i *Handler) ignore(n interruption.Notice, why string, instances []string) {
	level := slog.LevelWarn
	if why == ignoredInstance {
		level = slog.LevelDebug
	}
	i.Metrics.Dropped.WithLabelValues(why).Inc()
	i.Log.Log(context.Background(), level, "ignored an interruption message", "cause", why, "kind", string(n.Kind), "instances", instances,
		"account", n.Account, "region", n.Region, "hint", "check who may send to the queue, and which rules send to it: docs/interruption.md")
}

// reportBroken logs messages that cannot be parsed: at level warn once for each cause, then at level debug, because a
// sender may send many of them.
func (i *Handler) reportBroken(b *interruption.Broken) {
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

// processAll processes the messages; messages about the same claim one after another. A failure for one claim does not
// stop the other claims. Its messages stay in the queue.
func (i *Handler) processAll(ctx context.Context, queued []*queuedMessage) {
	now := i.Now.Now()
	byClaim := map[string][]*queuedMessage{}
	claims := map[string]*karpv1.NodeClaim{}
	for _, l := range queued {
		for _, c := range l.claims {
			byClaim[c.Name] = append(byClaim[c.Name], l)
			claims[c.Name] = c
		}
	}
	var group errgroup.Group
	group.SetLimit(parallelNotices)
	for name, ofClaim := range byClaim {
		group.Go(func() error {
			for _, l := range ofClaim {
				isDone, err := i.handle(ctx, claims[name], l, now)
				if err != nil {
					i.logError(ctx, "process", "cannot process an interruption message about NodeClaim "+name, err)
				}
				if !isDone || err != nil {
					l.keep.Store(true)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are logged above
}

// discard deletes the messages that need not stay in the queue.
func (i *Handler) discard(ctx context.Context, queued []*queuedMessage) error {
	var done []interruption.Message
	for _, l := range queued {
		if !l.keep.Load() {
			done = append(done, l.message)
			if !l.message.Sent.IsZero() {
				i.Metrics.QueueDuration.Observe(i.Now.Now().Sub(l.message.Sent).Seconds())
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
