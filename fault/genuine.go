package fault

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Genuine returns cfg with an addition: clients made from it refuse answers that
// are not of AWS. Without it a proxy's page with status 200 reads as an empty list,
// and all instances would seem to be gone. Every door makes its clients from it.
func Genuine(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = slices.Concat(cfg.APIOptions, []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		// Around the step that reads the body.
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("GenuineAnswer", genuine), middleware.After)
	}})
	return cfg
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
