package kubeclient

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reason is the reason of an event, one of the constants below. Where the meaning is Karpenter's, the name is
// Karpenter's, so that alerts on events continue to work.
type Reason string

// The reasons, by the kind of the object.
const (
	// Pods.
	ReasonFailedScheduling Reason = "FailedScheduling" // the pod cannot be scheduled; the message gives the cause
	ReasonNominated        Reason = "Nominated"        // the NodeClaim or Node that is planned for the pod
	ReasonEvicted          Reason = "Evicted"          // the pod was evicted from its node
	ReasonDisrupted        Reason = "Disrupted"        // the pod was deleted by force: the grace period of its node ends

	ReasonInvalidDoNotDisrupt Reason = "InvalidDoNotDisruptAnnotation"  // the annotation protects nothing, being neither true nor a duration
	ReasonDoNotDisruptUntil   Reason = "DoNotDisruptUntil"              // the node leaves, and the pod stays until this time
	ReasonDoNotDisruptElapsed Reason = "DoNotDisruptGracePeriodElapsed" // the time of the pod's protection is over

	// NodePools.
	ReasonNoCompatibleInstanceTypes Reason = "NoCompatibleInstanceTypes" // no offering matches the NodePool's requirements
	ReasonZonalShiftActive          Reason = "ZonalShiftActive"          // a zonal shift is active: nothing is launched in the zone
	ReasonZonalShiftCleared         Reason = "ZonalShiftCleared"         // the zone is used again

	ReasonNamesake     Reason = "NamesakeSeen" // another cluster with the same name changes resources
	ReasonWrongCluster Reason = "WrongCluster" // the configured name is that of another cluster; the controller does nothing
	ReasonHeldBack     Reason = "HeldBack"     // garbage collection is held because it would remove too much

	// NodeClaims.
	ReasonLaunched             Reason = "Launched"                  // the launched instance
	ReasonRegistered           Reason = "Registered"                // the Node has joined
	ReasonInitialized          Reason = "Initialized"               // the Node is ready
	ReasonInsufficientCapacity Reason = "InsufficientCapacityError" // EC2 has no capacity for the claim; its pods are planned again
	ReasonLaunchFailed         Reason = "LaunchFailed"              // EC2 rejected the launch or could not be reached
	ReasonUnregisteredTaint    Reason = "UnregisteredTaintMissing"  // the Node joined without the taint that its bootstrap should set
	ReasonConsistencyCheck     Reason = "FailedConsistencyCheck"    // the Node has less than its claim promised
	ReasonNotJoining           Reason = "NodeNotJoining"            // the instance is late or terminated, with the known cause
	ReasonNodeMismatch         Reason = "NodeMismatch"              // a Node has the instance's provider ID but is not its Node
	ReasonTagsMissing          Reason = "InstanceTagsMissing"       // the instance lost its tags and is not terminated

	ReasonDisruptionBlocked Reason = "DisruptionBlocked" // what blocks voluntary disruption of the node
	ReasonUnconsolidatable  Reason = "Unconsolidatable"  // what blocks consolidation of the node

	ReasonWaitingReadiness Reason = "DisruptionWaitingReadiness" // the node's replacement is on its way
	ReasonMoveUndone       Reason = "DisruptionUndone"           // the disruption is undone and the node stays; the message gives the cause

	// NodeClaims and Nodes.
	ReasonTerminationGracePeriod Reason = "TerminationGracePeriodExpiring" // when the node's pods are deleted by force
	ReasonDisruptionTerminating  Reason = "DisruptionTerminating"          // the node is disrupted; the message gives the cause
	ReasonRepairBlocked          Reason = "NodeRepairBlocked"              // too many nodes of the NodePool are unhealthy to replace one

	// NodeClaims and Nodes: what AWS reports about their instance.
	ReasonSpotInterrupted           Reason = "SpotInterrupted"                        // EC2 interrupts the spot instance in two minutes
	ReasonReservationInterrupted    Reason = "CapacityReservationInstanceInterrupted" // the capacity reservation or block of the instance ends
	ReasonRebalanceRecommended      Reason = "SpotRebalanceRecommendation"            // EC2 reports a higher risk of interruption
	ReasonInstanceStopping          Reason = "InstanceStopping"                       // the instance stops or has stopped
	ReasonInstanceTerminating       Reason = "InstanceTerminating"                    // the instance is being terminated, or is gone
	ReasonEndedOutside              Reason = "TerminatedFromOutside"                  // the instance was terminated by neither Joiner nor AWS
	ReasonInstanceUnhealthy         Reason = "InstanceUnhealthy"                      // AWS Health announces a change that ends or stops it
	ReasonTerminatingOnInterruption Reason = "TerminatingOnInterruption"              // the node is drained because of an interruption message

	ReasonDrifted   Reason = "Drifted"   // the fields in which the node differs from its NodePool or EC2NodeClass
	ReasonDriftHeld Reason = "DriftHeld" // why drifted nodes of a NodePool are not replaced

	// Nodes.
	ReasonFailedDraining  Reason = "FailedDraining"           // the pod that blocks the drain of the node
	ReasonAwaitingVolumes Reason = "AwaitingVolumeDetachment" // which volumes are still attached

	// All objects of the API.
	ReasonNotHonoured Reason = "FieldNotHonoured" // an accepted field has no effect; the message says what happens instead

	// EC2NodeClasses.
	ReasonNodeClassInvalid Reason = "NodeClassNotReady" // what is wrong with it
	ReasonPreflightFailed  Reason = "PreflightFailed"   // its settings lead to nodes that differ from what is specified
)

