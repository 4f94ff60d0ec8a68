package lifecycle

import "time"

// Ailment is what is wrong with a Node by its own word, so that it is to be replaced; the zero value is nothing.
type Ailment struct {
	// Condition is the type of the Node's condition, such as Ready; empty if nothing is wrong.
	Condition string
	// Due is when the node is given up if it has not recovered by then.
	Due time.Time
	// Held is true if too many other nodes are unhealthy, so the cause is probably not the node. See MayRepair.
	Held bool
}

// Symptom is a state of a Node's condition, since a time.
type Symptom struct {
	Condition, Status string
	Since             time.Time
}

// RepairRetry is the interval of checks of a node that is not repaired because too many nodes are unhealthy.
const RepairRetry = 5 * time.Minute

// How long a node may be unhealthy before it is replaced, as in Karpenter on AWS. A broken GPU does not recover.
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

// MayRepair reports whether unhealthy nodes may be replaced: at most a fifth of total, rounded up, are unhealthy. If more are, the
// cause is the network, the AMI or the control plane rather than the instances, and replacements do not help.
func MayRepair(unwell, total int) bool { return unwell <= (total+4)/5 }

// isGivenUp reports whether the node is to be replaced for what is wrong with it.
func (n Node) isGivenUp(now time.Time) bool {
	return n.Count == 1 && n.Ailment.Condition != "" && isPast(n.Ailment.Due, now) && !n.Ailment.Held
}

// checkup returns the time of the next check of an unhealthy node; zero: only a change matters.
func (n Node) checkup(now time.Time) time.Time {
	switch {
	case n.Ailment.Condition == "":
		return time.Time{}
	case isPast(n.Ailment.Due, now):
		return now.Add(RepairRetry)
	}
	return n.Ailment.Due
}
