package lifecycle

import "time"

// HealthProblem is the health problem for which a node is replaced; zero for a healthy Node.
type HealthProblem struct {
	// Condition is the type of the Node's condition, such as Ready; empty if the Node is healthy.
	Condition string
	// Due is when the node is replaced, unless the condition recovers first.
	Due time.Time
	// IsRepairBlocked is true if the node is not replaced because too many nodes are unhealthy: the cause is probably
	// not the node. See MayRepair.
	IsRepairBlocked bool
}

// Symptom is the status of a Node's condition and the time of its last transition.
type Symptom struct {
	Condition, Status string    // condition type and status
	Since             time.Time // last transition of the condition
}

// RepairRetry is the interval of checks of a node that is not repaired because too many nodes are unhealthy.
const RepairRetry = 5 * time.Minute

// How long a node may be unhealthy before it is replaced, as in Karpenter on AWS. The time for devices is shorter,
// because a broken GPU does not recover.
const (
	defaultTolerance = 30 * time.Minute
	deviceTolerance  = 10 * time.Minute
)

// Tolerance returns how long a Node may have the condition in this status, and true. It returns false for a status that
// is healthy, and for other conditions. The conditions other than Ready are those of EKS's node monitoring agent.
func Tolerance(condition, status string) (time.Duration, bool) {
	switch condition {
	case "Ready":
		return defaultTolerance, status == "False" || status == "Unknown"
	case "AcceleratedHardwareReady":
		return deviceTolerance, status == "False"
	case "StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady":
		return defaultTolerance, status == "False"
	}
	return 0, false
}

// Diagnose returns the health problem of a Node: the one that is due first; if several are due together, the first by
// condition type.
func Diagnose(symptoms []Symptom) HealthProblem {
	var out HealthProblem
	for _, s := range symptoms {
		tolerance, isUnhealthy := Tolerance(s.Condition, s.Status)
		if !isUnhealthy {
			continue
		}
		due := s.Since.Add(tolerance)
		if out.Condition == "" || due.Before(out.Due) || due.Equal(out.Due) && s.Condition < out.Condition {
			out = HealthProblem{Condition: s.Condition, Due: due}
		}
	}
	return out
}

// MayRepair reports whether unhealthy nodes may be replaced: at most a fifth of total, rounded up, are unhealthy. If
// more nodes are unhealthy, the cause is the network, the AMI or the control plane rather than the instances, and
// replacements do not help.
func MayRepair(unhealthy, total int) bool { return unhealthy <= (total+4)/5 }

func (n Node) mustBeReplaced(now time.Time) bool {
	return n.Count == 1 && n.Ailment.Condition != "" && isPast(n.Ailment.Due, now) && !n.Ailment.IsRepairBlocked
}

// nextHealthCheck returns the time of the next check of an unhealthy node; zero for a healthy node.
func (n Node) nextHealthCheck(now time.Time) time.Time {
	switch {
	case n.Ailment.Condition == "":
		return time.Time{}
	case isPast(n.Ailment.Due, now): // too many nodes are unhealthy for a repair
		return now.Add(RepairRetry)
	}
	return n.Ailment.Due
}