// isWarning reports whether events with the reason are warnings.
func (r Reason) isWarning() bool {
	switch r {
	case ReasonFailedScheduling, ReasonNoCompatibleInstanceTypes, ReasonInsufficientCapacity, ReasonLaunchFailed,
		ReasonUnregisteredTaint, ReasonConsistencyCheck, ReasonNotJoining, ReasonNodeMismatch, ReasonTagsMissing,
		ReasonInvalidDoNotDisrupt, ReasonRepairBlocked, ReasonTerminationGracePeriod,
		ReasonFailedDraining, ReasonMoveUndone, ReasonNotHonoured, ReasonNodeClassInvalid, ReasonPreflightFailed,
		ReasonNamesake, ReasonWrongCluster, ReasonHeldBack, ReasonDriftHeld, ReasonEndedOutside, ReasonZonalShiftActive,
		ReasonSpotInterrupted, ReasonReservationInterrupted,
		ReasonInstanceStopping, ReasonInstanceTerminating, ReasonInstanceUnhealthy, ReasonTerminatingOnInterruption:
		return true
	default:
	}
	return false
}

// action returns the action of the events API: the operation during which the event occurred.
func (r Reason) action() string {
	switch r {
	case ReasonFailedScheduling, ReasonNominated, ReasonNoCompatibleInstanceTypes, ReasonZonalShiftActive, ReasonZonalShiftCleared:
		return "Provisioning"
	case ReasonEvicted, ReasonDisrupted, ReasonInvalidDoNotDisrupt, ReasonDoNotDisruptElapsed, ReasonDoNotDisruptUntil,
		ReasonFailedDraining, ReasonAwaitingVolumes, ReasonTerminationGracePeriod,
		ReasonDisruptionTerminating, ReasonDisruptionBlocked, ReasonUnconsolidatable, ReasonWaitingReadiness,
		ReasonMoveUndone, ReasonSpotInterrupted, ReasonReservationInterrupted, ReasonRebalanceRecommended,
		ReasonInstanceStopping, ReasonInstanceTerminating, ReasonEndedOutside, ReasonHeldBack, ReasonDrifted, ReasonDriftHeld,
		ReasonInstanceUnhealthy, ReasonTerminatingOnInterruption:
		return "Terminating"
	default:
	}
	return "Launching"
}

// Recorder is the part of the manager's event recorder that a Teller uses.
type Recorder interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any)
}

// Teller writes events. It suppresses an event if the same event about the same object was written a short time ago. An
// event with a changed message is written immediately.
type Teller struct {
	Recorder Recorder // of the manager; never nil
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu     sync.Mutex
	told   map[eventKey]time.Time // until when the same event is suppressed
	series map[eventKey]series    // by object and reason, without the message
}

