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

// calls counts the calls to AWS as soon as metrics exist, and stops the stopwatch of launches at CreateFleet. Its
// methods may be called concurrently.
type calls struct {
	metrics  atomic.Pointer[metrics.Metrics]
	launches atomic.Pointer[provisioner.Stopwatch]
}

// stopwatch starts counting, and returns the stopwatch that launches stop.
func (c *calls) stopwatch(m *metrics.Metrics) *provisioner.Stopwatch {
	w := &provisioner.Stopwatch{Metrics: m}
	c.metrics.Store(m)
	c.launches.Store(w)
	return w
}

// watch adds a middleware that measures each call, including retries.
func (c *calls) watch(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("JoinerCalls", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		begun := time.Now()
		if fleet, ok := in.Parameters.(*awsec2.CreateFleetInput); ok {
			c.launching(fleet, begun)
		}
		out, metadata, err := next.HandleInitialize(ctx, in)
		if m := c.metrics.Load(); m != nil {
			service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
			m.Requests.WithLabelValues(service, action, status(err)).Inc()
			m.AWS.Duration.WithLabelValues(service, action).Observe(time.Since(begun).Seconds())
		}
		return out, metadata, err
	}), middleware.After)
}

// attempted counts an attempt that the rate limit of EC2 calls admitted.
func (c *calls) attempted(a ratelimit.Attempt) {
	m := c.metrics.Load()
	if m == nil {
		return
	}
	m.CallWait.WithLabelValues(a.Action).Observe(a.Waited.Seconds())
	if a.Refused {
		m.CallsRefused.WithLabelValues(a.Action).Inc()
	}
}

// launching stops the stopwatch of the NodeClaim in the tags of a fleet.
func (c *calls) launching(fleet *awsec2.CreateFleetInput, now time.Time) {
	w := c.launches.Load()
	if w == nil || len(fleet.TagSpecifications) == 0 {
		return
	}
	for _, tag := range fleet.TagSpecifications[0].Tags {
		if aws.ToString(tag.Key) == ec2.TagNodeClaim {
			w.Launching(aws.ToString(tag.Value), now)
		}
	}
}

// status returns the HTTP status of the response; "0" if there was none.
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
