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

// Reason is the reason of an event, one of the constants below. A reason that Karpenter has too has Karpenter's name,
// so that alerts on events continue to work.
type Reason string

// The reasons, by the kind of the object.
const (
	// Pods.
	ReasonFailedScheduling Reason = "FailedScheduling" // the pod cannot be scheduled; the message gives the cause
	ReasonNominated        Reason = "Nominated"        // a NodeClaim or Node is planned for the pod; the message names it
	ReasonEvicted          Reason = "Evicted"          // the pod was evicted from its node
	ReasonDisrupted        Reason = "Disrupted"        // the pod was deleted by force, because the grace period of its node ends

	ReasonInvalidDoNotDisrupt Reason = "InvalidDoNotDisruptAnnotation"  // the annotation has no effect: it is neither true nor a duration
	ReasonDoNotDisruptUntil   Reason = "DoNotDisruptUntil"              // the node is drained; the message says until when the pod stays
	ReasonDoNotDisruptElapsed Reason = "DoNotDisruptGracePeriodElapsed" // the duration in the annotation is over, so the pod is evicted

	// NodePools.
	ReasonNoCompatibleInstanceTypes Reason = "NoCompatibleInstanceTypes" // no offering matches the NodePool's requirements
	ReasonZonalShiftActive          Reason = "ZonalShiftActive"          // a zonal shift is active: nothing is launched in the zone
	ReasonZonalShiftCleared         Reason = "ZonalShiftCleared"         // the zone is used again

	ReasonSameClusterName       Reason = "NamesakeSeen" // another cluster with the same name changes resources
	ReasonWrongCluster          Reason = "WrongCluster" // the configured cluster name belongs to another cluster; the controller does nothing
	ReasonGarbageCollectionHeld Reason = "HeldBack"     // garbage collection is held because it would remove too much

	// NodeClaims.
	ReasonLaunched             Reason = "Launched"                  // an instance was launched; the message names it
	ReasonRegistered           Reason = "Registered"                // the Node has joined
	ReasonInitialized          Reason = "Initialized"               // the Node is ready
	ReasonInsufficientCapacity Reason = "InsufficientCapacityError" // EC2 has no capacity for the claim; its pods are planned again
	ReasonLaunchFailed         Reason = "LaunchFailed"              // EC2 rejected the launch or could not be reached
	ReasonUnregisteredTaint    Reason = "UnregisteredTaintMissing"  // the Node joined without the taint that its bootstrap should set
	ReasonConsistencyCheck     Reason = "FailedConsistencyCheck"    // the Node has less than its claim promised
	ReasonNotJoining           Reason = "NodeNotJoining"            // the instance is late or was terminated; the message gives the cause
	ReasonNodeMismatch         Reason = "NodeMismatch"              // a Node has the provider ID of an instance that it does not run on
	ReasonTagsMissing          Reason = "InstanceTagsMissing"       // the instance lost its tags and is not terminated

	ReasonDisruptionBlocked Reason = "DisruptionBlocked" // voluntary disruption of the node is blocked; the message gives the cause
	ReasonUnconsolidatable  Reason = "Unconsolidatable"  // consolidation of the node is blocked; the message gives the cause

	ReasonWaitingReadiness Reason = "DisruptionWaitingReadiness" // the disruption waits until the node's replacement is ready
	ReasonMoveUndone       Reason = "DisruptionUndone"           // the disruption is undone and the node stays; the message gives the cause

	// NodeClaims and Nodes.
	ReasonTerminationGracePeriod Reason = "TerminationGracePeriodExpiring" // the message says when the node's pods are deleted by force
	ReasonDisruptionTerminating  Reason = "DisruptionTerminating"          // the node is disrupted; the message gives the cause
	ReasonRepairBlocked          Reason = "NodeRepairBlocked"              // no repair: too many nodes of the NodePool are unhealthy

	// NodeClaims and Nodes: what AWS reports about their instance.
	ReasonSpotInterrupted           Reason = "SpotInterrupted"                        // EC2 interrupts the spot instance in two minutes
	ReasonReservationInterrupted    Reason = "CapacityReservationInstanceInterrupted" // the capacity reservation or block of the instance ends
	ReasonRebalanceRecommended      Reason = "SpotRebalanceRecommendation"            // EC2 reports a higher risk of interruption
	ReasonInstanceStopping          Reason = "InstanceStopping"                       // the instance stops or has stopped
	ReasonInstanceTerminating       Reason = "InstanceTerminating"                    // the instance is being terminated, or is gone
	ReasonEndedOutside              Reason = "TerminatedFromOutside"                  // the instance was terminated by neither Joiner nor AWS
	ReasonInstanceUnhealthy         Reason = "InstanceUnhealthy"                      // AWS Health announces the end or stop of the instance
	ReasonTerminatingOnInterruption Reason = "TerminatingOnInterruption"              // the node is drained because of an interruption message

	ReasonDrifted   Reason = "Drifted"   // the node differs from its NodePool or EC2NodeClass; the message names the fields
	ReasonDriftHeld Reason = "DriftHeld" // drifted nodes of a NodePool are not replaced; the message gives the cause

	// Nodes.
	ReasonFailedDraining  Reason = "FailedDraining"           // a pod blocks the drain of the node; the message names the pod
	ReasonAwaitingVolumes Reason = "AwaitingVolumeDetachment" // volumes are still attached to the node; the message names them

	// All objects of the API.
	ReasonNotHonoured Reason = "FieldNotHonoured" // an accepted field has no effect; the message says what happens instead

	// EC2NodeClasses.
	ReasonNodeClassInvalid Reason = "NodeClassNotReady" // the EC2NodeClass is not ready; the message gives the cause
	ReasonPreflightFailed  Reason = "PreflightFailed"   // a preflight check found a problem in the EC2NodeClass; the message names the problem
)

