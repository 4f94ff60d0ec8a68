package emulator

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

func (s *Server) writeAnswer(w http.ResponseWriter, c *api.Call, answer any) {
	h := w.Header()
	h.Set("X-Amzn-Requestid", c.ID)
	switch c.Protocol {
	case api.EC2Query, api.AWSQuery:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		_, _ = w.Write(s.xml(c, answer)) // fails only if the client has disconnected
		return
	case api.AWSJSON10:
		h.Set("Content-Type", "application/x-amz-json-1.0")
	case api.AWSJSON11:
		h.Set("Content-Type", "application/x-amz-json-1.1")
	default:
		h.Set("Content-Type", "application/json")
	}
	writeJSON(w, answer)
}

func (s *Server) xml(c *api.Call, answer any) []byte {
	e := &api.Encoder{Codec: &s.codec, Dialect: api.Dialect{LowerFirst: c.Protocol == api.EC2Query, Item: api.QueryItem}}
	if e.Dialect.LowerFirst {
		e.Dialect.Item = api.Ec2Item
	}
	e.Out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	e.Open(c.Action + `Response xmlns="` + s.services[c.Service].Namespace + `"`)
	if c.Protocol == api.EC2Query {
		e.Text("requestId", c.ID)
		e.Fields(reflect.ValueOf(answer))
	} else {
		e.Open(c.Action + "Result")
		e.Fields(reflect.ValueOf(answer))
		e.Close(c.Action + "Result")
		e.Open("ResponseMetadata")
		e.Text("RequestId", c.ID)
		e.Close("ResponseMetadata")
	}
	e.Close(c.Action + "Response")
	return e.Out.Bytes()
}

// writeError writes an error in the protocol of the call, and returns the HTTP status. An error that is not a
// failure.Error is logged, and the client gets InternalFailure.
func (s *Server) writeError(w http.ResponseWriter, c *api.Call, err error) int {
	var awsErr *failure.Error
	if !errors.As(err, &awsErr) {
		s.logger().Error("call failed", "call", c.Name(), "request", c.ID, "error", err)
		awsErr = &failure.Error{Code: "InternalFailure", Message: err.Error(), Status: http.StatusInternalServerError}
	}
	status := awsErr.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	h := w.Header()
	h.Set("X-Amzn-Requestid", c.ID)
	switch c.Protocol {
	case api.EC2Query, api.AWSQuery:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		w.WriteHeader(status)
		_, _ = w.Write(s.xmlError(c, awsErr, status)) // fails only if the client has disconnected
	default:
		h.Set("Content-Type", "application/x-amz-json-1.1")
		h.Set("X-Amzn-Errortype", jsonCode(c, awsErr))
		if c.Service == "sqs" {
			h.Set("X-Amzn-Query-Error", awsErr.Code+";"+errorType(status))
		}
		w.WriteHeader(status)
		writeJSON(w, map[string]string{"__type": jsonCode(c, awsErr), "message": awsErr.Message})
	}
	return status
}

func (s *Server) xmlError(c *api.Call, awsErr *failure.Error, status int) []byte {
	e := &api.Encoder{Codec: &s.codec}
	e.Out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	if c.Protocol == api.EC2Query {
		e.Open("Response")
		e.Open("Errors")
		e.Open("Error")
		e.Text("Code", awsErr.Code)
		e.Text("Message", awsErr.Message)
		e.Close("Error")
		e.Close("Errors")
		e.Text("RequestID", c.ID)
		e.Close("Response")
		return e.Out.Bytes()
	}
	e.Open(`ErrorResponse xmlns="` + s.services[c.Service].Namespace + `"`)
	e.Open("Error")
	e.Text("Type", errorType(status))
	e.Text("Code", awsErr.Code)
	e.Text("Message", awsErr.Message)
	e.Close("Error")
	e.Text("RequestId", c.ID)
	e.Close("ErrorResponse")
	return e.Out.Bytes()
}

// jsonCode returns the code of an error in the JSON protocols. failure.Error has those of the query protocols; only
// SQS's differ.
func jsonCode(c *api.Call, awsErr *failure.Error) string {
	if c.Service != "sqs" {
		return awsErr.Code
	}
	switch awsErr.Code {
	case "AWS.SimpleQueueService.NonExistentQueue":
		return "com.amazonaws.sqs#QueueDoesNotExist"
	case "QueueAlreadyExists":
		return "com.amazonaws.sqs#QueueNameExists"
	case "AWS.SimpleQueueService.EmptyBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
		"AWS.SimpleQueueService.BatchEntryIdsNotDistinct":
		return "com.amazonaws.sqs#" + strings.TrimPrefix(awsErr.Code, "AWS.SimpleQueueService.")
	}
	return "com.amazonaws.sqs#" + awsErr.Code
}

// errorType returns the type of an error in the query protocols: "Receiver" for an error of the service, "Sender" for
// an error of the caller.
func errorType(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// writeGarbage writes the Garbage of a fault, as a broken proxy does, and returns the HTTP status.
func writeGarbage(w http.ResponseWriter, fault *world.CallError) int {
	status := fault.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, fault.Garbage) // fails only if the client has disconnected
	return status
}

// writeJSON writes a value as JSON. It does not escape <, > and &.
func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // fails only if the client has disconnected, because the emulator's structs can be encoded
}
