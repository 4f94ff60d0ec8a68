package fault

import (
	"context"
	"errors"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Genuine is an API option of the SDK that refuses answers which are not of AWS.
// Without it a proxy's page with status 200 reads as an empty list: all instances
// would seem to be gone. Every door adds it to its configuration's APIOptions.
func Genuine(stack *middleware.Stack) error {
	// After the step that reads the body: so it sees the answer first.
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("GenuineAnswer", genuine), middleware.After)
}

func genuine(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
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
	return out, metadata, &smithy.DeserializationError{Err: errors.New("it lacks the request id that AWS puts on each")}
}
