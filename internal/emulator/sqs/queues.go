// Package sqs serves the actions of SQS from the emulated world.
//
// In: a call with its parameters as a struct.
// Out: the answer as a struct with the names of SQS's API, or its error.
// Never: HTTP, or a wait for messages (package emulator waits).
package sqs

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// Actions returns the actions of SQS. Clients use the JSON protocol; older clients use the query protocol.
func Actions() map[string]api.Action {
	return map[string]api.Action{
		"CreateQueue":        api.Op(createQueue),
		"DeleteQueue":        api.Op(deleteQueue),
		"GetQueueUrl":        api.Op(getQueueURL),
		"ListQueues":         api.Op(listQueues),
		"GetQueueAttributes": api.Op(getQueueAttributes),
		"SendMessage":        api.Op(sendMessage),
		"ReceiveMessage":     api.Op(receiveMessage),
		"DeleteMessage":      api.Op(deleteMessage),
		"SendMessageBatch":   api.Op(sendMessageBatch),
		"DeleteMessageBatch": api.Op(deleteMessageBatch),
		"PurgeQueue":         api.Op(purgeQueue),
	}
}

type createQueueIn struct {
	QueueName  string
	Attributes map[string]string `aws:"Attribute"`
}

type queueURLOut struct{ QueueUrl string }

func createQueue(c *api.Call, in *createQueueIn) (queueURLOut, error) {
	q, err := c.Region.SQS.CreateQueue(c.Now, in.QueueName, in.Attributes)
	if err != nil {
		return queueURLOut{}, err
	}
	return queueURLOut{QueueUrl: queueURL(c, q.Name)}, nil
}

// queueURL returns the URL of a queue. Its host is the host that the client called, because clients may send requests
// to the queue's URL.
func queueURL(c *api.Call, name string) string {
	return "http://" + c.Host + "/" + c.Caller.Account + "/" + name
}

// queueNameOf returns the name of the queue with the URL. An empty URL stands for the path of the request.
func queueNameOf(c *api.Call, address string) string {
	if address == "" {
		address = c.RequestPath
	}
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	return address[strings.LastIndexByte(address, '/')+1:]
}

type queueIn struct{ QueueUrl string }

func deleteQueue(c *api.Call, in *queueIn) (api.None, error) {
	return api.None{}, c.Region.SQS.DeleteQueue(queueNameOf(c, in.QueueUrl))
}

func purgeQueue(c *api.Call, in *queueIn) (api.None, error) {
	return api.None{}, c.Region.SQS.PurgeQueue(queueNameOf(c, in.QueueUrl))
}

type queueNameIn struct{ QueueName string }

func getQueueURL(c *api.Call, in *queueNameIn) (queueURLOut, error) {
	q, err := c.Region.SQS.Queue(in.QueueName)
	if err != nil {
		return queueURLOut{}, err
	}
	return queueURLOut{QueueUrl: queueURL(c, q.Name)}, nil
}

type listQueuesIn struct {
	QueueNamePrefix string
	MaxResults      int
	NextToken       string
}

type listQueuesOut struct {
	QueueUrls []string `aws:"QueueUrl,,flat" json:"QueueUrls"`
	NextToken string   `json:",omitempty"`
}

func listQueues(c *api.Call, in *listQueuesIn) (listQueuesOut, error) {
	size := 1000 // default and maximum
	if in.MaxResults > 0 {
		size = min(in.MaxResults, 1000)
	}
	found, next, err := api.PageOf(c.Region.SQS.Queues(in.QueueNamePrefix), func(q *world.Queue) string { return q.Name },
		api.Page{Token: in.NextToken, Size: size})
	out := listQueuesOut{QueueUrls: []string{}, NextToken: next}
	for _, q := range found {
		out.QueueUrls = append(out.QueueUrls, queueURL(c, q.Name))
	}
	return out, err
}

type queueAttributesIn struct {
	QueueUrl       string
	AttributeNames []string `aws:"AttributeName"`
}

type queueAttributesOut struct {
	Attributes map[string]string `aws:"Attribute" json:"Attributes"`
}

