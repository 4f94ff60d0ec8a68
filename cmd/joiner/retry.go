package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// maxAttempts is the maximum number of attempts of a call during startup. retry pauses for 1, 2, 4 and 8 seconds
// between them.
const maxAttempts = 5

// verdict defines how retry handles an error.
type verdict struct {
	retry bool   // another attempt may help
	hint  string // for the user; empty if there is none
}

func judgeKube(err error) verdict {
	return verdict{kubeclient.Classify(err) == kubeclient.Retry, kubeclient.Hint(err)}
}

func judgeAWS(err error) verdict {
	f := awserr.Of(err)
	return verdict{f.Kind == awserr.Transient || f.Kind == awserr.Throttled, f.Hint}
}

// retry calls do until it succeeds, up to maxAttempts times, with at most 30 seconds for each call. It stops at the
// first error for which judge returns that another attempt does not help. what names the operation in messages. The
// returned error is one line, with the hint of judge if there is one.
func retry(ctx context.Context, log *slog.Logger, what string, judge func(error) verdict, do func(context.Context) error) error {
	pause := time.Second
	for try := 1; ; try++ {
		timeoutCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := do(timeoutCtx)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil { // the call's own error says only that its context ended
			return fmt.Errorf("%w while waiting to %s", context.Cause(ctx), what)
		}
		v := judge(err)
		if !v.retry || try == maxAttempts {
			if v.hint == "" || errors.As(err, new(*awserr.Error)) { // the text of an awserr.Error contains the hint
				return fmt.Errorf("%s: %w", what, err)
			}
			return fmt.Errorf("%s: %w (%s)", what, err, v.hint)
		}
		log.Warn("cannot "+what+" yet", "error", err.Error(), "try", try, "of", maxAttempts)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting to %s: %w", context.Cause(ctx), what, err)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func withHint(err error) error {
	if hint := kubeclient.Hint(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}
