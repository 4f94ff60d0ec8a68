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
	CreatedAt  time.Time         // when the queue was created
	Attributes map[string]string // as SetQueueAttributes takes them: "VisibilityTimeout" → "30"

	messages []*Message          // in the order of their sending
	receipts map[string]*Message // by the handle of their last receipt
	sent     int
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
	MD5      string    // of the body, hexadecimal
	SentAt   time.Time // when SendMessage was called
	FirstAt  time.Time // of the first receipt; zero before
	Received int       // times
	Receipt  string    // handle of the last receipt

	visible time.Time // from then on
	gone    bool      // deleted; what is gone is dropped at the next receipt
	twice   bool      // the next receipt is the first of two deliveries
	copied  bool      // there is another copy: hiding or deleting this one does not reach it
}

// CreateQueue makes a queue; the same name with the same attributes is the same queue.
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

// Queues returns the queues of the region whose names begin so, by name.
func (s *SQS) Queues(prefix string) []*Queue {
	var out []*Queue
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, s.queues[name])
		}
	}
	return out
}

// DeleteQueue removes a queue and what is in it.
func (s *SQS) DeleteQueue(name string) error {
	if _, err := s.Queue(name); err != nil {
		return err
	}
	delete(s.queues, name)
	return nil
}

// SendMessage puts a message into a queue.
func (s *SQS) SendMessage(now time.Time, queue, body string) (*Message, error) {
	q, err := s.Queue(queue)
	if err != nil {
		return nil, err
	}
	if body == "" {
		return nil, failure.New("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	sum := md5.Sum([]byte(body))
	m := &Message{ID: s.region.site.IDs.UUID("message"), Body: body, MD5: hex.EncodeToString(sum[:]), SentAt: now, visible: now}
	q.sent++
	m.twice = s.region.world().Faults.Redeliver > 0 && q.sent%s.region.world().Faults.Redeliver == 0
	q.messages = append(q.messages, m)
	s.region.world().mailed = true
	return m, nil
}

// ReceiveMessages takes up to most messages, which stay hidden from others for a
// while; a negative while is the queue's own.
func (s *SQS) ReceiveMessages(now time.Time, queue string, most int, while time.Duration) ([]Message, error) {
	q, err := s.Queue(queue)
	if err != nil {
		return nil, err
	}
	q.expire(now)
	if while < 0 {
		while = q.seconds("VisibilityTimeout")
	}
	var out []Message
	for i := range q.messages {
		m := q.messages[i]
		if s.region.world().Faults.Reorder {
			m = q.messages[len(q.messages)-1-i]
		}
		if len(out) == most {
			break
		}
		if m.gone || m.visible.After(now) {
			continue
		}
		out = append(out, q.give(m, now, while, s.region.site.IDs.Hex("receipt", 44)))
	}
	return out, nil
}

// give hands a message out, under a new receipt, and hides it for a while, unless SQS delivers it twice.
func (q *Queue) give(m *Message, now time.Time, while time.Duration, receipt string) Message {
	if m.Received == 0 {
		m.FirstAt = now
	}
	m.Received++
	delete(q.receipts, m.Receipt) // an old handle is good for nothing
	m.Receipt = "AQEB" + receipt
	m.visible = now.Add(while)
	m.copied = m.twice
	if m.twice {
		m.twice, m.visible = false, now
	}
	if q.receipts == nil {
		q.receipts = map[string]*Message{}
	}
	q.receipts[m.Receipt] = m
	return *m
}

// DeleteMessage removes the message of a receipt; an old receipt removes nothing.
func (s *SQS) DeleteMessage(queue, receipt string) error {
	q, err := s.Queue(queue)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(receipt, "AQEB") {
		return failure.New("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	if m := q.receipts[receipt]; m != nil {
		m.gone, m.copied = !m.copied, false
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

// Mailed reports whether a message was sent since the last time it was asked.
func (w *World) Mailed() bool {
	mailed := w.mailed
	w.mailed = false
	return mailed
}

// Count returns how many messages can be received now, and how many are hidden.
func (q *Queue) Count(now time.Time) (visible, hidden int) {
	q.expire(now)
	for _, m := range q.messages {
		if m.visible.After(now) {
			hidden++
		}
	}
	return len(q.messages) - hidden, hidden
}

// expire drops messages that were deleted, and those that are older than the queue keeps them.
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

// seconds reads an attribute that is a number of seconds.
func (q *Queue) seconds(attribute string) time.Duration {
	n, err := strconv.Atoi(q.Attributes[attribute])
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
