package lifecycle

import "time"

// Ailment is what is wrong with a Node by its own word, so that it is to be replaced; the zero value is nothing.
type Ailment struct {
	// Condition is the type of the Node's condition, such as Ready; empty if nothing is wrong.
	Condition string
	// Due is when the node is given up if it has not recovered by then.
	Due time.Time
	// Held: so many other nodes are unwell too that rather something else is wrong. See MayRepair.
	Held bool
}

// Symptom is a state of a Node's condition, since a time.
type Symptom struct {
	Condition, Status string
	Since             time.Time
}

// RepairRetry is how soon a node is looked at again that is not repaired because too many are unwell.
const RepairRetry = 5 * time.Minute

// How long a node may be unwell: as long as Karpenter waits on AWS. A broken GPU does not mend itself.
const (
	tolerated        = 30 * time.Minute
	toleratedDevices = 10 * time.Minute
)

// Tolerance returns how long a Node may be in such a state; false if it is no sign that something is wrong. The conditions
// other than Ready are those of EKS's node monitoring agent.
func Tolerance(condition, status string) (time.Duration, bool) {
	switch condition {
	case "Ready":
		return tolerated, status == "False" || status == "Unknown"
	case "AcceleratedHardwareReady":
		return toleratedDevices, status == "False"
	case "StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady":
		return tolerated, status == "False"
	}
	return 0, false
}

// Diagnose returns what is wrong with a Node: of several ailments the one that is due first, by name where they are due
// together.
func Diagnose(symptoms []Symptom) Ailment {
	var out Ailment
	for _, s := range symptoms {
		most, ok := Tolerance(s.Condition, s.Status)
		if !ok {
			continue
		}
		due := s.Since.Add(most)
		if out.Condition == "" || due.Before(out.Due) || due.Equal(out.Due) && s.Condition < out.Condition {
			out = Ailment{Condition: s.Condition, Due: due}
		}
	}
	return out
}

// MayRepair is the breaker: of total nodes at most a fifth, rounded up, may be unwell for any of them to be replaced.
// When more are, it is the network, the image or the control plane rather than the machines, and new ones do not help.
func MayRepair(unwell, total int) bool { return unwell <= (total+4)/5 }

// isGivenUp reports whether the node is to be replaced for what is wrong with it.
func (n Node) isGivenUp(now time.Time) bool {
	return n.Count == 1 && n.Ailment.Condition != "" && isPast(n.Ailment.Due, now) && !n.Ailment.Held
}

// checkup is when a node that is unwell is to be looked at again, zero for not before something changes.
func (n Node) checkup(now time.Time) time.Time {
	switch {
	case n.Ailment.Condition == "":
		return time.Time{}
	case isPast(n.Ailment.Due, now):
		return now.Add(RepairRetry)
	}
	return n.Ailment.Due
}
