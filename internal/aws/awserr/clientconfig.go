package awserr

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// attemptTimeout is the time limit of one attempt of a call, until the last byte of its answer. EC2's slowest calls
// take about ten seconds. Without a limit the SDK waits forever for a peer that accepts the request and does not
// answer.
const attemptTimeout = time.Minute

// ClientConfig returns cfg with four additions, for all AWS clients:
//
//   - A response that is not from AWS is an error. Otherwise a proxy's page with status 200 would be read as an empty
//     list, and all instances would seem to be terminated.
//   - An attempt ends after attemptTimeout, unless the caller's HTTP client has its own timeout.
//   - Sending a request cannot close the connection on which its response arrives; see readOnlyBodyClient.
//   - A call that fails because its credentials have expired is retried once with new credentials; see renewal.
func ClientConfig(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	if sdkClient, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok && sdkClient.GetTimeout() == 0 {
		cfg.HTTPClient = sdkClient.WithTimeout(attemptTimeout)
	}
	if _, ok := cfg.HTTPClient.(readOnlyBodyClient); !ok {
		cfg.HTTPClient = readOnlyBodyClient{cfg.HTTPClient}
	}
	renewed := &renewal{credentials: cfg.Credentials}
	cfg.APIOptions = slices.Concat(cfg.APIOptions, []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		// The last step handles the response first, before another step reads its body.
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("GenuineAnswer", requireRequestID), middleware.After)
	}, func(stack *middleware.Stack) error {
		if _, ok := stack.Initialize.Get(renewed.ID()); ok {
			return nil // cfg is already a result of ClientConfig, so the stack contains a renewal
		}
		return stack.Initialize.Add(renewed, middleware.After)
	}})
	return cfg
}

// requireRequestID returns an error for a successful response without AWS's request ID.
func requireRequestID(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleDeserialize(ctx, in)
	r, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || r.StatusCode >= 300 {
		return out, metadata, err
	}
	for _, header := range []string{"X-Amzn-Requestid", "X-Amz-Request-Id"} {
		if r.Header.Get(header) != "" {
			return out, metadata, nil
		}
	}
	return out, metadata, &smithy.DeserializationError{Err: errors.New("the response has no AWS request id")}
}

// readOnlyBodyClient hides from net/http that the SDK's request bodies implement WriteTo. smithy-go closes a body as
// soon as the response header has arrived, and WriteTo then returns io.EOF. If net/http has not yet read the end of the
// body, it treats this io.EOF as a failed write and closes the connection while the response is being read. About one
// in a thousand responses of a fast server then fails with "use of closed network connection". Without WriteTo,
// net/http calls Read, where it expects io.EOF. Seen in smithy-go v1.28.8.
type readOnlyBodyClient struct{ client aws.HTTPClient }

// Do sends the request.
func (c readOnlyBodyClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.client.Do(r)
}
