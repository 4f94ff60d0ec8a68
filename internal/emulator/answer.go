package emulator

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// writeAnswer writes what a call came to.
func (s *Server) writeAnswer(w http.ResponseWriter, c *call, answer any) {
	h := w.Header()
	h.Set("X-Amzn-Requestid", c.id)
	switch c.protocol {
	case ec2Query, awsQuery:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		_, _ = w.Write(s.xml(c, answer)) // the client has disconnected
		return
	case awsJSON10:
		h.Set("Content-Type", "application/x-amz-json-1.0")
	case awsJSON11:
		h.Set("Content-Type", "application/x-amz-json-1.1")
	default:
		h.Set("Content-Type", "application/json")
	}
	writeJSON(w, answer)
}

// xml writes an answer in the XML of its service.
func (s *Server) xml(c *call, answer any) []byte {
	e := &encoder{codec: &s.codec, dialect: dialect{small: c.protocol == ec2Query, item: queryItem}}
	if e.dialect.small {
		e.dialect.item = ec2Item
	}
	e.out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	e.open(c.action + `Response xmlns="` + s.services[c.service].namespace + `"`)
	if c.protocol == ec2Query {
		e.text("requestId", c.id)
		e.fields(reflect.ValueOf(answer))
	} else {
		e.open(c.action + "Result")
		e.fields(reflect.ValueOf(answer))
		e.close(c.action + "Result")
		e.open("ResponseMetadata")
		e.text("RequestId", c.id)
		e.close("ResponseMetadata")
	}
	e.close(c.action + "Response")
	return e.out.Bytes()
}

// writeError writes a refusal as the service does, and returns its status.
func (s *Server) writeError(w http.ResponseWriter, c *call, err error) int {
	var refusal *world.Error
	if !errors.As(err, &refusal) {
		s.logger().Error("call failed", "call", c.name(), "request", c.id, "error", err)
		refusal = &world.Error{Code: "InternalFailure", Message: err.Error(), Status: http.StatusInternalServerError}
	}
	status := refusal.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	h := w.Header()
	h.Set("X-Amzn-Requestid", c.id)
	switch c.protocol {
	case ec2Query, awsQuery:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		w.WriteHeader(status)
		_, _ = w.Write(s.xmlError(c, refusal, status)) // the client has disconnected
	default:
		h.Set("Content-Type", "application/x-amz-json-1.1")
		h.Set("X-Amzn-Errortype", jsonCode(c, refusal))
		if c.service == "sqs" {
			h.Set("X-Amzn-Query-Error", refusal.Code+";"+blame(status))
		}
		w.WriteHeader(status)
		writeJSON(w, map[string]string{"__type": jsonCode(c, refusal), "message": refusal.Message})
	}
	return status
}

// xmlError writes an error in the XML of its service.
func (s *Server) xmlError(c *call, refusal *world.Error, status int) []byte {
	e := &encoder{codec: &s.codec}
	e.out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	if c.protocol == ec2Query {
		e.open("Response")
		e.open("Errors")
		e.open("Error")
		e.text("Code", refusal.Code)
		e.text("Message", refusal.Message)
		e.close("Error")
		e.close("Errors")
		e.text("RequestID", c.id)
		e.close("Response")
		return e.out.Bytes()
	}
	e.open(`ErrorResponse xmlns="` + s.services[c.service].namespace + `"`)
	e.open("Error")
	e.text("Type", blame(status))
	e.text("Code", refusal.Code)
	e.text("Message", refusal.Message)
	e.close("Error")
	e.text("RequestId", c.id)
	e.close("ErrorResponse")
	return e.out.Bytes()
}

// jsonCode returns the code of an error as the JSON protocols name it. Those of
// SQS are not those of its query protocol.
func jsonCode(c *call, refusal *world.Error) string {
	if c.service != "sqs" {
		return refusal.Code
	}
	switch refusal.Code {
	case "AWS.SimpleQueueService.NonExistentQueue":
		return "com.amazonaws.sqs#QueueDoesNotExist"
	case "QueueAlreadyExists":
		return "com.amazonaws.sqs#QueueNameExists"
	case "AWS.SimpleQueueService.EmptyBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct":
		return "com.amazonaws.sqs#" + strings.TrimPrefix(refusal.Code, "AWS.SimpleQueueService.")
	}
	return "com.amazonaws.sqs#" + refusal.Code
}

// blame says whose fault an error is.
func blame(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// writeGarbage writes what is no answer, and returns its status.
func writeGarbage(w http.ResponseWriter, a *world.Answer) int {
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a.Garbage) // the client has disconnected
	return status
}

// writeJSON writes a value as JSON, without escaping what HTML would need.
func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // own structs always marshal, and a client that has disconnected gets no error
}
