package awserr

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// TestTimeLimit: each client has a timeout. Without a timeout, a peer that sends no answer would block a loop until the
// process ends.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client aws.HTTPClient
		want   time.Duration
	}{
		"no client":                 {nil, attemptTimeout},
		"client of the SDK":         {awshttp.NewBuildableClient(), attemptTimeout},
		"client with its own limit": {awshttp.NewBuildableClient().WithTimeout(time.Second), time.Second},
	} {
		cfg := ClientConfig(ClientConfig(aws.Config{HTTPClient: c.client})) // applying ClientConfig twice must have no further effect
		outer, ok := cfg.HTTPClient.(readOnlyBodyClient)
		if !ok {
			t.Fatalf("%s: the client is a %T, want a readOnlyBodyClient", name, cfg.HTTPClient)
		}
		inner, ok := outer.client.(*awshttp.BuildableClient)
		if !ok || inner.GetTimeout() != c.want {
			t.Errorf("%s: the client's timeout is %s, want %s", name, inner.GetTimeout(), c.want)
		}
	}
}

// TestStableText: the text has the hints, but no request IDs.
func TestStableText(t *testing.T) {
	t.Parallel()
	withHint := &Error{Op: "A", Message: "no", Hint: "do", RequestID: "r-1"}
	noHint := &Error{Op: "B", Message: "no", RequestID: "r-2"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{withHint, "A: no (do)"},
		{fmt.Errorf("x: %w", errors.Join(withHint, noHint)), "x: A: no (do)\nB: no"},
		{errors.New("cut [request r-"), "cut [request r-"}, // not closed, so not a request ID
	} {
		if got := StableText(c.err); got != c.want {
			t.Errorf("StableText(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
