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

// Handler handles interruptions of our instances that AWS announces. It has four parts.
//
// The first reads the queue and marks the claims of instances that will end. The mark is on the claim, so that it survives
// this process, and a repeated message changes nothing. The second drains and deletes marked claims: see departure.go. The
// third handles messages that need an answer of EC2, so that no spot message waits behind a call that EC2 throttles. The
// fourth asks EC2 for status checks and scheduled events: see trouble.go.
type Handler struct {
	Queue      queue                       // nil: there is none; claims that are marked without it are drained all the same
	Cache      client.Reader               // informers
	Cluster    loop.NodeReader             // reads cluster state from the informers
	Objects    loop.ObjectWriter           // writes objects to the API server
	Machines   loop.InstanceClient         // describes and terminates instances
	Troubles   StatusChecks                // nil: EC2 is not asked for status checks and scheduled events
	Shortages  *ec2.Shortages              // offerings for which EC2 reported insufficient capacity
	Departures *nodestate.PlannedEvictions // of the Provisioner
	Ledger     *snapshot.Ledger            // claims in flight that this process created
	Batch      *loop.Batch                 // the pods that wait for the next plan
	ClusterUID string                      // a claim with another one is not ours
	// of the cluster; messages from other accounts are ignored. Empty: it is not known, and not compared
	Account string
	Region  string             // of the cluster; the same applies
	Tell    loop.EventRecorder // emits events
	Metrics *metrics.Metrics   // the metrics of this process
	Log     *slog.Logger       // the log of this process
	Now     loop.Clock         // the clock; nil uses time.Now

	newest   loop.NewestVersions
	owners   owners
	failures loop.Backoff
	told     map[interruption.Cause]bool // what was said of broken messages, so that it is said once

	Wake      chan struct{} // holds a token after a claim was marked; nil until Start
	departing departing
	doubts    chan *queuedMessage // for the third part; nil until Start: the first judges
}

// ParallelCalls is how many calls receive and delete messages at once, while the queue holds more than one call returns.
// A call takes SQS some 20 ms, so that is a few thousand messages a second.
const ParallelCalls = 10

// How many messages may wait for an answer of EC2. Those that find no room come again.
const mostDoubted = 2000

// parallelNotices is how many claims are marked or deleted at once.
const parallelNotices = 20

// Start runs the parts until ctx ends.
func (i *Handler) Start(ctx context.Context) error {
	i.Wake, i.doubts = make(chan struct{}, 1), make(chan *queuedMessage, mostDoubted)
	var parts sync.WaitGroup
	parts.Go(func() { i.SeeOff(ctx) })
	if i.Queue != nil {
		parts.Go(func() { i.Listen(ctx) })
		parts.Go(func() { i.askAround(ctx) })
	}
	if i.Troubles != nil {
		parts.Go(func() { i.examineAll(ctx) })
	}
	parts.Wait()
	return nil
}

// Listen reads the queue.
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

// receive waits for messages, or makes several calls to take those that are there.
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
	until := i.complain(ctx, key, message, err)
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(until)):
	}
}

