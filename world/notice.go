package world

import (
	"encoding/json"
	"time"
)

// notice is an event as EventBridge delivers it.
type notice struct {
	Version    string         `json:"version"`
	ID         string         `json:"id"`
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Account    string         `json:"account"`
	Time       string         `json:"time"`
	Region     string         `json:"region"`
	Resources  []string       `json:"resources"`
	Detail     map[string]any `json:"detail"`
}

// spotWarning is how long before a spot instance ends its warning comes.
const spotWarning = 2 * time.Minute

// Interrupt takes a spot instance back: the warning is sent now, and the instance
// ends two minutes later. It returns false for an instance that is not spot and alive.
func (w *World) Interrupt(now time.Time, id string) bool {
	m := w.machine(id)
	if m == nil || !m.now.Spot || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.ec2", "EC2 Spot Instance Interruption Warning", m.now, map[string]any{
		"instance-id": id, "instance-action": "terminate",
	})
	w.due.enter(now.Add(spotWarning), func(at time.Time) { m.region.shutDown(at, m, reason(spotReclaim)) })
	return true
}

// Recommend sends a rebalance recommendation for a spot instance.
func (w *World) Recommend(now time.Time, id string) bool {
	m := w.machine(id)
	if m == nil || !m.now.Spot || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.ec2", "EC2 Instance Rebalance Recommendation", m.now, map[string]any{"instance-id": id})
	return true
}

// ScheduleMaintenance sends a health event which says that the instance will be retired.
func (w *World) ScheduleMaintenance(now time.Time, id string) bool {
	m := w.machine(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.health", "AWS Health Event", m.now, map[string]any{
		"service": "EC2", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "eventTypeCategory": "scheduledChange",
		"affectedEntities": []map[string]string{{"entityValue": id}},
	})
	return true
}

// announceState sends the notice that an instance changed state.
func (r *Region) announceState(now time.Time, i Instance) {
	r.announce(now, "aws.ec2", "EC2 Instance State-change Notification", i, map[string]any{"instance-id": i.ID, "state": i.State})
}

// announce sends an event to the queues that take them; a queue that does not exist gets nothing.
func (r *Region) announce(now time.Time, source, kind string, i Instance, detail map[string]any) {
	if len(r.EventQueues) == 0 {
		return
	}
	n := notice{
		Version: "0", ID: uuid(r.world().hex("event", 32)), DetailType: kind, Source: source,
		Account: r.Account.ID, Time: now.UTC().Format("2006-01-02T15:04:05Z"), Region: r.Name,
		Resources: []string{r.arn("ec2", "instance/"+i.ID)}, Detail: detail,
	}
	body, err := json.Marshal(n)
	if err != nil {
		return // strings in maps always marshal
	}
	for _, q := range r.EventQueues {
		if r.queues[q] == nil {
			continue
		}
		_, _ = r.SendMessage(now, q, string(body)) // refused only without a queue or a body
	}
}
