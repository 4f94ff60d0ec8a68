package interruptions

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/loop"
)

// owners caches which cluster owns the instances that none of our claims has. EventBridge rules send the events of all
// instances of an account. The zero value is empty. Its methods must not be called concurrently.
type owners struct {
	known map[string]ownership // answers by instance ID
}

// ownership is EC2's answer about an instance that none of our claims has.
type ownership struct {
	owner   ec2.Ownership // empty: EC2 does not return the instance
	isEnded bool          // the instance is being terminated, or was terminated
	until   time.Time     // until when the answer is used
}

// EC2 is asked about up to maxAskedAtOnce instances in one or two calls, followed by a pause of askPause. An answer is used
// for ownerLife. The cache is emptied when it has more than maxOwners answers.
const (
	maxAskedAtOnce = 200
	askPause       = time.Second
	ownerLife      = 10 * time.Minute
	shortOwnerLife = 20 * time.Second // instead of ownerLife for our instances, and for instances that EC2 does not return yet
	maxOwners      = 20_000
)

// find returns the owners of the instances by ID. Instances whose owner is not known yet are missing from the result.
func (o *owners) find(ctx context.Context, instances loop.InstanceClient, ids []string, now time.Time) map[string]ownership {
	out := map[string]ownership{}
	var ask []string
	for _, id := range ids {
		if s, ok := o.known[id]; ok && now.Before(s.until) {
			out[id] = s
		} else {
			ask = append(ask, id)
		}
	}
	if len(ask) == 0 {
		return out
	}
	if len(o.known) > maxOwners {
		o.known = nil
	}
	if o.known == nil {
		o.known = map[string]ownership{}
	}
	for id, s := range askOwners(ctx, instances, ask[:min(len(ask), maxAskedAtOnce)], now) {
		o.known[id], out[id] = s, s
	}
	return out
}

// askOwners reads the owners from EC2. The client combines concurrent requests into one call.
func askOwners(ctx context.Context, instances loop.InstanceClient, ids []string, now time.Time) map[string]ownership {
	out := map[string]ownership{}
	var mu sync.Mutex
	var group errgroup.Group
	for _, id := range ids {
		group.Go(func() error {
			instance, err := instances.Instance(ctx, id)
			s := ownership{owner: instance.Owner, isEnded: instance.State.Ended(), until: now.Add(ownerLife)}
			switch {
			case awserr.Is(err, awserr.Gone):
				s = ownership{until: now.Add(shortOwnerLife)}
			case err != nil:
				return nil // the owner stays unknown; the queue delivers the message again
			case instance.Owner == ec2.Ours:
				s.until = now.Add(shortOwnerLife)
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = s
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	return out
}

// othersOf returns the IDs of all instances in the messages that none of our claims has, without duplicates.
func othersOf(queued []*queuedMessage) []string {
	var out []string
	for _, q := range queued {
		out = append(out, q.unclaimed...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownerUnknown is the value of the metric's label owner for instances about which EC2 has not answered.
const ownerUnknown = "unknown"

// ownerNone is the value of the metric's label owner for instances without a NodeClaim in any cluster with our name.
const ownerNone = "nobody"

// maxReceipts is how often a message about an instance without an owner is received before it is dropped. Until then it
// returns to the queue, because another cluster that reads the same queue may receive it.
const maxReceipts = 3

// mustReturn returns the owner of the message's instances, as the value of a metric label, and whether the message must be
// returned to the queue:
//   - always, if the owner is not known yet
//   - always, if the owner is another cluster with our name, which reads the same queue but has not received the message
//   - until it was received maxReceipts times, if no claim has the instance
func mustReturn(q *queuedMessage, owners map[string]ownership) (owner string, isReturned bool) {
	mayReturn := q.message.Received < maxReceipts
	if q.parsed.Kind == interruption.BlockExpiring && len(q.claims) == 0 { // it names a reservation and no instance
		return ownerNone, mayReturn
	}
	for _, id := range q.unclaimed {
		s, isKnown := owners[id]
		switch {
		case !isKnown:
			return ownerUnknown, true
		case s.owner == ec2.SameName || s.owner == ec2.Legacy:
			return "namesake", true
		case s.owner == ec2.Ours && s.isEnded:
			continue // the result of our own termination
		case s.owner == ec2.Ours:
			owner, isReturned = "ours", mayReturn // the instance's ID is not recorded on its claim yet
		case !isReturned: // keeps "ours" of an earlier instance
			owner, isReturned = ownerNone, mayReturn
		}
	}
	return owner, isReturned
}