func (r Reason) isWarning() bool {
	switch r {
	case ReasonFailedScheduling, ReasonNoCompatibleInstanceTypes, ReasonInsufficientCapacity, ReasonLaunchFailed,
		ReasonUnregisteredTaint, ReasonConsistencyCheck, ReasonNotJoining, ReasonNodeMismatch, ReasonTagsMissing,
		ReasonInvalidDoNotDisrupt, ReasonRepairBlocked, ReasonTerminationGracePeriod,
		ReasonFailedDraining, ReasonMoveUndone, ReasonNotHonoured, ReasonNodeClassInvalid, ReasonPreflightFailed,
		ReasonSameClusterName, ReasonWrongCluster, ReasonGarbageCollectionHeld, ReasonDriftHeld, ReasonEndedOutside, ReasonZonalShiftActive,
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
		ReasonInstanceStopping, ReasonInstanceTerminating, ReasonEndedOutside, ReasonGarbageCollectionHeld, ReasonDrifted, ReasonDriftHeld,
		ReasonInstanceUnhealthy, ReasonTerminatingOnInterruption:
		return "Terminating"
	default:
	}
	return "Launching"
}

// Recorder is the part of the manager's event recorder that an EventWriter uses.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// EventWriter writes events. It suppresses an event if the same event about the same object was written a short time
// ago. An event with a changed message is written immediately.
type EventWriter struct {
	Recorder Recorder // of the manager; never nil
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu         sync.Mutex
	suppressed map[eventKey]time.Time // until when the same event is suppressed
	series     map[eventKey]series    // by object and reason, without the message
}

type eventKey struct {
	uid     types.UID
	name    string // "namespace/name", because not every object has a UID
	reason  Reason
	message string
}

// How long the same event is suppressed, by its reason. The times are Karpenter's.
const (
	repeatAfter           = 2 * time.Minute
	repeatSchedulingAfter = 5 * time.Minute
	repeatRepairAfter     = 15 * time.Minute // also for reasons that Karpenter does not have
)

// maxNote is the maximum length of an event's note that the server accepts, in bytes.
const maxNote = 1024

// Emit emits an event about an object. It does not block and cannot fail.
func (w *EventWriter) Emit(about client.Object, reason Reason, message string) {
	message = cut(printable(message), maxNote) // before markEmitted stores it
	key := eventKey{about.GetUID(), about.GetNamespace() + "/" + about.GetName(), reason, message}
	if !w.markEmitted(key) {
		return
	}
	eventType := corev1.EventTypeNormal
	if reason.isWarning() {
		eventType = corev1.EventTypeWarning
	}
	w.Recorder.Eventf(about, nil, eventType, string(reason), reason.action()+w.variant(key), "%s", message)
}

// series is a group of events that the recorder merges: events about one object with one reason.
type series struct {
	message  string    // the first message
	began    time.Time // when the first message was emitted
	variants int       // number of messages that got a suffix
}

const (
	// maxVariants is the maximum number of messages of a series that get a suffix: the first ones that differ from the
	// first message of the series. The recorder merges all others into the event of the first message.
	maxVariants = 3
	seriesLife  = 10 * time.Minute // after this time, a new series starts
)

// variant returns a suffix for the action, so that messages with the same reason about the same object have different
// actions. The recorder merges events that differ only in their message, and the server keeps the first message.
// Without the suffix, a changed message would not be visible for minutes.
func (w *EventWriter) variant(key eventKey) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.series == nil || len(w.series) >= maxRemembered {
		w.series = map[eventKey]series{}
	}
	topic, now := eventKey{uid: key.uid, name: key.name, reason: key.reason}, w.now()
	s, ok := w.series[topic]
	if !ok || now.Sub(s.began) >= seriesLife {
		s = series{message: key.message, began: now}
	}
	suffix := ""
	if s.message != key.message && s.variants < maxVariants {
		s.variants++
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(key.message)) // never fails
		suffix = fmt.Sprintf("-%08x", sum.Sum32())
	}
	w.series[topic] = s
	return suffix
}

func (w *EventWriter) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

// Emitf formats the message and emits the event.
func (w *EventWriter) Emitf(about client.Object, reason Reason, format string, args ...any) {
	w.Emit(about, reason, fmt.Sprintf(format, args...))
}

// markEmitted records the event as emitted. It returns false if the same event is still suppressed.
func (w *EventWriter) markEmitted(key eventKey) bool {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if until, ok := w.suppressed[key]; ok && now.Before(until) {
		return false
	}
	if w.suppressed == nil {
		w.suppressed = map[eventKey]time.Time{}
	}
	if len(w.suppressed) >= maxRemembered {
		w.dropOld(now)
	}
	interval := repeatAfter
	switch key.reason {
	case ReasonFailedScheduling:
		interval = repeatSchedulingAfter
	case ReasonRepairBlocked, ReasonSameClusterName, ReasonGarbageCollectionHeld, ReasonDriftHeld:
		interval = repeatRepairAfter
	default:
	}
	w.suppressed[key] = now.Add(interval)
	return true
}

// maxRemembered is the maximum number of remembered events. When it is reached, expired entries are dropped; if none
// has expired, all are dropped. A repeated event does less harm than growing memory.
const maxRemembered = 50_000

// dropOld makes room as maxRemembered says. The caller must hold the lock.
func (w *EventWriter) dropOld(now time.Time) {
	for key, until := range w.suppressed {
		if !now.Before(until) {
			delete(w.suppressed, key)
		}
	}
	if len(w.suppressed) >= maxRemembered {
		clear(w.suppressed)
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

// printable replaces all characters that are not printable, except line breaks: messages quote texts of users, and a
// terminal would interpret control characters.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, message)
}
