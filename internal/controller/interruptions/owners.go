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
	known map[string]ownership // by instance ID
}

// ownership is EC2's answer about an instance that none of our claims has.
type ownership struct {
	owner   ec2.Ownership // empty: EC2 does not return the instance
	isEnded bool          // the instance is being terminated, or was terminated
	until   time.Time     // when to ask EC2 again
}

// EC2 is asked about up to askedAtOnce instances in one or two calls, followed by a pause of askPause. Answers are
// valid for ownersLife. The cache is emptied when it has more than mostOwners answers.
const (
	askedAtOnce = 200
	askPause    = time.Second
	ownersLife  = 10 * time.Minute
	ownersAnew  = 20 * time.Second // validity of answers that may change soon: our instances, and instances that EC2 does not return yet
	mostOwners  = 20_000
)

// find returns the owners of the instances by ID. Instances whose owner is not known yet are missing from the result.
func (o *owners) find(ctx context.Context, machines loop.InstanceClient, ids []string, now time.Time) map[string]ownership {
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
	if len(o.known) > mostOwners {
		o.known = nil
	}
	if o.known == nil {
		o.known = map[string]ownership{}
	}
	for id, s := range askOwners(ctx, machines, ask[:min(len(ask), askedAtOnce)], now) {
		o.known[id], out[id] = s, s
	}
	return out
}

// askOwners reads the owners from EC2. The client combines concurrent requests into one call.
func askOwners(ctx context.Context, machines loop.InstanceClient, ids []string, now time.Time) map[string]ownership {
	out := map[string]ownership{}
	var mu sync.Mutex
	var group errgroup.Group
	for _, id := range ids {
		group.Go(func() error {
			instance, err := machines.Instance(ctx, id)
			s := ownership{owner: instance.Owner, isEnded: instance.State.Ended(), until: now.Add(ownersLife)}
			switch {
			case awserr.Is(err, awserr.Gone):
				s = ownership{until: now.Add(ownersAnew)}
			case err != nil:
				return nil // the owner stays unknown; the queue delivers the message again
			case instance.Owner == ec2.Ours:
				s.until = now.Add(ownersAnew)
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
	for _, l := range queued {
		out = append(out, l.others...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownerUnknown is the owner label in metrics for instances about which EC2 has not answered.
const ownerUnknown = "unknown"

// ownerNobody is the owner label in metrics for instances without a NodeClaim in any cluster with our name.
const ownerNobody = "nobody"

// maxReturns is how often a message about an instance without an owner is returned to the queue. Another cluster may
// read the same queue and gets the message then. After that, the message would only fill the queue.
const maxReturns = 3

// leave returns the owner label of the message's instances, and whether the message must stay in the queue: always if
// the owner is not known yet or is another cluster with our name, and maxReturns times if no claim has the instance. In
// the case of the same name both clusters read the same queue, and the other cluster has not read the message yet.
func leave(l *queuedMessage, owners map[string]ownership) (whose string, isLeft bool) {
	mayReturn := l.message.Received < maxReturns
	if l.notice.Kind == interruption.BlockExpiring && len(l.claims) == 0 {
		return ownerNobody, mayReturn
	}
	for _, id := range l.others {
		s, isKnown := owners[id]
		switch {
		case !isKnown:
			return ownerUnknown, true
		case s.owner == ec2.SameName || s.owner == ec2.Legacy:
			return "namesake", true
		case s.owner == ec2.Ours && s.isEnded:
			continue // the result of our own termination
		case s.owner == ec2.Ours:
			whose, isLeft = "ours", mayReturn // the instance's claim does not have its ID yet
		case !isLeft:
			whose, isLeft = ownerNobody, mayReturn
		}
	}
	return whose, isLeft
}
