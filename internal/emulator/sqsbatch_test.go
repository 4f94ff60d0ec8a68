package emulator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestQueueBatches sends and deletes ten messages per call, and checks SQS's errors for batches and entries.
func TestQueueBatches(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	queue, err := b.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	entries := func(n int) []sqstypes.SendMessageBatchRequestEntry {
		out := []sqstypes.SendMessageBatchRequestEntry{}
		for i := range n {
			out = append(out, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)),
				MessageBody: aws.String("body " + strconv.Itoa(i))})
		}
		return out
	}
	sent, err := b.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: queue.QueueUrl, Entries: entries(10)})
	if err != nil || len(sent.Successful) != 10 || len(sent.Failed) != 0 {
		t.Fatalf("sent: %+v, %v, want 10 successful entries", sent, err)
	}
	// The partial batch has its own queue: the test receives the ten messages later.
	otherQueue, err := b.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("other")})
	if err != nil {
		t.Fatal(err)
	}
	oneEmpty := entries(2)
	oneEmpty[1].MessageBody = aws.String("")
	partial, err := b.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: otherQueue.QueueUrl, Entries: oneEmpty})
	if err != nil || len(partial.Successful) != 1 || len(partial.Failed) != 1 || *partial.Failed[0].Id != "1" {
		t.Errorf("a batch with an empty message: %+v, %v, want only entry 1 to fail", partial, err)
	}
	for n, want := range map[int]string{0: "EmptyBatchRequest", 11: "TooManyEntriesInBatchRequest"} {
		_, err := b.sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: queue.QueueUrl, Entries: entries(n)})
		if got := code(t, err); got != want && got != "AWS.SimpleQueueService."+want {
			t.Errorf("%d entries: %v, want %s", n, err, want)
		}
	}
	got, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
	if err != nil || len(got.Messages) != 10 {
		t.Fatalf("%d messages, %v, want 10", len(got.Messages), err)
	}
	var deletions []sqstypes.DeleteMessageBatchRequestEntry
	for i, m := range got.Messages {
		deletions = append(deletions, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	deletions[9].ReceiptHandle = aws.String("invalid")
	deleted, err := b.sqs.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: queue.QueueUrl, Entries: deletions})
	if err != nil || len(deleted.Successful) != 9 || len(deleted.Failed) != 1 || *deleted.Failed[0].Id != "9" ||
		*deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Fatalf("deleted: %+v, %v, want all but entry 9", deleted, err)
	}
	b.advance(time.Minute) // more than the visibility timeout, 30 s
	again, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
	if err != nil || len(again.Messages) != 1 || *again.Messages[0].Body != *got.Messages[9].Body {
		t.Errorf("messages after the deletion: %+v, %v, want only the message of entry 9", again, err)
	}
}

// TestQueueFaults: with Faults.Redeliver = n, every nth message is delivered twice, even if it was deleted in between.
// With Faults.Reorder, the newest message is delivered first.
func TestQueueFaults(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.Redeliver, w.Faults.Reorder = 2, true })
	queue, err := b.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		_, err := b.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(strconv.Itoa(i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	order := ""
	for range 3 {
		got, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			order += *m.Body
		}
		order += "."
	}
	if order != "3210.31.." {
		t.Errorf("delivered %s, want 3210.31..: the newest first, and every second message twice", order)
	}
	if _, err := b.sqs.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: queue.QueueUrl}); err != nil {
		t.Fatal(err)
	}
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.Redeliver = 1 })
	if _, err := b.sqs.SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("again")}); err != nil {
		t.Fatal(err)
	}
	for call, want := range []int{1, 1, 0} {
		got, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
		if err != nil || len(got.Messages) != want {
			t.Fatalf("call %d: %+v, %v, want %d messages", call, got, err, want)
		}
		for _, m := range got.Messages {
			if _, err := b.sqs.DeleteMessage(t.Context(),
				&sqs.DeleteMessageInput{QueueUrl: queue.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
