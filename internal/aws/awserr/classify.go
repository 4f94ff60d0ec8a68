package awserr

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Classify returns err as an Error of the operation op, and nil for nil. If err already contains an Error, Classify
// returns err unchanged.
func Classify(op string, err error) error {
	if err == nil {
		return nil
	}
	var classified *Error
	if errors.As(err, &classified) {
		return err
	}
	return classify(op, err)
}

func classify(op string, err error) *Error {
	e := &Error{Op: op, cause: err}
	var api smithy.APIError
	status, id := responseOf(err)
	e.RequestID = id
	switch {
	case errors.Is(err, context.Canceled):
		e.Kind, e.Reason, e.Message = Canceled, "Canceled", "stopped before AWS answered"
	case errors.As(err, &api) && api.ErrorCode() != "" && api.ErrorCode() != "UnknownError": // "UnknownError": no code
		e.Code, e.Message = api.ErrorCode(), oneLine(api.ErrorMessage())
		e.classifyResponse(status)
	case status >= 500:
		e.Kind, e.Reason, e.Message = Transient, "InternalError", "AWS failed: "+oneLine(rootMessage(err))
	case isUnreadable(err):
		e.Kind, e.Reason, e.Message = Transient, "UnreadableAnswer", "the answer is not from AWS: "+oneLine(rootMessage(err))
		e.Hint = "check for a proxy in between, and check AWS_ENDPOINT_URL"
	default:
		e.classifyLocal(err)
	}
	return e
}

// FromCode returns the error for a code and a message from a response.
func FromCode(op, code, message string) *Error {
	e := &Error{Op: op, Code: code, Message: oneLine(message)}
	e.classifyResponse(0)
	return e
}

// responseOf returns the HTTP status of the answer, 0 without an answer, and AWS's request ID.
func responseOf(err error) (status int, requestID string) {
	var re *awshttp.ResponseError
	if !errors.As(err, &re) {
		return 0, ""
	}
	if re.ResponseError == nil || re.Response == nil || re.Response.Response == nil {
		return 0, re.RequestID
	}
	return re.HTTPStatusCode(), re.RequestID
}

// isUnreadable reports whether the answer to a call cannot be parsed, or is not from AWS.
func isUnreadable(err error) bool {
	var d *smithy.DeserializationError
	if errors.As(err, &d) {
		return true
	}
	status, _ := responseOf(err)
	return status != 0 // classify has already handled the answers with an error code of AWS
}

// classifyLocal classifies errors without an answer from AWS: no network path, no credentials.
func (e *Error) classifyLocal(err error) {
	var netErr net.Error
	var urlErr *url.Error
	text := rootMessage(err)
	e.Message = oneLine(text)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Reason, e.Message = Transient, "Timeout", "AWS did not answer in time"
		e.Hint = "check the network path to AWS: security groups, NAT or VPC endpoints"
	case isMissingCredentials(err):
		e.Kind, e.Reason = Denied, "NoCredentials"
		e.Hint = "provide credentials with EKS Pod Identity, IRSA, AWS_PROFILE or AWS_ACCESS_KEY_ID"
	case hasType[*aws.MissingRegionError](err) || strings.Contains(err.Error(), "Missing Region"):
		e.Kind, e.Reason = Misconfigured, "NoRegion"
		e.Hint = "set AWS_REGION, or pass --region"
	case proxyOf(err) != "":
		e.Kind, e.Reason, e.Message = Transient, "ProxyUnreachable", proxyOf(err)+" cannot be reached: "+e.Message
		e.Hint = "correct HTTPS_PROXY, or add the hosts that need no proxy to NO_PROXY"
	case errors.As(err, &urlErr), errors.As(err, &netErr):
		e.Kind, e.Reason = Transient, "Unreachable"
		e.Hint = "check the region's name and the network path to AWS: DNS, NAT or VPC endpoints"
	case hasType[*retry.MaxAttemptsError](err):
		e.Kind, e.Reason = Transient, "InternalError"
	default:
		e.Kind, e.Reason = Unknown, "Unknown"
	}
}

// proxyOf returns "the proxy" and the address of the proxy that could not be reached; empty for any other error.
func proxyOf(err error) string {
	var proxy, dial *net.OpError
	var dns *net.DNSError
	switch {
	case !errors.As(err, &proxy) || proxy.Op != "proxyconnect":
		return ""
	case errors.As(proxy.Err, &dns):
		return "the proxy " + dns.Name
	case errors.As(proxy.Err, &dial) && dial.Addr != nil:
		return "the proxy " + dial.Addr.String()
	}
	return "the proxy"
}

func hasType[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

// isMissingCredentials reports whether the SDK found no credentials. The SDK has no error type for this case, but its
// text names the failed step.
func isMissingCredentials(err error) bool {
	text := err.Error()
	return strings.Contains(text, "get identity: ") || strings.Contains(text, "retrieve credentials") ||
		strings.Contains(text, "get credentials: ")
}

// rootMessage returns the text of the innermost error, without what the layers of the SDK add.
func rootMessage(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
