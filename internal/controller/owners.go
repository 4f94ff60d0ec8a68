package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

// owners knows whose the instances are that no claim of ours has: the rules of EventBridge send the events of all
// instances of an account. Its zero value knows none. Its methods are called one after another.
type owners struct {
	known map[string]standing
}

// standing is what EC2 says of an instance that is not known here.
type standing struct {
	owner   ec2.Ownership // empty: EC2 does not know the instance
	isEnded bool
	until   time.Time // when to ask again
}

// EC2 is asked about askedAtOnce instances in one call or two, then not for askPause, and believed for ownersLife. Of
// mostOwners instances the answer is kept.
const (
	askedAtOnce = 200
	askPause    = time.Second
	ownersLife  = 10 * time.Minute
	ownersAnew  = 20 * time.Second // for what may change: ours, and what EC2 does not show yet
	mostOwners  = 20_000
)

// find returns whose the instances are. One that is missing from the result is not known yet.
func (o *owners) find(ctx context.Context, machines machines, ids []string, now time.Time) map[string]standing {
	out := map[string]standing{}
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
		o.known = map[string]standing{}
	}
	for id, s := range askOwners(ctx, machines, ask[:min(len(ask), askedAtOnce)], now) {
		o.known[id], out[id] = s, s
	}
	return out
}

// askOwners asks EC2. Its door makes one call of all that is asked at a moment.
func askOwners(ctx context.Context, machines machines, ids []string, now time.Time) map[string]standing {
	out := map[string]standing{}
	var mu sync.Mutex
	var group errgroup.Group
	for _, id := range ids {
		group.Go(func() error {
			instance, err := machines.Instance(ctx, id)
			s := standing{owner: instance.Owner, isEnded: instance.State.Ended(), until: now.Add(ownersLife)}
			switch {
			case awserr.Is(err, awserr.Gone):
				s = standing{until: now.Add(ownersAnew)}
			case err != nil:
				return nil // it stays unknown; the message comes again
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

// othersOf returns the instances of the letters that no claim of ours has, each once.
func othersOf(letters []*letter) []string {
	var out []string
	for _, l := range letters {
		out = append(out, l.others...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownerUnknown is the owner, in metrics, of instances that EC2 has not said anything about.
const ownerUnknown = "unknown"

// ownerNobody is the owner, in metrics, of instances that no NodeClaim of a cluster of our name has.
const ownerNobody = "nobody"

// mostTurns is how often a message about nobody's instance is put back. Another cluster may read the same queue: it has
// the first turns, and after them the message would only fill the queue.
const mostTurns = 3

// leave reports whether a letter must stay in the queue because it is about others than us, and whose they are. What is
// about a cluster of our name is never removed: such clusters have one queue, and the other one has not read it yet.
func leave(l *letter, owners map[string]standing) (whose string, isLeft bool) {
	turns := l.message.Received < mostTurns
	if l.notice.Kind == interruption.BlockExpiring && len(l.claims) == 0 {
		return ownerNobody, turns
	}
	for _, id := range l.others {
		s, isKnown := owners[id]
		switch {
		case !isKnown:
			return ownerUnknown, true
		case s.owner == ec2.Namesake || s.owner == ec2.Legacy:
			return "namesake", true
		case s.owner == ec2.Ours && s.isEnded:
			continue // an echo of what we have done
		case s.owner == ec2.Ours:
			whose, isLeft = "ours", turns // its claim does not know it yet
		case !isLeft:
			whose, isLeft = ownerNobody, turns
		}
	}
	return whose, isLeft
}
