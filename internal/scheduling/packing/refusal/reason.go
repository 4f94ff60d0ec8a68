package refusal

import (
	"strings"
	"unicode"
)

// Reason is a cause, and the number of offerings that it rules out.
type Reason struct {
	Code   Code   // kind of the cause
	Count  int    // offerings ruled out, or 1 if the cause is not about offerings
	Detail string // depends on Code, for example the label key, taint or resource; may be empty
}

// Code is the cause of a refusal. The set is closed; CLI, events and metrics use the same codes.
type Code string

// The causes.
const (
	NoPool           Code = "NoPool"           // there is no NodePool at all
	PoolUnusable     Code = "PoolUnusable"     // the NodePool is not ready, static or being deleted; Detail: its name and the reason
	PoolEmpty        Code = "PoolEmpty"        // the NodePool's own requirements leave no offering; Detail: its name and the key
	TaintUntolerated Code = "TaintUntolerated" // the NodePool has a taint that the pod does not tolerate; Detail: the taint
	LabelMissing     Code = "LabelMissing"     // no NodePool offers the label; Detail: the key and the required values
	LabelConflict    Code = "LabelConflict"    // NodePool and pod require different values of a label; Detail: the key
	TypeMismatch     Code = "TypeMismatch"     // no offering with the required architecture, family, zone, …; Detail: the key
	TooSmall         Code = "TooSmall"         // no offering has the room; Detail: the resource
	HostPortTaken    Code = "HostPortTaken"    // DaemonSet pods use a host port of the pod; Detail: the port
	NoCapacity       Code = "NoCapacity"       // EC2 has no capacity at present
	ReservationFull  Code = "ReservationFull"  // every instance of the capacity reservation is in use; Detail: its ID
	LimitReached     Code = "LimitReached"     // a node would exceed a limit; Detail: the NodePool and the limit
	MinValues        Code = "MinValues"        // too few distinct values would remain; Detail: "KEY: 2 of 3"
	TopologySpread   Code = "TopologySpread"   // a domain would have too many pods of a spread; Detail: the topology key
	PodAffinity      Code = "PodAffinity"      // no pod that a required affinity selects is there; Detail: the topology key
	PodAntiAffinity  Code = "PodAntiAffinity"  // a pod that anti-affinity forbids is there; Detail: the topology key
	Unplannable      Code = "Unplannable"      // the pod has a requirement that cannot be planned; Detail: the requirement
	EffortSpent      Code = "EffortSpent"      // the work allowed for one plan is used up
)

// Relaxation is a label with fewer values than the NodePool's minValues require.
type Relaxation struct {
	Key   string // label
	Asked int    // number of values that minValues requires
	Have  int    // number of values that remain
}

// maxTextBytes is the length to which details and hints are cut. Kubernetes allows 1,024 bytes for an event's message.
const maxTextBytes = 1000

// Printable returns the text as one line of bounded length, with a replacement character for each character that cannot
// be printed. Details and hints contain keys and values that users chose, and are written to events, logs, conditions
// and terminals.
func Printable(text string) string {
	if len(text) > maxTextBytes {
		text = strings.ToValidUTF8(text[:maxTextBytes], "") + "…"
	}
	if !strings.ContainsFunc(text, isNotPrintable) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isNotPrintable(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func isNotPrintable(r rune) bool { return !unicode.IsPrint(r) }

// printableReasons makes the details of the reasons printable, and returns the reasons.
func printableReasons(reasons []Reason) []Reason {
	for i := range reasons {
		reasons[i].Detail = Printable(reasons[i].Detail)
	}
	return reasons
}
