package disruption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PodMove (a trip) is one move of a workload's pods off a node. Pods are recreated when they move, so a trip has the
// workload and the shape of the node.
type PodMove struct {
	At       time.Time // to the second
	Workload string    // "Deployment a/web"
	Pods     int       // number of moved pods, above 0
	All      int       // replicas of the workload at that time; 0: unknown
	Shape    string    // the node's shape: pool, instance type, zone and capacity type, as Shape returns it
	Reason   Reason    // Underutilized or Drifted
}

// PodMoves are the recorded moves of pods, oldest first. Nil is empty.
type PodMoves []PodMove

// Limits for recording trips, and for pausing the moves of a workload that moves in a loop.
const (
	tripRetention   = 24 * time.Hour // a trip is recorded this long
	maxTrips        = 20_000         // maximum number of recorded trips, unless tripWindow has more
	tripWindow      = time.Hour      // only trips within this time count for Policy.MovesPerHour
	loopRounds      = 2              // this many departures per pod from nodes of one shape are a loop
	driftLoopRounds = 3              // loopRounds for drift; higher, because the user requests the replacement
	firstLoopPause  = time.Hour      // pause after the first loop; doubled after each further departure per pod
	maxLoopPause    = 24 * time.Hour // longest pause
)

// Shape identifies nodes that are equivalent: replacing a node with a node of the same shape changes nothing.
func Shape(pool, instanceType, zone, capacityType string) string {
	return pool + "/" + instanceType + "/" + zone + "/" + capacityType
}

// Add returns the trips together with more. It drops trips that are older than tripRetention at now. If there are more
// than maxTrips, it also drops the oldest trips outside of the last hour. It may change t.
func (t PodMoves) Add(now time.Time, more ...PodMove) PodMoves {
	t = append(t, more...)
	slices.SortStableFunc(t, func(a, b PodMove) int { return a.At.Compare(b.At) })
	old := now.Add(-tripRetention)
	t = slices.DeleteFunc(t, func(trip PodMove) bool { return !trip.At.After(old) })
	firstOfHour := slices.IndexFunc(t, func(trip PodMove) bool { return trip.At.After(now.Add(-tripWindow)) })
	if firstOfHour < 0 {
		firstOfHour = len(t)
	}
	return t[min(max(len(t)-maxTrips, 0), firstOfHour):]
}

// NodeWorkloads is a node that may be disrupted, with the pods that would move.
type NodeWorkloads struct {
	// Node and Pool are the names of the node and its NodePool.
	Node, Pool string
	// Shape is the node's shape, as Shape returns it.
	Shape string
	Pods  map[string]int // number of pods by workload
}

// StayInput is the input of Stays, besides the trips.
type StayInput struct {
	Reason Reason          // why the nodes are to be disrupted
	Loads  []NodeWorkloads // the nodes
	Pods   map[string]int  // replicas in the cluster, by workload
	Limits map[string]int  // by pool: Policy.MovesPerHour; 0 or missing: DefaultMovesPerHour
	// Together is true if all Loads are disrupted, in this order. Each then counts for the next, unless it must stay.
	Together bool
	Now      time.Time
}

// Stays returns the nodes that must stay, in the order of StayInput.Loads. The pods of such a node were moved as often
// as the pool allows per hour, or repeatedly left nodes of its shape.
func (t PodMoves) Stays(in StayInput) []Stay {
	ix := t.index(in)
	var out []Stay
	for _, load := range in.Loads {
		stay := ix.stayOf(in, load)
		if stay.Cause != "" {
			stay.Node = load.Node
			out = append(out, stay)
			continue
		}
		if in.Together {
			for w, n := range load.Pods {
				ix.recent[w] = append(ix.recent[w], PodMove{At: in.Now, Pods: n})
			}
		}
	}
	return out
}

// tripIndex indexes the trips. Its lists are in order of time.
type tripIndex struct {
	recent     map[string][]PodMove    // by workload: of the last hour
	departures map[[2]string][]PodMove // by workload and shape: moves off nodes of that shape
}

// index returns the index of the trips of the last hour by workload, and of the retained trips with in.Reason by
// workload and shape. The last hour ends at in.Now.
func (t PodMoves) index(in StayInput) tripIndex {
	ix := tripIndex{recent: map[string][]PodMove{}, departures: map[[2]string][]PodMove{}}
	for _, trip := range t {
		if trip.At.After(in.Now.Add(-tripWindow)) {
			ix.recent[trip.Workload] = append(ix.recent[trip.Workload], trip)
		}
		if trip.Reason != in.Reason || !trip.At.After(in.Now.Add(-tripRetention)) {
			continue
		}
		key := [2]string{trip.Workload, trip.Shape}
		ix.departures[key] = append(ix.departures[key], trip)
	}
	return ix
}

// stayOf returns why the node of the load stays; its Cause is empty if nothing keeps the node. If there are several
// reasons, it returns the one that lasts longest.
func (ix tripIndex) stayOf(in StayInput, load NodeWorkloads) Stay {
	var out Stay
	for _, workload := range slices.Sorted(maps.Keys(load.Pods)) {
		n := load.Pods[workload]
		all := max(in.Pods[workload], n)
		if workload == "" || n <= 0 {
			continue // pods without a workload are not recreated
		}
		for _, stay := range []Stay{ix.limitStay(in, load, workload, all), ix.loopStay(in, load, workload, all)} {
			if stay.Cause != "" && stay.Until.After(out.Until) {
				out = stay
			}
		}
	}
	return out
}

