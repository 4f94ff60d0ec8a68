// Package interruption receives EC2 interruption messages from an SQS queue, and parses and deletes them.
//
// In: a queue's name, and messages as EventBridge writes them.
// Out: parsed interruption messages; the deletion of messages that the caller has processed.
// Never: a Kubernetes object, a reaction to a message, or trust in a message's content.
package interruption

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Client is the client of the queue. It is safe for concurrent use.
type Client struct {
	client *sqs.Client
	name   string // of the queue

	mu  sync.Mutex
	url string // empty until the queue has been found
}

// SQS's limits for one call, and the visibility timeout.
const (
	MaxBatch = 10               // maximum number of messages
	LongPoll = 20 * time.Second // maximum wait for a message
	// VisibilityTimeout is how long SQS hides a received message. Then SQS delivers the message again, unless it was
	// deleted.
	VisibilityTimeout = 20 * time.Second
)

// Message is a received message.
type Message struct {
	Body     string    // JSON of an EventBridge event
	Sent     time.Time // when the message was sent to the queue; zero if SQS did not return the time
	Received int       // how often the message was received, including this time

	receipt string // SQS's handle to delete the message
}

// New returns the client of the queue with this name, in the region and account of cfg. The queue may be created later:
// its URL is looked up at the first use.
func New(cfg aws.Config, queue string) *Client {
	return &Client{client: sqs.NewFromConfig(awserr.ClientConfig(cfg)), name: queue}
}

// Receive returns up to MaxBatch messages. If the queue is empty, it waits for a message, for at most the shorter of
// wait and LongPoll.
func (d *Client) Receive(ctx context.Context, wait time.Duration) ([]Message, error) {
	url, err := d.queueURL(ctx)
	if err != nil {
		return nil, err
	}
	out, err := d.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: MaxBatch,
		VisibilityTimeout: int32(VisibilityTimeout / time.Second), WaitTimeSeconds: int32(min(wait, LongPoll) / time.Second),
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{
			sqstypes.MessageSystemAttributeNameSentTimestamp, sqstypes.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, d.callError("ReceiveMessage", err)
	}
	messages := make([]Message, 0, len(out.Messages))
	for _, m := range out.Messages {
		messages = append(messages, fromSQS(m))
	}
	return messages, nil
}

func fromSQS(m sqstypes.Message) Message {
	out := Message{Body: aws.ToString(m.Body), receipt: aws.ToString(m.ReceiptHandle), Received: 1}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		out.Sent = time.UnixMilli(ms).UTC()
	}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil {
		out.Received = n
	}
	return out
}

// Delete removes at most MaxBatch messages from the queue, and returns the number of removed messages. A message that
// was not removed is received again.
func (d *Client) Delete(ctx context.Context, messages []Message) (int, error) {
	if len(messages) == 0 {
		return 0, nil
	}
	url, err := d.queueURL(ctx)
	if err != nil {
		return 0, err
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(url)}
	for i, m := range messages {
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.receipt),
		})
	}
	out, err := d.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return 0, d.callError("DeleteMessageBatch", err)
	}
	if len(out.Failed) > 0 {
		f := out.Failed[0]
		return len(out.Successful), awserr.FromCode("DeleteMessageBatch "+d.name, aws.ToString(f.Code), aws.ToString(f.Message))
	}
	return len(out.Successful), nil
}

// queueURL returns the URL of the queue. On first use, it reads the URL from SQS.
func (d *Client) queueURL(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.url != "" {
		return d.url, nil
	}
	out, err := d.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(d.name)})
	if err != nil {
		return "", d.classify("GetQueueUrl", err)
	}
	d.url = aws.ToString(out.QueueUrl)
	if d.url == "" {
		return "", fmt.Errorf("find queue %s: SQS returned no URL", d.name)
	}
	return d.url, nil
}

// codeNoQueue is the code of SQS's former XML protocol for a queue that does not exist. SQS still sends this code.
const codeNoQueue = "AWS.SimpleQueueService.NonExistentQueue"

// callError returns the classified error of a call that used d.url. If the queue is gone, it clears d.url, because the
// queue may be recreated with another URL.
func (d *Client) callError(op string, err error) error {
	err = d.classify(op, err)
	if awserr.Is(err, awserr.Gone) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.url = ""
	}
	return err
}

// classify returns an error as an awserr.Error, with a hint about the queue.
func (d *Client) classify(op string, err error) error {
	err = awserr.Classify(op+" "+d.name, err)
	e := awserr.Of(err)
	if e.Code == codeNoQueue {
		e.Kind, e.Reason = awserr.Gone, "NotFound"
	}
	if e.Hint == "" { // package awserr has no hint for this error
		switch e.Kind {
		case awserr.Gone:
			e.Hint = "create the queue, or correct --interruption-queue (INTERRUPTION_QUEUE)"
		case awserr.Denied:
			e.Hint = "allow sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage on the queue to the controller's role"
		default:
		}
	}
	return err
}
