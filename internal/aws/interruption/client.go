// Package interruption reads EC2 interruption messages from an SQS queue.
//
// In: a queue's name, and messages as EventBridge writes them.
// Out: typed interruption messages, and handles to delete them after processing.
// Never: Kubernetes, a reaction to a message, or trust in its content.
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
	name   string

	mu  sync.Mutex
	url string // empty until the queue was found
}

// What SQS allows in one call, and how long what was received stays hidden: what is not deleted by then comes again.
const (
	MaxBatch   = 10
	LongPoll   = 20 * time.Second
	HiddenTime = 20 * time.Second
)

// Message is a message as it was received.
type Message struct {
	Body     string    // JSON of an EventBridge event
	Sent     time.Time // to the queue; zero if SQS did not say
	Received int       // how often it was, this time included

	receipt string
}

// New returns the client of the queue with this name, in the region and account of cfg. The queue's URL is resolved at the first
// use, so a queue that is created later is found.
func New(cfg aws.Config, queue string) *Client {
	return &Client{client: sqs.NewFromConfig(awserr.Genuine(cfg)), name: queue}
}

// Receive returns up to MaxBatch messages. If there are none it waits for the first, up to wait, LongPoll at most.
func (d *Client) Receive(ctx context.Context, wait time.Duration) ([]Message, error) {
	url, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	out, err := d.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: MaxBatch,
		VisibilityTimeout: int32(HiddenTime / time.Second), WaitTimeSeconds: int32(min(wait, LongPoll) / time.Second),
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{
			sqstypes.MessageSystemAttributeNameSentTimestamp, sqstypes.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, d.failed("ReceiveMessage", err)
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

// Delete removes up to MaxBatch messages from the queue, and returns how many are. One that could not be removed comes again.
func (d *Client) Delete(ctx context.Context, messages []Message) (int, error) {
	if len(messages) == 0 {
		return 0, nil
	}
	url, err := d.find(ctx)
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
		return 0, d.failed("DeleteMessageBatch", err)
	}
	if len(out.Failed) > 0 {
		f := out.Failed[0]
		return len(out.Successful), awserr.FromCode("DeleteMessageBatch "+d.name, aws.ToString(f.Code), aws.ToString(f.Message))
	}
	return len(out.Successful), nil
}

// find returns the URL of the queue.
func (d *Client) find(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.url != "" {
		return d.url, nil
	}
	out, err := d.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(d.name)})
	if err != nil {
		return "", d.sorted("GetQueueUrl", err)
	}
	d.url = aws.ToString(out.QueueUrl)
	if d.url == "" {
		return "", fmt.Errorf("find queue %s: SQS knows it and does not say where it is", d.name)
	}
	return d.url, nil
}

// noQueue is SQS's code for a queue that does not exist, as it was before SQS spoke JSON; it still sends it.
const noQueue = "AWS.SimpleQueueService.NonExistentQueue"

// failed is sorted for calls that name the URL: a queue that is gone may be made anew.
func (d *Client) failed(op string, err error) error {
	err = d.sorted(op, err)
	if awserr.Is(err, awserr.Gone) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.url = ""
	}
	return err
}

func (d *Client) sorted(op string, err error) error {
	err = awserr.Sort(op+" "+d.name, err)
	e := awserr.Of(err)
	if e.Code == noQueue {
		e.Kind, e.Reason = awserr.Gone, "NotFound"
	}
	if e.Hint == "" {
		switch e.Kind {
		case awserr.Gone:
			e.Hint = "make the queue, or correct --interruption-queue (INTERRUPTION_QUEUE)"
		case awserr.Denied:
			e.Hint = "allow sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage on the queue to the controller's role"
		default:
		}
	}
	return err
}
