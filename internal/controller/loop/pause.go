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

// pauseSwitch is the object that can pause all pools. String returns its name.
type pauseSwitch interface {
	fmt.Stringer
	Read(ctx context.Context) (string, error)
}

// Pauses reads whether all NodePools are paused. Its methods are safe for concurrent use. On a nil receiver nothing is
// paused.
type Pauses struct {
	Switch pauseSwitch  // the object that pauses all pools
	Log    *slog.Logger // the log of this process

	mu        sync.Mutex
	lastTry   time.Time // when the switch was last read, successfully or not
	lastRead  time.Time // when the switch was last read successfully; zero: never
	lastValue string    // the value of the last successful read
	logged    string    // the last logged state
}

// The switch is read at most once per PauseReadInterval. If it cannot be read, its last value is used for pauseValueLife.
const (
	PauseReadInterval = 2 * time.Second
	pauseValueLife    = time.Minute
)

// PauseState describes a pause of all pools. The zero value means no pause.
type PauseState struct {
	By       string    // the object that pauses disruption; empty if there is no pause
	Until    time.Time // when the pause ends; zero: a user ends it
	IsUnread bool      // all pools are paused because the switch cannot be read
}

// Requested returns the pause that a user has requested; zero if the switch cannot be read.
func (p PauseState) Requested() PauseState {
	if p.IsUnread {
		return PauseState{}
	}
	return p
}

// Current returns the pause at now. After pauseValueLife without a successful read, all pools are paused: ignoring a
// pause is worse than an unnecessary one.
func (p *Pauses) Current(ctx context.Context, now time.Time) PauseState {
	if p == nil {
		return PauseState{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastTry.IsZero() || now.Sub(p.lastTry) >= PauseReadInterval {
		p.lastTry = now
		value, err := p.Switch.Read(ctx)
		if err == nil {
			p.lastRead, p.lastValue = now, value
		} else if ctx.Err() == nil {
			next, hint := ClassifyError(err)
			p.logChange("cannot read the global pause", "object", p.Switch.String(), "error", err.Error(), "next", string(next), "hint", hint)
		}
	}
	if p.lastRead.IsZero() || now.Sub(p.lastRead) >= pauseValueLife {
		return PauseState{By: p.Switch.String() + ", which cannot be read", IsUnread: true}
	}
	until, isPaused, err := PauseOf(p.lastValue, now)
	switch {
	case err != nil:
		p.logChange("all NodePools are paused", "by", p.Switch.String(), "cause", err.Error())
	case isPaused:
		p.logChange("all NodePools are paused", "by", p.Switch.String(), "until", endText(until))
	default:
		p.logChange("the global pause has ended: it no longer pauses any NodePool")
		return PauseState{}
	}
	return PauseState{By: p.Switch.String(), Until: until}
}

func endText(until time.Time) string {
	if until.IsZero() {
		return "a user ends the pause"
	}
	return until.UTC().Format(time.RFC3339)
}

// logChange logs the text and its attributes if they differ from those of the last call. The first call logs nothing if
// it has no attributes: there was no pause that could have ended.
func (p *Pauses) logChange(text string, attributes ...any) {
	state := text + fmt.Sprint(attributes...)
	if state == p.logged {
		return
	}
	isFirst := p.logged == ""
	p.logged = state
	if !isFirst || len(attributes) > 0 {
		p.Log.Info(text, attributes...)
	}
}

// ApplyTo returns the policy with this pause, unless the policy already has a pause that lasts at least as long.
func (p PauseState) ApplyTo(policy disruption.Policy) disruption.Policy {
	// A zero time is a pause without an end.
	isLonger := policy.Paused == "" || !policy.PausedUntil.IsZero() && (p.Until.IsZero() || p.Until.After(policy.PausedUntil))
	if p.By != "" && isLonger {
		policy.Paused, policy.PausedUntil = p.By, p.Until
	}
	return policy
}

// PauseOf parses the value of a pause: "true", "false", or an end time; an empty value means "true". Any other value
// pauses without an end, and the error quotes the value.
func PauseOf(value string, now time.Time) (until time.Time, isPaused bool, err error) {
	switch value = strings.TrimSpace(value); value {
	case "false":
		return time.Time{}, false, nil
	case "true", "":
		return time.Time{}, true, nil
	}
	until, err = time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, true, fmt.Errorf("%q is not true, false or a time such as 2026-03-01T18:00:00Z, so the pause has no end", value)
	}
	return until, now.Before(until), nil
}