// limitStay returns why the node stays because of the moves in the last hour; its Cause is empty if another move is
// allowed. all is the number of pods of the workload.
func (ix tripIndex) limitStay(in StayInput, load NodeWorkloads, workload string, all int) Stay {
	limit := cmp.Or(in.Limits[load.Pool], DefaultMovesPerHour)
	moved, n := 0, load.Pods[workload]
	perPod := float64(n) / float64(all)
	for _, trip := range ix.recent[workload] {
		moved += trip.Pods
		perPod += trip.movesPerPod(all)
	}
	most := float64(limit) + rounding
	if perPod <= most {
		return Stay{}
	}
	out := Stay{Cause: MovedOften, Detail: fmt.Sprintf("%s: its pods were moved %s within the last hour; it has %d pods now, and moving %d more would exceed the limit of %d per pod",
		workload, times(moved), all, n, limit)}
	for _, trip := range ix.recent[workload] {
		if perPod -= trip.movesPerPod(all); perPod <= most {
			out.Until = trip.At.Add(tripWindow)
			break
		}
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// movesPerPod returns how often the trip moved each pod of its workload, on average. all is the number of pods that the
// workload has now. movesPerPod uses the larger of the numbers then and now, so scaling down is never reported as a
// loop.
func (t *PodMove) movesPerPod(all int) float64 { return float64(t.Pods) / float64(max(t.All, all, 1)) }

// rounding is the tolerance for rounding errors in sums of movesPerPod: three thirds must equal one.
const rounding = 1e-6

// loopStay returns why the node stays because of the moves off nodes of its shape; its Cause is empty if these moves
// are no loop. A pod that leaves nodes of one shape twice must have come back in between.
func (ix tripIndex) loopStay(in StayInput, load NodeWorkloads, workload string, all int) Stay {
	departures := tripsSinceGrowth(ix.departures[[2]string{workload, load.Shape}], all)
	pods, perPod := 0, rounding
	for _, trip := range departures {
		pods += trip.Pods
		perPod += trip.movesPerPod(all)
	}
	rounds, minRounds := int(perPod), loopRounds // departures per pod, and how many are a loop
	if in.Reason == Drifted {
		minRounds = driftLoopRounds
	}
	if rounds < minRounds {
		return Stay{}
	}
	shift := min(rounds-minRounds, 10) // 10 exceeds maxLoopPause and does not overflow
	until := departures[len(departures)-1].At.Add(min(maxLoopPause, firstLoopPause<<shift))
	if !in.Now.Before(until) {
		return Stay{}
	}
	return Stay{
		Cause: Looping,
		Until: until,
		Detail: fmt.Sprintf("%s: its %d pods have left nodes like this one (%s) %d times since %s, and came back",
			workload, all, load.Shape, pods, departures[0].At.UTC().Format(time.RFC3339))}
}

// tripsSinceGrowth returns the trips of a workload after it last grew by half or more. all is its current number of
// pods. Nodes that were launched for the growth may resemble the old nodes and be removed when the workload shrinks
// again. That is not a loop.
func tripsSinceGrowth(trips []PodMove, all int) []PodMove {
	most := all // the most replicas after the trip
	for i, trip := range slices.Backward(trips) {
		if trip.All > 0 && 2*most >= 3*trip.All {
			return trips[i+1:]
		}
		most = max(most, trip.All)
	}
	return trips
}

// Encode returns the trips as text, one line each. DecodeTrips parses it.
func (t PodMoves) Encode() string {
	var b strings.Builder
	for _, trip := range t {
		pods := strconv.Itoa(trip.Pods)
		if trip.All > 0 {
			pods += "/" + strconv.Itoa(trip.All)
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\t%s\n", trip.At.Unix(), pods, trip.Reason, trip.Shape, trip.Workload)
	}
	return b.String()
}

// DecodeTrips parses the output of Encode. It skips invalid lines; unread is their number.
func DecodeTrips(text string) (t PodMoves, unread int) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 {
			unread++
			continue
		}
		at, err1 := strconv.ParseInt(fields[0], 10, 64)
		pods, all, err2 := decodePods(fields[1])
		if err1 != nil || err2 != nil || pods < 1 || all < 0 || fields[4] == "" {
			unread++
			continue
		}
		t = append(t, PodMove{At: time.Unix(at, 0).UTC(), Pods: pods, All: all, Reason: Reason(fields[2]), Shape: fields[3], Workload: fields[4]})
	}
	slices.SortStableFunc(t, func(a, b PodMove) int { return a.At.Compare(b.At) })
	return t, unread
}

// decodePods parses "3/8", three of eight; "3" is three of an unknown number, and all is 0.
func decodePods(text string) (pods, all int, err error) {
	moved, replicas, known := strings.Cut(text, "/")
	if pods, err = strconv.Atoi(moved); err == nil && known {
		all, err = strconv.Atoi(replicas)
	}
	return pods, all, err
}