// eventKey identifies an event.
type eventKey struct {
	uid     types.UID
	name    string // of objects without a UID
	reason  Reason
	message string
}

// How long the same event is suppressed, by its reason. The times are Karpenter's.
const (
	repeatAfter           = 2 * time.Minute
	repeatSchedulingAfter = 5 * time.Minute
	repeatRepairAfter     = 15 * time.Minute
)

// maxNote is the maximum length of an event's note that the server accepts, in bytes.
const maxNote = 1024

// Emit emits an event about an object. It does not block and cannot fail.
func (t *Teller) Emit(about client.Object, reason Reason, message string) {
	message = cut(printable(message), maxNote) // before isNews stores it
	what := eventKey{about.GetUID(), about.GetNamespace() + "/" + about.GetName(), reason, message}
	if !t.isNews(what) {
		return
	}
	kind := corev1.EventTypeNormal
	if reason.isWarning() {
		kind = corev1.EventTypeWarning
	}
	t.Recorder.Eventf(about, nil, kind, string(reason), reason.action()+t.variant(what), "%s", message)
}

// series is a group of events that the recorder merges: events about one object with one reason.
type series struct {
	message  string    // the first message
	began    time.Time // when it was emitted
	variants int       // number of messages that got a suffix
}

// mostVariants is how many further messages of a series get their own suffix. The recorder merges further ones into the
// event of the first message. seriesLife is the time after which a series starts again.
const (
	mostVariants = 3
	seriesLife   = 10 * time.Minute
)

// variant returns a suffix for the action that distinguishes messages with the same reason about the same object. The
// recorder merges events that differ only in their message into a series, of which the server keeps the first message:
// a change would not be visible for minutes.
func (t *Teller) variant(what eventKey) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.series == nil || len(t.series) >= maxRemembered {
		t.series = map[eventKey]series{}
	}
	topic, now := eventKey{uid: what.uid, name: what.name, reason: what.reason}, t.now()
	s, ok := t.series[topic]
	if !ok || now.Sub(s.began) >= seriesLife {
		s = series{message: what.message, began: now}
	}
	suffix := ""
	if s.message != what.message && s.variants < mostVariants {
		s.variants++
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(what.message)) // never fails
		suffix = fmt.Sprintf("-%08x", sum.Sum32())
	}
	t.series[topic] = s
	return suffix
}

// now returns the time of the clock.
func (t *Teller) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// Emitf formats the message and emits the event.
func (t *Teller) Emitf(about client.Object, reason Reason, format string, args ...any) {
	t.Emit(about, reason, fmt.Sprintf(format, args...))
}

// isNews reports whether the event was not emitted a short time ago, and records it as emitted.
func (t *Teller) isNews(what eventKey) bool {
	at := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, ok := t.told[what]; ok && at.Before(until) {
		return false
	}
	if t.told == nil {
		t.told = map[eventKey]time.Time{}
	}
	if len(t.told) >= maxRemembered {
		t.dropOld(at)
	}
	pause := repeatAfter
	switch what.reason {
	case ReasonFailedScheduling:
		pause = repeatSchedulingAfter
	case ReasonRepairBlocked, ReasonNamesake, ReasonHeldBack, ReasonDriftHeld:
		pause = repeatRepairAfter
	default:
	}
	t.told[what] = at.Add(pause)
	return true
}

// maxRemembered is the maximum number of remembered events. When it is reached, expired entries are dropped; if none
// has expired, all are dropped. A repeated event does less harm than growing memory.
const maxRemembered = 50_000

// dropOld drops the expired entries; all entries if none has expired. The caller must hold the lock.
func (t *Teller) dropOld(at time.Time) {
	for what, until := range t.told {
		if !at.Before(until) {
			delete(t.told, what)
		}
	}
	if len(t.told) >= maxRemembered {
		clear(t.told)
	}
}

// cut shortens text to at most n bytes, at a character boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	end := n - len("…")
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}

// printable replaces control characters that a terminal would interpret: messages quote texts of users.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, message)
}
