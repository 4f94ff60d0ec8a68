package awserr

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// renewal retries a call once with new credentials after AWS has rejected the call as expired.
//
// The SDK renews credentials when they have expired by the local clock. If that clock is slow, or if the credentials
// were revoked early, AWS rejects all calls until the SDK renews them. With IRSA and a clock that is five minutes slow,
// AWS rejects calls for five minutes; with credentials from a file, for hours. EC2 also returns RequestExpired if the
// signing time of the request differs from AWS's clock. The SDK signs the next request with the time in the response.
type renewal struct {
	credentials aws.CredentialsProvider
	mu          sync.Mutex // if many calls are rejected at once, the first renews the credentials for all
}

// ID names the middleware step.
func (r *renewal) ID() string { return "RenewedCredentials" }

// HandleInitialize runs a whole call, including the SDK's retries, and runs the call again if it failed as expired.
func (r *renewal) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	usedKey := r.accessKey(ctx)
	out, metadata, err := next.HandleInitialize(ctx, in)
	code := expiryCode(err)
	if code == "" || ctx.Err() != nil {
		return out, metadata, err
	}
	if !r.renew(ctx, usedKey) && code != requestExpired {
		// There are no new credentials. After requestExpired the call is repeated nevertheless: its signing time may
		// have been wrong.
		return out, metadata, err
	}
	return next.HandleInitialize(ctx, in)
}

// renew discards the cached credentials if they still have usedKey, the access key of the rejected call. It reports
// whether the provider now has credentials with another key.
func (r *renewal) renew(ctx context.Context, usedKey string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cache, ok := r.credentials.(interface{ Invalidate() }); ok && usedKey != "" && r.accessKey(ctx) == usedKey {
		cache.Invalidate()
	}
	return r.accessKey(ctx) != usedKey
}

// accessKey returns the ID of the access key that signs the next request, empty if there is none.
func (r *renewal) accessKey(ctx context.Context) string {
	if r.credentials == nil {
		return ""
	}
	credentials, err := r.credentials.Retrieve(ctx)
	if err != nil {
		return "" // the call itself fails with this error
	}
	return credentials.AccessKeyID
}

// requestExpired is EC2's code for expired credentials and for a request with a wrong signing time.
const requestExpired = "RequestExpired"

// expiryCode returns the code of an answer that reports expired credentials or an expired request, and "" for any other
// error.
func expiryCode(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains([]string{"ExpiredToken", "ExpiredTokenException", requestExpired}, api.ErrorCode()) {
		return api.ErrorCode()
	}
	return ""
}
