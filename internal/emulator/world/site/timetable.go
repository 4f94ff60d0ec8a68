package site

import (
	"container/heap"
	"time"
)

// Timetable is what will happen, earliest first; what is due at the same
// moment happens in the order in which it was entered.
type Timetable struct {
	events []event
	serial int
}

// event is a function that is called at a certain time, with that time.
type event struct {
	at      time.Time
	serial  int
	happens func(at time.Time)
}

// Enter puts an event on the timetable.
func (t *Timetable) Enter(at time.Time, happens func(at time.Time)) {
	t.serial++
	heap.Push(t, event{at: at, serial: t.serial, happens: happens})
}

// next takes the first event that is due by now off the timetable.
func (t *Timetable) next(now time.Time) (event, bool) {
	if len(t.events) == 0 || t.events[0].at.After(now) {
		return event{}, false
	}
	return heap.Pop(t).(event), true
}

// Advance calls every event that is due by now, in the order in which they are due.
func (t *Timetable) Advance(now time.Time) {
	for {
		e, ok := t.next(now)
		if !ok {
			return
		}
		e.happens(e.at)
	}
}

// Len, Less, Swap, Push and Pop make it a container/heap.
func (t *Timetable) Len() int { return len(t.events) }

// Less says which of two events happens first.
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
