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

// renewal retries a call once, with new credentials, after AWS has rejected it because something had expired.
//
// The SDK renews credentials when they have expired by the local clock. If that clock is slow, or if the credentials were
// revoked early, AWS rejects all calls until then: with IRSA for as long as the clock is off, with credentials from a file for
// hours. EC2 also returns RequestExpired for a request that was signed at another time than AWS's. The SDK takes the time from
// the response and signs the next request with it.
type renewal struct {
	credentials aws.CredentialsProvider
	mu          sync.Mutex // held while new ones are got: of many calls that are refused at once, the first gets them for all
}

// ID names the step among the others of a call.
func (r *renewal) ID() string { return "RenewedCredentials" }

// HandleInitialize is the whole of a call, its retries included.
func (r *renewal) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	used := r.key(ctx)
	out, metadata, err := next.HandleInitialize(ctx, in)
	code := expiry(err)
	if code == "" || ctx.Err() != nil {
		return out, metadata, err
	}
	if !r.renew(ctx, used) && code != requestExpired {
		return out, metadata, err // there are no others
	}
	return next.HandleInitialize(ctx, in)
}

// renew gets other credentials than those with the key, and reports whether there are any.
func (r *renewal) renew(ctx context.Context, used string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cache, ok := r.credentials.(interface{ Invalidate() }); ok && used != "" && r.key(ctx) == used {
		cache.Invalidate()
	}
	return r.key(ctx) != used
}

// key is the id of the access key that the next request is signed with, empty if there is none.
func (r *renewal) key(ctx context.Context) string {
	if r.credentials == nil {
		return ""
	}
	credentials, err := r.credentials.Retrieve(ctx)
	if err != nil {
		return "" // the call has its own
	}
	return credentials.AccessKeyID
}

// requestExpired is EC2's code for both: credentials that have ended, and a request of another time.
const requestExpired = "RequestExpired"

// expiry returns the code of an answer which says that something has expired, and nothing of all others.
func expiry(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains([]string{"ExpiredToken", "ExpiredTokenException", requestExpired}, api.ErrorCode()) {
		return api.ErrorCode()
	}
	return ""
}
