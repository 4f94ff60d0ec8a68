package emulator

import (
	"errors"

	"github.com/joiner-sh/joiner/world"
)

// maxBatch is how many messages one request may be about.
const maxBatch = 10

// batchFailed is an entry of a batch that was refused.
type batchFailed struct {
	Id          string
	SenderFault bool
	Code        string
	Message     string
}

// checkBatch refuses a batch as a whole, as SQS does.
func checkBatch(ids []string) error {
	if len(ids) == 0 {
		return &world.Error{Code: "AWS.SimpleQueueService.EmptyBatchRequest", Message: "There should be at least one entry in the request."}
	}
	if len(ids) > maxBatch {
		return &world.Error{Code: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", Message: "Maximum number of entries per request are 10."}
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			return &world.Error{Code: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Message: "Id " + id + " repeated."}
		}
		seen[id] = true
	}
	return nil
}

// failedEntry is the answer for an entry that was refused.
func failedEntry(id string, err error) batchFailed {
	out := batchFailed{Id: id, SenderFault: true, Code: "InternalError", Message: err.Error()}
	var refusal *world.Error
	if errors.As(err, &refusal) {
		out.Code, out.Message = refusal.Code, refusal.Message
	}
	return out
}

type sendMessageBatchIn struct {
	QueueUrl string
	Entries  []sendEntry `aws:"SendMessageBatchRequestEntry"`
}

type sendEntry struct{ Id, MessageBody string }

type sendMessageBatchOut struct {
	Successful []sentEntry   `aws:"SendMessageBatchResultEntry,,flat"`
	Failed     []batchFailed `aws:"BatchResultErrorEntry,,flat"`
}

type sentEntry struct{ Id, MessageId, MD5OfMessageBody string }

func sendMessageBatch(c *call, in *sendMessageBatchIn) (sendMessageBatchOut, error) {
	out := sendMessageBatchOut{Successful: []sentEntry{}, Failed: []batchFailed{}}
	ids := []string{}
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
	}
	if _, err := c.region.Queue(c.queueOf(in.QueueUrl)); err != nil {
		return out, err
	}
	if err := checkBatch(ids); err != nil {
		return out, err
	}
	for _, e := range in.Entries {
		m, err := c.region.SendMessage(c.now, c.queueOf(in.QueueUrl), e.MessageBody)
		if err != nil {
			out.Failed = append(out.Failed, failedEntry(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, sentEntry{Id: e.Id, MessageId: m.ID, MD5OfMessageBody: m.MD5})
	}
	return out, nil
}

type deleteMessageBatchIn struct {
	QueueUrl string
	Entries  []deleteEntry `aws:"DeleteMessageBatchRequestEntry"`
}

type deleteEntry struct{ Id, ReceiptHandle string }

type deleteMessageBatchOut struct {
	Successful []deletedEntry `aws:"DeleteMessageBatchResultEntry,,flat"`
	Failed     []batchFailed  `aws:"BatchResultErrorEntry,,flat"`
}

type deletedEntry struct{ Id string }

func deleteMessageBatch(c *call, in *deleteMessageBatchIn) (deleteMessageBatchOut, error) {
	out := deleteMessageBatchOut{Successful: []deletedEntry{}, Failed: []batchFailed{}}
	ids := []string{}
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
	}
	if _, err := c.region.Queue(c.queueOf(in.QueueUrl)); err != nil {
		return out, err
	}
	if err := checkBatch(ids); err != nil {
		return out, err
	}
	for _, e := range in.Entries {
		if err := c.region.DeleteMessage(c.queueOf(in.QueueUrl), e.ReceiptHandle); err != nil {
			out.Failed = append(out.Failed, failedEntry(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, deletedEntry{Id: e.Id})
	}
	return out, nil
}
