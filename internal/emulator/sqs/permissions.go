package sqs

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// Permissions returns the request that IAM evaluates for a call: the action on the queue, or on "*" for the other
// actions, which only administrators call. A batch action needs the permission of the same action on one message:
// SendMessageBatch needs SendMessage.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	queue := ""
	switch in := in.(type) {
	case *queueNameIn:
		queue = in.QueueName
	case *receiveMessageIn:
		queue = queueNameOf(c, in.QueueUrl)
	case *deleteMessageIn:
		queue = queueNameOf(c, in.QueueUrl)
	case *deleteMessageBatchIn:
		queue = queueNameOf(c, in.QueueUrl)
	case *sendMessageIn:
		queue = queueNameOf(c, in.QueueUrl)
	case *sendMessageBatchIn:
		queue = queueNameOf(c, in.QueueUrl)
	}
	r := iampolicy.Request{Action: strings.TrimSuffix(c.Name(), "Batch"), Resource: "*"}
	if queue != "" {
		r.Resource = c.Region.ARN("sqs", c.Caller.Account, queue)
	}
	return []iampolicy.Request{r}
}
