package loop

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption"
)

// pauseSwitch is the object that can pause all pools; String is its name.
type pauseSwitch interface {
	fmt.Stringer
	Read(ctx context.Context) (string, error)
}

// Pauses reads whether all NodePools are paused. Its methods are safe for concurrent use; on nil nothing is paused.
type Pauses struct {
	Switch pauseSwitch
	Log    *slog.Logger // the log of this process

	mu    sync.Mutex
	asked time.Time // when the switch was read last, successfully or not
	read  time.Time // when it was last read successfully; zero for never
	value string
	told  string // the last logged state
}

// How often the switch is looked at, at most, and for how long what it said counts when it cannot be read.
const (
	PausesEvery = 2 * time.Second
	pausesLast  = time.Minute
)

// PauseState is a pause of all pools; the zero value is none.
type PauseState struct {
	By       string    // what paused disruption; empty if there is no pause
	Until    time.Time // zero: until a user ends it
	IsUnread bool      // the switch cannot be read, which also pauses
}

// Wanted returns the pause that a user has asked for; zero if the switch cannot be read.
func (p PauseState) Wanted() PauseState {
	if p.IsUnread {
		return PauseState{}
	}
	return p
}

// Current returns the pause at now. If the switch cannot be read, all pools are paused: missing a pause is worse than pausing
// without need.
func (p *Pauses) Current(ctx context.Context, now time.Time) PauseState {
	if p == nil {
		return PauseState{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.IsZero() || now.Sub(p.asked) >= PausesEvery {
		p.asked = now
		value, err := p.Switch.Read(ctx)
		if err == nil {
			p.read, p.value = now, value
		} else if ctx.Err() == nil {
			next, hint := SortError(err)
			p.logChange("it cannot be read whether all NodePools are paused", "error", err.Error(), "next", string(next), "hint", hint)
		}
	}
	if p.read.IsZero() || now.Sub(p.read) >= pausesLast {
		return PauseState{By: p.Switch.String() + ", which cannot be read", IsUnread: true}
	}
	until, isPaused, wrong := PauseOf(p.value, now)
	switch {
	case wrong != nil:
		p.logChange("all NodePools are paused", "by", p.Switch.String(), "cause", wrong.Error())
	case isPaused:
		p.logChange("all NodePools are paused", "by", p.Switch.String(), "until", endText(until))
	default:
		p.logChange("no pause of all NodePools is in force")
		return PauseState{}
	}
	return PauseState{By: p.Switch.String(), Until: until}
}

// endText returns when a pause ends.
func endText(until time.Time) string {
	if until.IsZero() {
		return "a user ends it"
	}
	return until.UTC().Format(time.RFC3339)
}

// logChange logs the text if it differs from the last one. The text for no pause is not logged before the first pause.
func (p *Pauses) logChange(text string, more ...any) {
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

// Over returns the policy with this pause, unless the policy has one that lasts at least as long.
func (p PauseState) Over(policy disruption.Policy) disruption.Policy {
	isLonger := policy.Paused == "" || !policy.PausedUntil.IsZero() && (p.Until.IsZero() || p.Until.After(policy.PausedUntil))
	if p.By != "" && isLonger {
		policy.Paused, policy.PausedUntil = p.By, p.Until
	}
	return policy
}

// PauseOf parses the value of a pause: "true", "false", or an end time. If it is none of these the pause has no end, and
// the error quotes the value.
func PauseOf(value string, now time.Time) (until time.Time, isPaused bool, err error) {
	switch value = strings.TrimSpace(value); value {
	case "false":
		return time.Time{}, false, nil
	case "true", "":
		return time.Time{}, true, nil
	}
	until, err = time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, true, fmt.Errorf("%q is neither true, false nor a time such as 2026-03-01T18:00:00Z; it pauses without an end", value)
	}
	return until, now.Before(until), nil
}
