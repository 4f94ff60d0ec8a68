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

// verdict is how insist handles an error.
type verdict struct {
	retry bool   // a retry may help
	hint  string // for the user; empty if there is none
}

// sortKube returns the verdict on an error of the API server.
func sortKube(err error) verdict {
	return verdict{kubeclient.WhatNext(err) == kubeclient.Retry, kubeclient.Hint(err)}
}

// sortAWS returns the verdict on an error of AWS.
func sortAWS(err error) verdict {
	f := awserr.Of(err)
	return verdict{f.Kind == awserr.Transient || f.Kind == awserr.Throttled, f.Hint}
}

// insist calls do up to tries times, with at most 30 seconds for each call, as long as sort returns that a retry may
// help. what names the operation in messages. The error is one line, with the hint of sort if there is one.
func insist(ctx context.Context, log *slog.Logger, what string, sort func(error) verdict, do func(context.Context) error) error {
	pause := time.Second
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := do(limited)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil { // the call's own error says only that its context ended
			return fmt.Errorf("%w while waiting to %s", context.Cause(ctx), what)
		}
		v := sort(err)
		if !v.retry || try == tries {
			if v.hint == "" || errors.As(err, new(*awserr.Error)) { // the text of such an error contains the hint
				return fmt.Errorf("%s: %w", what, err)
			}
			return fmt.Errorf("%s: %w (%s)", what, err, v.hint)
		}
		log.Warn("cannot "+what+" yet", "error", err.Error(), "try", try, "of", tries)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting to %s: %w", context.Cause(ctx), what, err)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// withHint returns err with the hint for the user, if there is one.
func withHint(err error) error {
	if hint := kubeclient.Hint(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}
