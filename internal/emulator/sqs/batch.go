package sqs

import (
	"errors"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

const maxBatch = 10

type batchError struct {
	Id          string
	SenderFault bool
	Code        string
	Message     string
}

// checkBatch returns an error if the number of entries or their ids are invalid: SQS then rejects the whole batch.
func checkBatch(ids []string) error {
	if len(ids) == 0 {
		return &failure.Error{Code: "AWS.SimpleQueueService.EmptyBatchRequest", Message: "There should be at least one entry in the request."}
	}
	if len(ids) > maxBatch {
		return &failure.Error{Code: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
			Message: "Maximum number of entries per request are 10."}
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			return &failure.Error{Code: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Message: "Id " + id + " repeated."}
		}
		seen[id] = true
	}
	return nil
}

// runBatch calls do for each entry of a batch. It returns the answers and the failed entries.
func runBatch[E batchEntry, A any](c *api.Call, queue string, entries []E, do func(E) (A, error)) ([]A, []batchError, error) {
	successful, failed, ids := []A{}, []batchError{}, []string{}
	for _, e := range entries {
		ids = append(ids, e.id())
	}
	if _, err := c.Region.SQS.Queue(queue); err != nil {
		return successful, failed, err
	}
	if err := checkBatch(ids); err != nil {
		return successful, failed, err
	}
	for _, e := range entries {
		answer, err := do(e)
		if err != nil {
			failed = append(failed, batchErrorOf(e.id(), err))
			continue
		}
		successful = append(successful, answer)
	}
	return successful, failed, nil
}

type batchEntry interface{ id() string }

func (e sendEntry) id() string   { return e.Id }
func (e deleteEntry) id() string { return e.Id }

func batchErrorOf(id string, err error) batchError {
	out := batchError{Id: id, SenderFault: true, Code: "InternalError", Message: err.Error()}
	var apiErr *failure.Error
	if errors.As(err, &apiErr) {
		out.Code, out.Message = apiErr.Code, apiErr.Message
	}
	return out
}

type sendMessageBatchIn struct {
	QueueUrl string
	Entries  []sendEntry `aws:"SendMessageBatchRequestEntry"`
}

type sendEntry struct{ Id, MessageBody string }

type sendMessageBatchOut struct {
	Successful []sentEntry  `aws:"SendMessageBatchResultEntry,,flat"`
	Failed     []batchError `aws:"BatchResultErrorEntry,,flat"`
}

type sentEntry struct{ Id, MessageId, MD5OfMessageBody string }

func sendMessageBatch(c *api.Call, in *sendMessageBatchIn) (sendMessageBatchOut, error) {
	queue := queueNameOf(c, in.QueueUrl)
	sent, failed, err := runBatch(c, queue, in.Entries, func(e sendEntry) (sentEntry, error) {
		m, err := c.Region.SQS.SendMessage(c.Now, queue, e.MessageBody)
		if err != nil {
			return sentEntry{}, err
		}
		return sentEntry{Id: e.Id, MessageId: m.ID, MD5OfMessageBody: m.MD5}, nil
	})
	return sendMessageBatchOut{Successful: sent, Failed: failed}, err
}

type deleteMessageBatchIn struct {
	QueueUrl string
	Entries  []deleteEntry `aws:"DeleteMessageBatchRequestEntry"`
}

type deleteEntry struct{ Id, ReceiptHandle string }

type deleteMessageBatchOut struct {
	Successful []deletedEntry `aws:"DeleteMessageBatchResultEntry,,flat"`
	Failed     []batchError   `aws:"BatchResultErrorEntry,,flat"`
}

type deletedEntry struct{ Id string }

func deleteMessageBatch(c *api.Call, in *deleteMessageBatchIn) (deleteMessageBatchOut, error) {
	queue := queueNameOf(c, in.QueueUrl)
	deleted, failed, err := runBatch(c, queue, in.Entries, func(e deleteEntry) (deletedEntry, error) {
		return deletedEntry{Id: e.Id}, c.Region.SQS.DeleteMessage(queue, e.ReceiptHandle)
	})
	return deleteMessageBatchOut{Successful: deleted, Failed: failed}, err
}
