package world

import (
	"encoding/json"
	"time"
)

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

// spotWarning is the time between the interruption warning of a spot instance and the termination of the instance.
const spotWarning = 2 * time.Minute

// Interrupt interrupts a spot instance. It sends the warning now, and terminates the instance two minutes later. It
// returns false if the instance is not a pending or running spot instance.
func (w *World) Interrupt(now time.Time, id string) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Spot || !h.current.Alive() {
		return false
	}
	h.region.announce(now, "aws.ec2", "EC2 Spot Instance Interruption Warning", h.current, map[string]any{
		"instance-id": id, "instance-action": "terminate",
	})
	w.due.Schedule(now.Add(spotWarning), func(at time.Time) { h.region.Instances.shutDown(at, h, reason(spotReclaim)) })
	return true
}

// RecommendRebalance sends a rebalance recommendation for a spot instance. It returns false if the instance is not a
// pending or running spot instance.
func (w *World) RecommendRebalance(now time.Time, id string) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Spot || !h.current.Alive() {
		return false
	}
	h.region.announce(now, "aws.ec2", "EC2 Instance Rebalance Recommendation", h.current, map[string]any{"instance-id": id})
	return true
}

// AnnounceRetirement sends an AWS Health event that announces the retirement of an instance. It returns false if the
// instance does not exist or has ended.
func (w *World) AnnounceRetirement(now time.Time, id string) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Alive() {
		return false
	}
	h.region.announce(now, "aws.health", "AWS Health Event", h.current, map[string]any{
		"service": "EC2", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "eventTypeCategory": "scheduledChange",
		"affectedEntities": []map[string]string{{"entityValue": id}},
	})
	return true
}

// reclaimWarning is like spotWarning, for an instance in an interruptible capacity reservation.
const reclaimWarning = 2 * time.Minute

// InterruptReserved interrupts an instance in an interruptible capacity reservation. It sends the warning now, and
// terminates the instance two minutes later, with the reason code of spot instances. It does not check that the
// instance is in such a reservation. It returns false if the instance does not exist or has ended.
func (w *World) InterruptReserved(now time.Time, id string) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Alive() {
		return false
	}
	h.region.announce(now, "aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning", h.current, map[string]any{
		"instance-id": id, "instance-action": "terminate", "azId": h.current.ZoneID,
		"instance-termination-time": now.Add(reclaimWarning).UTC().Format(eventTime),
	})
	w.due.Schedule(now.Add(reclaimWarning), func(at time.Time) { h.region.Instances.shutDown(at, h, reason(spotReclaim)) })
	return true
}

// WarnBlockExpiry sends the warning that a capacity block ends soon. reservation is the id of the block, "cr-…". EC2
// sends the warning 40 minutes before the end, and begins to terminate the instances 30 minutes before the end.
func (r *Region) WarnBlockExpiry(now time.Time, reservation string, end time.Time) {
	r.send(now, "aws.ec2", "Capacity Block Reservation Expiration Warning", "capacity-reservation/"+reservation, map[string]any{
		"capacity-reservation-id": reservation, "end-date": end.UTC().Format(eventTime),
	})
}

func (r *Region) announceState(now time.Time, i Instance) {
	r.announce(now, "aws.ec2", "EC2 Instance State-change Notification", i, map[string]any{"instance-id": i.ID, "state": i.State})
}

func (r *Region) announce(now time.Time, source, detailType string, i Instance, detail map[string]any) {
	r.send(now, source, detailType, "instance/"+i.ID, detail)
}

// eventTime is the format of a time in an event, in UTC.
const eventTime = "2006-01-02T15:04:05Z"

// send delivers an event to the region's EventQueues. It skips names of queues that do not exist.
func (r *Region) send(now time.Time, source, detailType, resource string, detail map[string]any) {
	if len(r.EventQueues) == 0 {
		return
	}
	event := eventBridgeEvent{
		Version: "0", ID: r.site.IDs.UUID("event"), DetailType: detailType, Source: source,
		Account: r.Account.ID, Time: now.UTC().Format(eventTime), Region: r.Name,
		Resources: []string{r.arn("ec2", resource)}, Detail: detail,
	}
	body, err := json.Marshal(event)
	if err != nil {
		return // cannot happen: detail has only strings, and maps and lists of strings
	}
	for _, q := range r.EventQueues {
		if r.SQS.queues[q] == nil {
			continue
		}
		_, _ = r.SQS.SendMessage(now, q, string(body)) // fails only without a queue or a body
	}
}
