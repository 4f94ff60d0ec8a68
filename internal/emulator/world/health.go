package world

import (
	"slices"
	"time"
)

// Check is one of EC2's status checks.
type Check string

// The checks.
const (
	InstanceCheck Check = "instance" // whether the instance responds
	SystemCheck   Check = "system"   // whether the host of the instance works
)

// Event is a scheduled event of an instance.
type Event struct {
	ID          string    // "instance-event-0…"
	Code        string    // "instance-retirement", "instance-stop", "instance-reboot", "system-reboot" or "system-maintenance"
	Description string    // begins with "[Completed] " after the event
	Begins      time.Time // time of the event
}

// endingEvents returns the codes of events that end the instance.
func endingEvents() []string { return []string{"instance-retirement", "instance-stop"} }

// Impair makes the named status checks of an instance fail from now on, and all other checks pass. It returns false if
// the instance does not exist.
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

// Regroup replaces the security groups of an instance, like ec2:ModifyNetworkInterfaceAttribute. It returns false if
// the instance does not exist or has ended.
func (w *World) Regroup(now time.Time, id string, groups ...string) bool {
	m := w.historyOf(id)
	if m == nil || !m.now.Alive() {
		return false
	}
	m.change(now, func(i *Instance) { i.SecurityGroupIDs = slices.Clone(groups) })
	return true
}

// Schedule adds a scheduled event to an instance. At the time begins, the event is completed, and a retirement or a
// stop ends the instance; reboots are not emulated. Schedule does not send a message: see ScheduleMaintenance. It
// returns false if the instance does not exist or has ended.
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

// happen completes a scheduled event of the instance.
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
