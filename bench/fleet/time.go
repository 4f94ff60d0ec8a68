package fleet

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// event is a future event.
type event struct {
	at time.Time
	do func()
}

// after schedules do after a delay.
func (f *Fleet) after(d time.Duration, do func()) { f.At(f.now.Add(d), do) }

// At schedules do at a time, after all other events of that time. A time in the past is now.
func (f *Fleet) At(at time.Time, do func()) {
	if at.Before(f.now) {
		at = f.now
	}
	i := len(f.events)
	for i > 0 && f.events[i-1].at.After(at) {
		i--
	}
	f.events = slices.Insert(f.events, i, event{at, do})
}

// Advance advances the time to the given one, and runs all events up to that time.
func (f *Fleet) Advance(to time.Time) {
	for len(f.events) > 0 && !f.events[0].at.After(to) {
		e := f.events[0]
		f.events = f.events[1:]
		if e.at.After(f.now) {
			f.now = e.at
		}
		e.do()
		if f.Watch != nil {
			f.Watch.Settled()
		}
	}
	if to.After(f.now) {
		f.now = to
	}
}

// Next returns the time of the next event; false if no event is scheduled.
func (f *Fleet) Next() (time.Time, bool) {
	if len(f.events) == 0 {
		return time.Time{}, false
	}
	return f.events[0].at, true
}

// charge adds a step with the current price.
func (f *Fleet) charge() {
	if n := len(f.bill); n > 0 && f.bill[n-1].From == f.Since() && !f.bill[n-1].kept {
		f.bill = f.bill[:n-1]
	}
	f.bill = append(f.bill, f.step())
}

// Note adds a step to the bill. Unlike other steps, a later step of the same time does not replace it.
func (f *Fleet) Note() {
	s := f.step()
	s.kept = true
	f.bill = append(f.bill, s)
}

// step returns the current step.
func (f *Fleet) step() Step {
	price, since := f.Price(), f.Since()
	step := Step{From: since, Price: price, Moved: f.moved}
	for _, m := range f.instances {
		if m.Phase == Launched {
			step.Joining += m.Offering.Price
		}
		switch {
		case m.Phase == Removing:
			step.Leaving += m.Offering.Price
		case m.Cordoned:
			step.Moved += len(m.pods)
		default:
			step.Settled += m.Offering.Price
		}
	}
	return step
}

// Price returns the price of all nodes that are paid for, per hour.
func (f *Fleet) Price() catalog.Price {
	var sum catalog.Price
	for _, m := range f.instances {
		if m.Phase != Requested {
			sum += m.Offering.Price
		}
	}
	return sum
}

// Spent returns the cost of the bill from the start until the given time, in dollars.
func Spent(bill []Step, until time.Duration) float64 {
	return sum(bill, until, func(s Step) catalog.Price { return s.Price })
}

// Idle returns, in dollars, two parts of the cost that Spent returns: for nodes that were not ready yet, and for nodes
// that were being removed.
func Idle(bill []Step, until time.Duration) (joining, leaving float64) {
	joining = sum(bill, until, func(s Step) catalog.Price { return s.Joining })
	return joining, sum(bill, until, func(s Step) catalog.Price { return s.Leaving })
}

// sum returns one of the prices of a step, integrated from the start until the given time, in dollars.
func sum(bill []Step, until time.Duration, of func(Step) catalog.Price) float64 {
	sum := 0.0
	for i, s := range bill {
		end := until
		if i+1 < len(bill) {
			end = min(end, bill[i+1].From)
		}
		if end > s.From {
			sum += of(s).Dollars() * (end - s.From).Hours()
		}
	}
	return sum
}

// Rest returns the time from the start to the last change of the price.
func Rest(bill []Step) time.Duration {
	var at time.Duration
	for i := 1; i < len(bill); i++ {
		if bill[i].Price != bill[i-1].Price {
			at = bill[i].From
		}
	}
	return at
}
