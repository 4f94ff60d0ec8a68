package world

import (
	"slices"
	"time"
)

// Check is one of EC2's status checks.
type Check string

// The checks.
const (
	InstanceCheck Check = "instance" // the instance answers
	SystemCheck   Check = "system"   // its host does
)

// Event is something that EC2 has scheduled for an instance.
type Event struct {
	ID          string    // "instance-event-0…"
	Code        string    // "instance-retirement", "instance-stop", "instance-reboot", "system-reboot" or "system-maintenance"
	Description string    // begins with "[Completed] " once it is over
	Begins      time.Time // when it happens
}

// endingEvents are the codes of events after which the instance runs no more.
func endingEvents() []string { return []string{"instance-retirement", "instance-stop"} }

// Impair makes the named status checks of an instance fail from now on, and the others pass.
func (w *World) Impair(now time.Time, id string, failing ...Check) bool {
	m := w.historyOf(id)
	if m == nil {
		return false
	}
	since := func(c Check, before time.Time) time.Time {
		switch {
		case !slices.Contains(failing, c):
			return time.Time{}
		case before.IsZero():
			return now
		}
		return before
	}
	m.change(now, func(i *Instance) {
		i.InstanceFails, i.SystemFails = since(InstanceCheck, i.InstanceFails), since(SystemCheck, i.SystemFails)
	})
	return true
}

// Regroup gives an instance other security groups, as ec2:ModifyNetworkInterfaceAttribute does; false if there is no such instance.
func (w *World) Regroup(now time.Time, id string, groups ...string) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	m.change(now, func(i *Instance) { i.SecurityGroupIDs = slices.Clone(groups) })
	return true
}

// Schedule announces an event for an instance, which happens when it begins: the instance ends, or continues after a reboot,
// which is not emulated. ScheduleMaintenance sends the message of AWS Health about it.
func (w *World) Schedule(now time.Time, id, code, description string, begins time.Time) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	e := Event{ID: w.source().New("instance-event"), Code: code, Description: description, Begins: begins}
	m.change(now, func(i *Instance) { i.Scheduled = append(slices.Clone(i.Scheduled), e) })
	w.due.Enter(begins, func(at time.Time) { m.happen(at, e) })
	return true
}

// happen lets an event pass that was scheduled for the instance.
func (m *history) happen(now time.Time, e Event) {
	if !m.now.Alive() {
		return
	}
	m.change(now, func(i *Instance) {
		i.Scheduled = slices.Clone(i.Scheduled)
		for n := range i.Scheduled {
			if i.Scheduled[n].ID == e.ID {
				i.Scheduled[n].Description = "[Completed] " + e.Description
			}
		}
	})
	if slices.Contains(endingEvents(), e.Code) {
		m.region.Instances.shutDown(now, m, reason(retired))
	}
}
