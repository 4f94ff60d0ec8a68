package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Effort is how much work a plan may take, in steps: one class of pods looked
// at for one machine. The zero value is Usual.
type Effort int

// Usual is enough for 100,000 pods in 5,000 classes. A plan that uses it up
// takes about ten seconds; most take a thousandth of it.
const Usual Effort = 1_000_000_000

// Solve says where every pod of the snapshot goes, and buys for those that fit
// nowhere, for as little money as it can. It is a pure function: the same
// pools, nodes, pods and offerings, in whatever order, give the same plan.
func Solve(s cluster.Snapshot, market catalog.Market, effort Effort) Plan {
	if effort <= 0 {
		effort = Usual
	}
	// 1. What is asked for, and what may be bought.
	queue := parallel.Later(func() *podgroup.Queue { return offering.Queue(s, market) }) // meanwhile the market is looked through
	st := offering.New(s, market, queue)
	pods := queue()
	accepts := st.Accept(pods)
	q := newQueue(pods)
	q.accept(accepts)
	rooms := existing.NewRooms(s, pods)
	ground := existing.NewGround(pods, accepts, rooms, s.Nodes)
	q.meet(ground.Guests, accepts)

	// 2. Pods that keep to zones, or other domains, are sent there.
	w := newWork(st, q, accepts, rooms, ground, int(effort))
	w.split()
	for attempt := 1; ; attempt++ {
		// 3. The nodes that are there take what they can; 4. the rest gets machines, bought together.
		w.fillAll()

		// 5. Machines that are bought may stand where spreads had not counted on any, and if
		// some domain cannot have what was sent there, pods elsewhere may be too many.
		if found := w.foresee(ground); found != nil {
			ground = found
			if attempt < mostAttempts && w.steps <= w.effort/2 {
				w = w.again(rooms, ground, q)
				continue
			}
		}
		if !w.isShort() {
			break
		}
		next := w.again(rooms, ground, q)
		if w.agrees(next) {
			break
		}
		if attempt == mostAttempts || next.steps > next.effort/2 {
			w.withdraw(next)
			break
		}
		w = next
	}

	// 6. Nobody stays who was to be bound only after pods that found no place.
	w.judge(ground, rooms)

	// 7. Who is left is tried once more, and then told why.
	w = w.rescue(ground, rooms, q)
	plan := w.plan()
	plan.Refusals, plan.Effort = w.refusals(ground, rooms, q), effort
	return plan
}

// fillAll gives places to the pods that are left: on nodes that are there, then on machines. Who would rather be with
// others and found no place so is then tried alone.
func (w *work) fillAll() {
	w.place(w.order)
	w.place(w.bundle())
	w.place(w.following())
	w.place(w.gather())
	w.buyRest()
	alone := w.relax()
	w.untie()
	if len(alone) > 0 {
		w.place(alone)
		w.buyRest()
		w.untie()
	}
}

// buyRest buys machines for all who are left; those that there are already are filled up first.
func (w *work) buyRest() {
	if len(w.machines) > 0 {
		w.appraise(w.active())
	}
	w.buyAll()
}

// judge takes out of the plan what kube-scheduler would not bind.
func (w *work) judge(ground *existing.Ground, r *existing.Rooms) {
	w.clarify()
	w.audit(ground, r)
	for w.unwind(ground, r) {
		w.audit(ground, r)
	}
	w.untie()
}