// complain logs the error, once for each cause, and returns when to try again.
func (i *Handler) complain(ctx context.Context, key, message string, err error) time.Time {
	now := time.Now()
	if ctx.Err() != nil || isPassing(err) {
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

// queuedMessage is a message, and what is known of it.
type queuedMessage struct {
	message interruption.Message
	notice  interruption.Notice
	claims  []*karpv1.NodeClaim // our claims that it is about
	others  []string            // instances that it is about and that none of our claims has
	keep    atomic.Bool         // it stays in the queue, and is received again
}

// Pass handles messages, and deletes those that are no longer needed.
func (i *Handler) Pass(ctx context.Context, messages []interruption.Message) error {
	defer loop.Working(ctx, loop.LoopInterruption, "messages of the queue").End()
	if len(messages) == 0 {
		return nil
	}
	// 1. read
	letters := i.open(messages)
	book, err := i.book(ctx)
	if err != nil {
		return err
	}
	var plain, doubted []*queuedMessage
	now := i.Now.Now()
	for _, l := range letters {
		book.address(l)
		i.checkCapacityType(l)
		if book.reservations[l.notice.Reservation] {
			i.noteEnding(l.notice.Reservation, l.notice.Kind, now) // also when nothing of ours runs in it yet
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

// checkCapacityType removes from the message the claims whose instance has a capacity type that such a message cannot be about.
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

// isDoubtful reports whether what to do with the letter depends on more than our own claims: it is about others'
// instances, or says of ours what EC2 must confirm.
func (l *queuedMessage) isDoubtful() bool {
	isAlive := func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp == nil }
	return len(l.others) > 0 || l.notice.Reservation != "" && len(l.claims) == 0 ||
		l.notice.Kind.IsEnd() && slices.ContainsFunc(l.claims, isAlive)
}

// askAround judges letters as they come, many at once, until ctx ends.
func (i *Handler) askAround(ctx context.Context) {
	for {
		var letters []*queuedMessage
		select {
		case <-ctx.Done():
			return
		case l := <-i.doubts:
			letters = append(letters, l)
		}
		for len(letters) < askedAtOnce && len(i.doubts) > 0 {
			letters = append(letters, <-i.doubts)
		}
		i.pause(ctx, "doubts", "cannot process interruption messages", i.judge(ctx, letters))
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
}

// judge processes messages that need a call of EC2, and leaves those about instances of other clusters in the queue.
func (i *Handler) judge(ctx context.Context, letters []*queuedMessage) error {
	if len(letters) == 0 {
		return nil
	}
	// 1. read
	owners := i.owners.find(ctx, i.Machines, othersOf(letters), i.Now.Now())
	// 2. decide
	for _, l := range letters {
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
	i.processAll(ctx, letters)
	return i.discard(ctx, letters)
}

// open reads the messages, and counts them.
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

// elsewhere returns which part of a message's origin is not the cluster's; empty if both are. EventBridge puts account and
// region into every event, so that a message without them does not come from there.
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

// ignore counts and logs a message that is not processed, or the part of it that is about these instances. The EventBridge
// rules send the events of all instances of the account, so those of instances without a NodeClaim are logged at level
// debug.
func (i *Handler) ignore(n interruption.Notice, why string, instances []string) {
	level := slog.LevelWarn
	if why == ignoredInstance {
		level = slog.LevelDebug
	}
	i.Metrics.Dropped.WithLabelValues(why).Inc()
	i.Log.Log(context.Background(), level, "ignored an interruption message", "cause", why, "kind", string(n.Kind), "instances", instances,
		"account", n.Account, "region", n.Region, "hint", "see who may send to the queue, and the rules that send to it: docs/interruption.md")
}

// reportBroken says once for each cause that messages cannot be read: who sends them may send many.
func (i *Handler) reportBroken(b *interruption.Broken) {
	level := slog.LevelDebug
	if !i.told[b.Cause] {
		if i.told == nil {
			i.told = map[interruption.Cause]bool{}
		}
		i.told[b.Cause] = true
		level = slog.LevelWarn
	}
	i.Log.Log(context.Background(), level, "dropped a message that is no event of AWS", "cause", string(b.Cause), "detail", b.Detail,
		"hint", "see who may send to the queue; joiner_interruption_dropped_messages_total counts them")
}

// processAll processes the messages, those of one claim one after another. A failure for one claim does not stop the others; its
// messages stay in the queue.
func (i *Handler) processAll(ctx context.Context, letters []*queuedMessage) {
	now := i.Now.Now()
	byClaim := map[string][]*queuedMessage{}
	claims := map[string]*karpv1.NodeClaim{}
	for _, l := range letters {
		for _, c := range l.claims {
			byClaim[c.Name] = append(byClaim[c.Name], l)
			claims[c.Name] = c
		}
	}
	var group errgroup.Group
	group.SetLimit(parallelNotices)
	for name, mail := range byClaim {
		group.Go(func() error {
			for _, l := range mail {
				isDone, err := i.handle(ctx, claims[name], l, now)
				if err != nil {
					i.complain(ctx, "process", "cannot process an interruption message about NodeClaim "+name, err)
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

// discard deletes the messages that need not stay.
func (i *Handler) discard(ctx context.Context, letters []*queuedMessage) error {
	var done []interruption.Message
	for _, l := range letters {
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
