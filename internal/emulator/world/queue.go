package world

import (
	"crypto/md5"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Queue is an SQS queue.
type Queue struct {
	Name       string            // unique in the region; at most 80 characters
	ARN        string            // "arn:aws:sqs:…"
	CreatedAt  time.Time         // creation time
	Attributes map[string]string // attributes by their names in SetQueueAttributes: "VisibilityTimeout" → "30"

	messages []*Message          // oldest first
	receipts map[string]*Message // by last receipt handle
	sent     int                 // number of messages sent, for Faults.Redeliver
}

// SQS has the SQS queues of a region.
type SQS struct {
	region *Region
	queues map[string]*Queue // by name
}

// Message is a message in a queue.
type Message struct {
	ID       string    // a UUID
	Body     string    // never empty
	MD5      string    // hexadecimal MD5 of the body
	SentAt   time.Time // when SendMessage was called
	FirstAt  time.Time // when the message was first received; zero: never
	Received int       // number of times that the message was received
	Receipt  string    // last receipt handle

	visibleFrom time.Time // time from which the message can be received
	gone        bool      // the message was deleted; expire drops it
	twice       bool      // the next delivery is the first of two
	redeliver   bool      // the second delivery is due; deleting the message does not prevent it
}

// CreateQueue creates a queue. If a queue with this name and the given attributes exists, it is returned.
func (s *SQS) CreateQueue(now time.Time, name string, attributes map[string]string) (*Queue, error) {
	if name == "" || len(name) > 80 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return nil, failure.New("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if q := s.queues[name]; q != nil {
		for _, k := range slices.Sorted(maps.Keys(attributes)) {
			if q.Attributes[k] != attributes[k] {
				return nil, failure.New("QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute %s", k)
			}
		}
		return q, nil
	}
	all := map[string]string{
		"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
		"ReceiveMessageWaitTimeSeconds": "0", "MaximumMessageSize": "262144",
	}
	maps.Copy(all, attributes)
	q := &Queue{Name: name, ARN: s.region.arn("sqs", name), CreatedAt: now, Attributes: all}
	s.queues[name] = q
	return q, nil
}

// Queue returns a queue by name.
func (s *SQS) Queue(name string) (*Queue, error) {
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, failure.New("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
}

// Queues returns the queues of the region whose names begin with the prefix, sorted by name.
func (s *SQS) Queues(prefix string) []*Queue {
	var out []*Queue
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, s.queues[name])
		}
	}
	return out
}

// DeleteQueue deletes a queue and its messages.
func (s *SQS) DeleteQueue(name string) error {
	if _, err := s.Queue(name); err != nil {
		return err
	}
	delete(s.queues, name)
	return nil
}

// SendMessage adds a message to a queue.
func (s *SQS) SendMessage(now time.Time, queue, body string) (*Message, error) {
	q, err := s.Queue(queue)
	if err != nil {
		return nil, err
	}
	if body == "" {
		return nil, failure.New("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	sum := md5.Sum([]byte(body))
	m := &Message{ID: s.region.site.IDs.UUID("message"), Body: body, MD5: hex.EncodeToString(sum[:]), SentAt: now, visibleFrom: now}
	q.sent++
	m.twice = s.region.world().Faults.Redeliver > 0 && q.sent%s.region.world().Faults.Redeliver == 0
	q.messages = append(q.messages, m)
	s.region.world().messageSent = true
	return m, nil
}

// ReceiveMessages receives at most maxCount messages. They are then invisible to other receivers until the timeout; a
// negative timeout stands for the queue's VisibilityTimeout.
func (s *SQS) ReceiveMessages(now time.Time, queue string, maxCount int, timeout time.Duration) ([]Message, error) {
	q, err := s.Queue(queue)
	if err != nil {
		return nil, err
	}
	q.expire(now)
	if timeout < 0 {
		timeout = q.seconds("VisibilityTimeout")
	}
	var out []Message
	for i := range q.messages {
		m := q.messages[i]
		if s.region.world().Faults.Reorder {
			m = q.messages[len(q.messages)-1-i]
		}
		if len(out) == maxCount {
			break
		}
		if m.gone || m.visibleFrom.After(now) {
			continue
		}
		out = append(out, q.deliver(m, now, timeout, s.region.site.IDs.Hex("receipt", 44)))
	}
	return out, nil
}

// deliver delivers a message with a new receipt handle. The message is then invisible until the timeout, unless this is
// the first of two deliveries.
func (q *Queue) deliver(m *Message, now time.Time, timeout time.Duration, receipt string) Message {
	if m.Received == 0 {
		m.FirstAt = now
	}
	m.Received++
	delete(q.receipts, m.Receipt) // the previous handle is invalid
	m.Receipt = "AQEB" + receipt  // a prefix as in SQS: see DeleteMessage
	m.visibleFrom = now.Add(timeout)
	m.redeliver = m.twice
	if m.twice {
		m.twice, m.visibleFrom = false, now
	}
	if q.receipts == nil {
		q.receipts = map[string]*Message{}
	}
	q.receipts[m.Receipt] = m
	return *m
}

// DeleteMessage deletes the message with a receipt handle. An outdated handle deletes nothing. If a second delivery of
// the message is due, the message stays for this delivery: see Faults.Redeliver.
func (s *SQS) DeleteMessage(queue, receipt string) error {
	q, err := s.Queue(queue)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(receipt, "AQEB") {
		return failure.New("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	if m := q.receipts[receipt]; m != nil {
		m.gone, m.redeliver = !m.redeliver, false
	}
	return nil
}

// PurgeQueue removes all messages of a queue.
func (s *SQS) PurgeQueue(queue string) error {
	q, err := s.Queue(queue)
	if err != nil {
		return err
	}
	q.messages, q.receipts = nil, nil
	return nil
}

// MessageSent reports whether a message was sent to a queue since the last call of MessageSent.
func (w *World) MessageSent() bool {
	wasSent := w.messageSent
	w.messageSent = false
	return wasSent
}

// Count returns how many messages can be received now, and how many are not visible now.
func (q *Queue) Count(now time.Time) (visible, hidden int) {
	q.expire(now)
	for _, m := range q.messages {
		if m.visibleFrom.After(now) {
			hidden++
		}
	}
	return len(q.messages) - hidden, hidden
}

// expire drops deleted messages, and messages older than the queue's MessageRetentionPeriod.
func (q *Queue) expire(now time.Time) {
	oldest := now.Add(-q.seconds("MessageRetentionPeriod"))
	q.messages = slices.DeleteFunc(q.messages, func(m *Message) bool {
		if !m.gone && !m.SentAt.Before(oldest) {
			return false
		}
		m.gone = true
		delete(q.receipts, m.Receipt)
		return true
	})
}

// seconds returns the duration of an attribute that counts seconds; 0 if the value is not a number.
func (q *Queue) seconds(attribute string) time.Duration {
	n, err := strconv.Atoi(q.Attributes[attribute])
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
