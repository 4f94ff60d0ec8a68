package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption"
)

// pauseSwitch is what can pause all pools; String is its name.
type pauseSwitch interface {
	fmt.Stringer
	Read(ctx context.Context) (string, error)
}

// Pauses know whether all pools are paused. Its methods may be called at the same time; nil knows of no pause.
type Pauses struct {
	Switch pauseSwitch
	Log    *slog.Logger

	mu    sync.Mutex
	asked time.Time // when the switch was looked at last
	read  time.Time // when that went well last; zero for never
	value string
	told  string // what the log was last told
}

// How often the switch is looked at, at most, and for how long what it said counts when it cannot be read.
const (
	pausesEvery = 2 * time.Second
	pausesLast  = time.Minute
)

// standstill is who paused all pools, and until when; the zero value is nobody.
type standstill struct {
	by       string
	until    time.Time // zero: somebody must end it
	isUnread bool      // nobody is known to have: it cannot be read
}

// wanted is the pause that somebody has asked for, if one is known.
func (p standstill) wanted() standstill {
	if p.isUnread {
		return standstill{}
	}
	return p
}

// Current returns the pause at now. A switch that cannot be read pauses: a pause that is not seen is worse than one that was not
// meant.
func (p *Pauses) Current(ctx context.Context, now time.Time) standstill {
	if p == nil {
		return standstill{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.IsZero() || now.Sub(p.asked) >= pausesEvery {
		p.asked = now
		value, err := p.Switch.Read(ctx)
		if err == nil {
			p.read, p.value = now, value
		} else if ctx.Err() == nil {
			next, hint := sortError(err)
			p.tell("it cannot be read whether all NodePools are paused", "error", err.Error(), "next", string(next), "hint", hint)
		}
	}
	if p.read.IsZero() || now.Sub(p.read) >= pausesLast {
		return standstill{by: p.Switch.String() + ", which cannot be read", isUnread: true}
	}
	until, isPaused, wrong := pauseOf(p.value, now)
	switch {
	case wrong != nil:
		p.tell("all NodePools are paused", "by", p.Switch.String(), "cause", wrong.Error())
	case isPaused:
		p.tell("all NodePools are paused", "by", p.Switch.String(), "until", endText(until))
	default:
		p.tell("no pause of all NodePools is in force")
		return standstill{}
	}
	return standstill{by: p.Switch.String(), until: until}
}

// endText writes when a pause ends by itself.
func endText(until time.Time) string {
	if until.IsZero() {
		return "somebody ends it"
	}
	return until.UTC().Format(time.RFC3339)
}

// tell logs the text when it is news. That there is no pause is none before there was one.
func (p *Pauses) tell(text string, more ...any) {
	full := text + fmt.Sprint(more...)
	if full == p.told {
		return
	}
	isFirst := p.told == ""
	p.told = full
	if !isFirst || len(more) > 0 {
		p.Log.Info(text, more...)
	}
}

// over returns the policy with the pause, if it has one that does not end sooner.
func (p standstill) over(policy disruption.Policy) disruption.Policy {
	isLonger := policy.Paused == "" || !policy.PausedUntil.IsZero() && (p.until.IsZero() || p.until.After(policy.PausedUntil))
	if p.by != "" && isLonger {
		policy.Paused, policy.PausedUntil = p.by, p.until
	}
	return policy
}
