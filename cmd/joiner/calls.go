package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// callMetrics counts the calls to AWS, and stops the stopwatch of a launch at its CreateFleet call. It does nothing
// before start is called. The methods may be called concurrently.
type callMetrics struct {
	metrics   atomic.Pointer[metrics.Metrics]
	stopwatch atomic.Pointer[provisioner.Stopwatch]
}

// start starts the counting, and returns a stopwatch that measures launches. Calls of CreateFleet stop it.
func (c *callMetrics) start(m *metrics.Metrics) *provisioner.Stopwatch {
	w := &provisioner.Stopwatch{Metrics: m}
	c.metrics.Store(m)
	c.stopwatch.Store(w)
	return w
}

// addMiddleware adds a middleware that counts each call and measures its duration. Retries are part of the call.
func (c *callMetrics) addMiddleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("JoinerCalls", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		start := time.Now()
		if fleet, ok := in.Parameters.(*awsec2.CreateFleetInput); ok {
			c.stopStopwatch(fleet, start)
		}
		out, metadata, err := next.HandleInitialize(ctx, in)
		if m := c.metrics.Load(); m != nil {
			service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
			m.Requests.WithLabelValues(service, action, status(err)).Inc()
			m.AWS.Duration.WithLabelValues(service, action).Observe(time.Since(start).Seconds())
		}
		return out, metadata, err
	}), middleware.After)
}

// recordAttempt records how long an attempt of an EC2 call waited for the rate limit, and counts throttled attempts.
func (c *callMetrics) recordAttempt(a ratelimit.Attempt) {
	m := c.metrics.Load()
	if m == nil {
		return
	}
	m.CallWait.WithLabelValues(a.Action).Observe(a.Waited.Seconds())
	if a.Throttled {
		m.CallsThrottled.WithLabelValues(a.Action).Inc()
	}
}

// stopStopwatch stops the stopwatch for the NodeClaim that the tags of a CreateFleet call name.
func (c *callMetrics) stopStopwatch(fleet *awsec2.CreateFleetInput, now time.Time) {
	w := c.stopwatch.Load()
	if w == nil || len(fleet.TagSpecifications) == 0 {
		return
	}
	for _, tag := range fleet.TagSpecifications[0].Tags { // all TagSpecifications have the same tags
		if aws.ToString(tag.Key) == ec2.TagNodeClaim {
			w.NoteLaunch(aws.ToString(tag.Value), now)
		}
	}
}

// status returns the HTTP status of the response; "200" if err is nil, "0" if there was no response.
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
