package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-sh/joiner/metrics"
)

// calls counts what is asked of AWS, once there are metrics to count in.
type calls struct {
	metrics atomic.Pointer[metrics.Metrics]
}

func (a *away) measure(m *metrics.Metrics) { a.calls.metrics.Store(m) }

// watch puts itself around each call, its retries included.
func (c *calls) watch(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("JoinerCalls", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		begun := time.Now()
		out, metadata, err := next.HandleInitialize(ctx, in)
		if m := c.metrics.Load(); m != nil {
			service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
			m.Requests.WithLabelValues(service, action, status(err)).Inc()
			m.AWS.Duration.WithLabelValues(service, action).Observe(time.Since(begun).Seconds())
		}
		return out, metadata, err
	}), middleware.After)
}

// status is the HTTP status of the answer, 0 if there was none.
func status(err error) string {
	var response *awshttp.ResponseError
	switch {
	case err == nil:
		return "200"
	case errors.As(err, &response):
		return strconv.Itoa(response.HTTPStatusCode())
	}
	return "0"
}
