package world

import (
	"encoding/json"
	"time"
)

// eventBridgeEvent is an event as EventBridge delivers it.
type eventBridgeEvent struct {
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
	m := w.historyOf(id)
	if m == nil || !m.now.Spot || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.ec2", "EC2 Spot Instance Interruption Warning", m.now, map[string]any{
		"instance-id": id, "instance-action": "terminate",
	})
	w.due.Enter(now.Add(spotWarning), func(at time.Time) { m.region.Instances.shutDown(at, m, reason(spotReclaim)) })
	return true
}

// Recommend sends a rebalance recommendation for a spot instance.
func (w *World) Recommend(now time.Time, id string) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Spot || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.ec2", "EC2 Instance Rebalance Recommendation", m.now, map[string]any{"instance-id": id})
	return true
}

// ScheduleMaintenance sends a health event which says that the instance will be retired.
func (w *World) ScheduleMaintenance(now time.Time, id string) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.health", "AWS Health Event", m.now, map[string]any{
		"service": "EC2", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "eventTypeCategory": "scheduledChange",
		"affectedEntities": []map[string]string{{"entityValue": id}},
	})
	return true
}

// reclaimWarning is how long before an instance of an interruptible capacity reservation ends its warning comes.
const reclaimWarning = 2 * time.Minute

// Reclaim takes an instance in an interruptible capacity reservation back for the reservation's owner: the warning is
// sent now, and the instance ends two minutes later. Whether it runs in such a reservation is not looked at.
func (w *World) Reclaim(now time.Time, id string) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	m.region.announce(now, "aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning", m.now, map[string]any{
		"instance-id": id, "instance-action": "terminate", "azId": m.now.ZoneID,
		"instance-termination-time": now.Add(reclaimWarning).UTC().Format(eventTime),
	})
	w.due.Enter(now.Add(reclaimWarning), func(at time.Time) { m.region.Instances.shutDown(at, m, reason(spotReclaim)) })
	return true
}

// ExpireBlock sends the warning that the capacity block with this reservation id, "cr-…", ends soon: EC2 sends it 40
// minutes before the end, and begins to terminate its instances 30 minutes before.
func (r *Region) ExpireBlock(now time.Time, reservation string, end time.Time) {
	r.send(now, "aws.ec2", "Capacity Block Reservation Expiration Warning", "capacity-reservation/"+reservation, map[string]any{
		"capacity-reservation-id": reservation, "end-date": end.UTC().Format(eventTime),
	})
}

// announceState sends the event of an instance's state change.
func (r *Region) announceState(now time.Time, i Instance) {
	r.announce(now, "aws.ec2", "EC2 Instance State-change Notification", i, map[string]any{"instance-id": i.ID, "state": i.State})
}

// announce sends an event about an instance.
func (r *Region) announce(now time.Time, source, kind string, i Instance, detail map[string]any) {
	r.send(now, source, kind, "instance/"+i.ID, detail)
}

// eventTime is how EventBridge writes a time, in UTC.
const eventTime = "2006-01-02T15:04:05Z"

// send delivers an event to the queues that take them; a queue that does not exist gets nothing.
func (r *Region) send(now time.Time, source, kind, resource string, detail map[string]any) {
	if len(r.EventQueues) == 0 {
		return
	}
	n := eventBridgeEvent{
		Version: "0", ID: r.site.IDs.UUID("event"), DetailType: kind, Source: source,
		Account: r.Account.ID, Time: now.UTC().Format(eventTime), Region: r.Name,
		Resources: []string{r.arn("ec2", resource)}, Detail: detail,
	}
	body, err := json.Marshal(n)
	if err != nil {
		return // strings in maps always marshal
	}
	for _, q := range r.EventQueues {
		if r.SQS.queues[q] == nil {
			continue
		}
		_, _ = r.SQS.SendMessage(now, q, string(body)) // refused only without a queue or a body
	}
}