func getQueueAttributes(c *api.Call, in *queueAttributesIn) (queueAttributesOut, error) {
	q, err := c.Region.SQS.Queue(queueNameOf(c, in.QueueUrl))
	if err != nil {
		return queueAttributesOut{}, err
	}
	visible, inFlight := q.Count(c.Now)
	all := maps.Clone(q.Attributes)
	maps.Copy(all, map[string]string{
		"QueueArn": q.ARN, "CreatedTimestamp": strconv.FormatInt(q.CreatedAt.Unix(), 10),
		"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"ApproximateNumberOfMessagesDelayed": "0",
	})
	if !slices.Contains(in.AttributeNames, "All") {
		maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, name) })
	}
	return queueAttributesOut{Attributes: all}, nil
}

type sendMessageIn struct {
	QueueUrl    string
	MessageBody string
}

type sendMessageOut struct {
	MessageId        string
	MD5OfMessageBody string
}

func sendMessage(c *api.Call, in *sendMessageIn) (sendMessageOut, error) {
	m, err := c.Region.SQS.SendMessage(c.Now, queueNameOf(c, in.QueueUrl), in.MessageBody)
	if err != nil {
		return sendMessageOut{}, err
	}
	return sendMessageOut{MessageId: m.ID, MD5OfMessageBody: m.MD5}, nil
}

type receiveMessageIn struct {
	QueueUrl             string
	AttributeNames       []string `aws:"AttributeName"`
	SystemAttributeNames []string `aws:"MessageSystemAttributeName" json:"MessageSystemAttributeNames"`
	MaxNumberOfMessages  int
	VisibilityTimeout    *int
	WaitTimeSeconds      *int
}

// ReceiveMessageOut is the answer to ReceiveMessage.
type ReceiveMessageOut struct {
	Messages []message `aws:"Message,,flat" json:"Messages,omitempty"` // received messages; empty: none

	wait time.Duration // requested by the caller
}

type message struct {
	MessageId     string
	ReceiptHandle string
	MD5OfBody     string
	Body          string
	Attributes    map[string]string `aws:"Attribute" json:"Attributes,omitempty"`
}

// Wait returns how long the caller waits for messages if none is available.
func (o ReceiveMessageOut) Wait() time.Duration { return o.wait }

const maxWait = 20 * time.Second

// receiveMessage receives the available messages without waiting.
func receiveMessage(c *api.Call, in *receiveMessageIn) (ReceiveMessageOut, error) {
	limit := max(in.MaxNumberOfMessages, 1)
	if limit > 10 {
		return ReceiveMessageOut{}, api.InvalidValue("MaxNumberOfMessages", strconv.Itoa(limit))
	}
	visibilityTimeout := time.Duration(-1) // negative: the timeout of the queue
	if in.VisibilityTimeout != nil {
		visibilityTimeout = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	name := queueNameOf(c, in.QueueUrl)
	found, err := c.Region.SQS.ReceiveMessages(c.Now, name, limit, visibilityTimeout)
	if err != nil {
		return ReceiveMessageOut{}, err
	}
	out := ReceiveMessageOut{}
	if in.WaitTimeSeconds != nil {
		out.wait = min(time.Duration(*in.WaitTimeSeconds)*time.Second, maxWait)
	}
	names := append(in.AttributeNames, in.SystemAttributeNames...)
	for _, m := range found {
		out.Messages = append(out.Messages,
			message{MessageId: m.ID, ReceiptHandle: m.Receipt, MD5OfBody: m.MD5, Body: m.Body, Attributes: systemAttributes(m, names)})
	}
	return out, nil
}

func systemAttributes(m world.Message, names []string) map[string]string {
	all := map[string]string{
		"SentTimestamp": strconv.FormatInt(m.SentAt.UnixMilli(), 10), "ApproximateReceiveCount": strconv.Itoa(m.Received),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.FirstAt.UnixMilli(), 10),
	}
	if !slices.Contains(names, "All") {
		maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(names, name) })
	}
	return all
}

type deleteMessageIn struct {
	QueueUrl      string
	ReceiptHandle string
}

func deleteMessage(c *api.Call, in *deleteMessageIn) (api.None, error) {
	return api.None{}, c.Region.SQS.DeleteMessage(queueNameOf(c, in.QueueUrl), in.ReceiptHandle)
}
