package site

import (
	"container/heap"
	"time"
)

// Timetable has future events. Advance runs them in the order of their times; events with the same time run in the
// order of the calls of Schedule.
type Timetable struct {
	events []event
	serial int // number of calls of Schedule
}

type event struct {
	at     time.Time // when the event is due
	serial int       // number of the call of Schedule, from 1
	run    func(at time.Time)
}

// Schedule adds an event: Advance calls run with the time at.
func (t *Timetable) Schedule(at time.Time, run func(at time.Time)) {
	t.serial++
	heap.Push(t, event{at: at, serial: t.serial, run: run})
}

// next removes and returns the first event that is due by now; false if none is due.
func (t *Timetable) next(now time.Time) (event, bool) {
	if len(t.events) == 0 || t.events[0].at.After(now) {
		return event{}, false
	}
	return heap.Pop(t).(event), true
}

// Advance runs all events that are due by now.
func (t *Timetable) Advance(now time.Time) {
	for {
		e, ok := t.next(now)
		if !ok {
			return
		}
		e.run(e.at)
	}
}

// Len returns the number of events. Len, Less, Swap, Push and Pop implement heap.Interface.
func (t *Timetable) Len() int { return len(t.events) }

// Less reports whether event i is due before event j.
func (t *Timetable) Less(i, j int) bool {
	a, b := t.events[i], t.events[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.serial < b.serial
}

// Swap exchanges two events.
func (t *Timetable) Swap(i, j int) { t.events[i], t.events[j] = t.events[j], t.events[i] }

// Push appends an event.
func (t *Timetable) Push(x any) { t.events = append(t.events, x.(event)) }

// Pop removes the last event.
func (t *Timetable) Pop() any {
	last := len(t.events) - 1
	e := t.events[last]
	t.events[last] = event{}
	t.events = t.events[:last]
	return e
}
