package awserr

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// TestNobodyIsWaitedForForEver: without a limit a peer that says nothing holds a loop as long as the process lives.
func TestNobodyIsWaitedForForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client aws.HTTPClient
		want   time.Duration
	}{
		"the SDK's":                {nil, longestAnswer},
		"as the SDK configures it": {awshttp.NewBuildableClient(), longestAnswer},
		"one with its own limit":   {awshttp.NewBuildableClient().WithTimeout(time.Second), time.Second},
	} {
		cfg := Genuine(Genuine(aws.Config{HTTPClient: c.client})) // a configuration may get the additions twice
		outer, ok := cfg.HTTPClient.(patient)
		if !ok {
			t.Fatalf("%s: the client is a %T", name, cfg.HTTPClient)
		}
		inner, ok := outer.client.(*awshttp.BuildableClient)
		if !ok || inner.GetTimeout() != c.want {
			t.Errorf("%s: it waits %s, want %s", name, inner.GetTimeout(), c.want)
		}
	}
}

func TestLasting(t *testing.T) {
	t.Parallel()
	one := &Error{Op: "A", Message: "no", Hint: "do", RequestID: "r-1"}
	two := &Error{Op: "B", Message: "no", RequestID: "r-2"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{one, "A: no (do)"},
		{fmt.Errorf("x: %w", errors.Join(one, two)), "x: A: no (do)\nB: no"},
		{errors.New("cut [request r-"), "cut [request r-"},
	} {
		if got := Lasting(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
