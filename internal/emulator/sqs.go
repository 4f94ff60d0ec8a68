package emulator

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// sqsActions returns the actions of SQS, which is spoken in JSON and, by older
// clients, in the query protocol.
func sqsActions() map[string]action {
	return map[string]action{
		"CreateQueue":        op(createQueue),
		"DeleteQueue":        op(deleteQueue),
		"GetQueueUrl":        op(getQueueURL),
		"ListQueues":         op(listQueues),
		"GetQueueAttributes": op(getQueueAttributes),
		"SendMessage":        op(sendMessage),
		"ReceiveMessage":     op(receiveMessage),
		"DeleteMessage":      op(deleteMessage),
		"SendMessageBatch":   op(sendMessageBatch),
		"DeleteMessageBatch": op(deleteMessageBatch),
		"PurgeQueue":         op(purgeQueue),
	}
}

type createQueueIn struct {
	QueueName  string
	Attributes map[string]string `aws:"Attribute"`
}

type queueURLOut struct{ QueueUrl string }

func createQueue(c *call, in *createQueueIn) (queueURLOut, error) {
	q, err := c.region.SQS.CreateQueue(c.now, in.QueueName, in.Attributes)
	if err != nil {
		return queueURLOut{}, err
	}
	return queueURLOut{QueueUrl: c.queueURL(q.Name)}, nil
}

// queueURL returns the URL of a queue. Its host is the one that was called, so
// that the clients that send requests to the URL itself find us.
func (c *call) queueURL(name string) string {
	return "http://" + c.host + "/" + c.caller.Account + "/" + name
}

// queueOf returns the queue that a URL names, or the path of the request.
func (c *call) queueOf(queueURL string) string {
	if queueURL == "" {
		queueURL = c.requestPath
	}
	if u, err := url.Parse(queueURL); err == nil {
		queueURL = u.Path
	}
	return queueURL[strings.LastIndexByte(queueURL, '/')+1:]
}

type queueIn struct{ QueueUrl string }

func deleteQueue(c *call, in *queueIn) (none, error) {
	return none{}, c.region.SQS.DeleteQueue(c.queueOf(in.QueueUrl))
}

func purgeQueue(c *call, in *queueIn) (none, error) {
	return none{}, c.region.SQS.PurgeQueue(c.queueOf(in.QueueUrl))
}

type queueNameIn struct{ QueueName string }

func getQueueURL(c *call, in *queueNameIn) (queueURLOut, error) {
	q, err := c.region.SQS.Queue(in.QueueName)
	if err != nil {
		return queueURLOut{}, err
	}
	return queueURLOut{QueueUrl: c.queueURL(q.Name)}, nil
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

func listQueues(c *call, in *listQueuesIn) (listQueuesOut, error) {
	size := 1000
	if in.MaxResults > 0 {
		size = min(in.MaxResults, 1000)
	}
	found, next, err := cut(c.region.SQS.Queues(in.QueueNamePrefix), func(q *world.Queue) string { return q.Name }, page{token: in.NextToken, size: size})
	out := listQueuesOut{QueueUrls: []string{}, NextToken: next}
	for _, q := range found {
		out.QueueUrls = append(out.QueueUrls, c.queueURL(q.Name))
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

func getQueueAttributes(c *call, in *queueAttributesIn) (queueAttributesOut, error) {
	q, err := c.region.SQS.Queue(c.queueOf(in.QueueUrl))
	if err != nil {
		return queueAttributesOut{}, err
	}
	visible, hidden := q.Count(c.now)
	all := maps.Clone(q.Attributes)
	maps.Copy(all, map[string]string{
		"QueueArn": q.ARN, "CreatedTimestamp": strconv.FormatInt(q.CreatedAt.Unix(), 10),
		"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
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

func sendMessage(c *call, in *sendMessageIn) (sendMessageOut, error) {
	m, err := c.region.SQS.SendMessage(c.now, c.queueOf(in.QueueUrl), in.MessageBody)
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

type receiveMessageOut struct {
	Messages []message `aws:"Message,,flat" json:"Messages,omitempty"`

	wait time.Duration
}

type message struct {
	MessageId     string
	ReceiptHandle string
	MD5OfBody     string
	Body          string
	Attributes    map[string]string `aws:"Attribute" json:"Attributes,omitempty"`
}

// maxWait is the longest that a receiver may wait for messages.
const maxWait = 20 * time.Second

// receiveMessage takes what is there. It also says how long the caller would wait for more.
func receiveMessage(c *call, in *receiveMessageIn) (receiveMessageOut, error) {
	most := max(in.MaxNumberOfMessages, 1)
	if most > 10 {
		return receiveMessageOut{}, invalidValue("MaxNumberOfMessages", strconv.Itoa(most))
	}
	while := time.Duration(-1)
	if in.VisibilityTimeout != nil {
		while = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	name := c.queueOf(in.QueueUrl)
	found, err := c.region.SQS.ReceiveMessages(c.now, name, most, while)
	if err != nil {
		return receiveMessageOut{}, err
	}
	out := receiveMessageOut{}
	if in.WaitTimeSeconds != nil {
		out.wait = min(time.Duration(*in.WaitTimeSeconds)*time.Second, maxWait)
	}
	names := append(in.AttributeNames, in.SystemAttributeNames...)
	for _, m := range found {
		out.Messages = append(out.Messages, message{MessageId: m.ID, ReceiptHandle: m.Receipt, MD5OfBody: m.MD5, Body: m.Body, Attributes: systemAttributes(m, names)})
	}
	return out, nil
}

// systemAttributes returns the attributes asked for that SQS itself gives a message.
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

func deleteMessage(c *call, in *deleteMessageIn) (none, error) {
	return none{}, c.region.SQS.DeleteMessage(c.queueOf(in.QueueUrl), in.ReceiptHandle)
}

// recheck is how often a waiting receiver looks for messages that have become
// visible again; new ones wake it.
const recheck = 200 * time.Millisecond

// poll waits for messages as long as the caller would, and takes them.
func (s *Server) poll(r *http.Request, c *call, act action, answer any) (any, error) {
	first, ok := answer.(receiveMessageOut)
	if !ok || len(first.Messages) > 0 || first.wait <= 0 {
		return answer, nil
	}
	deadline := time.NewTimer(first.wait)
	defer deadline.Stop()
	look := time.NewTicker(recheck)
	defer look.Stop()
	for {
		select {
		case <-r.Context().Done():
			return answer, nil
		case <-deadline.C:
			return answer, nil
		case <-look.C:
		case <-s.mailed():
		}
		var err error
		s.locked(func(w *world.World, now time.Time) {
			c.world, c.now = w, now
			answer, err = s.run(c, act)
		})
		if out, ok := answer.(receiveMessageOut); err != nil || !ok || len(out.Messages) > 0 {
			return answer, err
		}
	}
}

// mailed returns a channel that is closed when a message has been sent.
func (s *Server) mailed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mail == nil {
		s.mail = make(chan struct{})
	}
	return s.mail
}
