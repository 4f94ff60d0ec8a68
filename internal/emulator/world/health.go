package world

import (
	"slices"
	"time"
)

// StatusCheck is one of EC2's status checks.
type StatusCheck string

// The status checks.
const (
	InstanceCheck StatusCheck = "instance" // whether the instance responds
	SystemCheck   StatusCheck = "system"   // whether the host of the instance works
)

// ScheduledEvent is a scheduled event of an instance.
type ScheduledEvent struct {
	ID          string    // "instance-event-0…"
	Code        string    // "instance-retirement", "instance-stop", "instance-reboot", "system-reboot" or "system-maintenance"
	Description string    // begins with "[Completed] " after the event
	Begins      time.Time // time of the event
}

func endingEvents() []string { return []string{"instance-retirement", "instance-stop"} }

// Impair makes the named status checks of an instance fail, and all other checks pass. A check that fails already keeps
// its time. Impair returns false if the instance does not exist.
func (w *World) Impair(now time.Time, id string, failing ...StatusCheck) bool {
	h := w.historyOf(id)
	if h == nil {
		return false
	}
	since := func(c StatusCheck, failedSince time.Time) time.Time { // zero: the check passes
		switch {
		case !slices.Contains(failing, c):
			return time.Time{}
		case failedSince.IsZero():
			return now
		}
		return failedSince
	}
	h.change(now, func(i *Instance) {
		i.InstanceFailsSince, i.SystemFailsSince = since(InstanceCheck, i.InstanceFailsSince), since(SystemCheck, i.SystemFailsSince)
	})
	return true
}

// SetSecurityGroups replaces the security groups of an instance, like ec2:ModifyNetworkInterfaceAttribute. It returns
// false if the instance does not exist or has ended.
func (w *World) SetSecurityGroups(now time.Time, id string, groups ...string) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Alive() {
		return false
	}
	h.change(now, func(i *Instance) { i.SecurityGroupIDs = slices.Clone(groups) })
	return true
}

// ScheduleEvent adds a scheduled event to an instance. The event is completed at the time begins. A retirement or a
// stop then ends the instance; reboots are not emulated. ScheduleEvent does not send a message: see AnnounceRetirement.
// It returns false if the instance does not exist or has ended.
func (w *World) ScheduleEvent(now time.Time, id, code, description string, begins time.Time) bool {
	h := w.historyOf(id)
	if h == nil || !h.current.Alive() {
		return false
	}
	e := ScheduledEvent{ID: w.idGenerator().New("instance-event"), Code: code, Description: description, Begins: begins}
	h.change(now, func(i *Instance) { i.Scheduled = append(slices.Clone(i.Scheduled), e) })
	w.due.Schedule(begins, func(at time.Time) { h.completeEvent(at, e) })
	return true
}

func (h *history) completeEvent(now time.Time, e ScheduledEvent) {
	if !h.current.Alive() {
		return
	}
	h.change(now, func(i *Instance) {
		i.Scheduled = slices.Clone(i.Scheduled)
		for n := range i.Scheduled {
			if i.Scheduled[n].ID == e.ID {
				i.Scheduled[n].Description = "[Completed] " + e.Description
			}
		}
	})
	if slices.Contains(endingEvents(), e.Code) {
		h.region.Instances.shutDown(now, h, reason(retired))
	}
}
