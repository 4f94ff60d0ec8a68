package sqs

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// Permissions returns the request that IAM evaluates for a call: the action on the queue, or on "*" for actions that
// only administrators call. A batch needs the permission for the action on one message.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	queue := ""
	switch in := in.(type) {
	case *queueNameIn:
		queue = in.QueueName
	case *receiveMessageIn:
		queue = queueOf(c, in.QueueUrl)
	case *deleteMessageIn:
		queue = queueOf(c, in.QueueUrl)
	case *deleteMessageBatchIn:
		queue = queueOf(c, in.QueueUrl)
	case *sendMessageIn:
		queue = queueOf(c, in.QueueUrl)
	case *sendMessageBatchIn:
		queue = queueOf(c, in.QueueUrl)
	}
	r := iampolicy.Request{Action: strings.TrimSuffix(c.Name(), "Batch"), Resource: "*"}
	if queue != "" {
		r.Resource = c.Region.ARN("sqs", c.Caller.Account, queue)
	}
	return []iampolicy.Request{r}
}
