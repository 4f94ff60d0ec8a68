package fleet

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

type event struct {
	at time.Time // simulated time
	do func()
}

func (f *Fleet) after(d time.Duration, do func()) { f.At(f.now.Add(d), do) }

// At schedules do at a time, after all events that are already scheduled for that time. A time in the past means now.
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

// Advance advances the simulated time to the given time, and runs all events until then.
func (f *Fleet) Advance(to time.Time) {
	for len(f.events) > 0 && !f.events[0].at.After(to) {
		e := f.events[0]
		f.events = f.events[1:]
		if e.at.After(f.now) {
			f.now = e.at
		}
		e.do()
		if f.Watch != nil {
			f.Watch.AfterEvent()
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

// recordPrice adds a step with the current price to the bill. The new step replaces the last one if both have the same
// time, unless AddStep added the last one.
func (f *Fleet) recordPrice() {
	if n := len(f.bill); n > 0 && f.bill[n-1].From == f.Since() && !f.bill[n-1].kept {
		f.bill = f.bill[:n-1]
	}
	f.bill = append(f.bill, f.step())
}

// AddStep adds a step with the current price to the bill. A later step of the same time does not replace this step.
func (f *Fleet) AddStep() {
	s := f.step()
	s.kept = true
	f.bill = append(f.bill, s)
}

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
	return integrate(bill, until, func(s Step) catalog.Price { return s.Price })
}

// SpentInTransition returns two parts of the cost that Spent returns, in dollars: for nodes that were not ready yet,
// and for nodes that were being removed.
func SpentInTransition(bill []Step, until time.Duration) (joining, leaving float64) {
	joining = integrate(bill, until, func(s Step) catalog.Price { return s.Joining })
	return joining, integrate(bill, until, func(s Step) catalog.Price { return s.Leaving })
}

// integrate returns the integral of a price of the steps, from the start until the given time, in dollars.
func integrate(bill []Step, until time.Duration, price func(Step) catalog.Price) float64 {
	sum := 0.0
	for i, s := range bill {
		end := until
		if i+1 < len(bill) {
			end = min(end, bill[i+1].From)
		}
		if end > s.From {
			sum += price(s).Dollars() * (end - s.From).Hours()
		}
	}
	return sum
}

// ConvergedAt returns the time from the start to the last change of the price.
func ConvergedAt(bill []Step) time.Duration {
	var at time.Duration
	for i := 1; i < len(bill); i++ {
		if bill[i].Price != bill[i-1].Price {
			at = bill[i].From
		}
	}
	return at
}
