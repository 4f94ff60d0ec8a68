package v1

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the maximum length of a condition's message in the CRDs, in characters.
const maxMessage = 32768

// ConditionSet reads and writes the conditions of one object in memory. It derives Ready from other conditions, which
// Karpenter calls the dependents of Ready:
//
//   - Ready is True if every dependent is True for the object's current generation, False if one is False for that
//     generation, and Unknown otherwise. The message of Ready lists the dependents that are not True
//     for that generation, with their status.
//   - If Ready or a dependent is added with status Unknown, its transition time is the creation time of the object.
//   - The transition time of a condition changes only with its status.
//
// The list has the dependents in their order, then the other conditions by type, then Ready.
//
// +kubebuilder:object:generate=false
type ConditionSet struct {
	object     metav1.Object
	list       *[]metav1.Condition
	dependents []string
}

// NewConditionSet returns the set of the conditions in list, which belong to object.
func NewConditionSet(object metav1.Object, list *[]metav1.Condition, dependents ...string) ConditionSet {
	return ConditionSet{object: object, list: list, dependents: dependents}
}

// Find returns a condition by type. The second result is false if it is absent.
func (s ConditionSet) Find(conditionType string) (metav1.Condition, bool) {
	i := s.index(conditionType)
	if i < 0 {
		return metav1.Condition{}, false
	}
	return (*s.list)[i], true
}

// IsTrue reports whether each of the conditions is True, regardless of the generation that it was observed for.
func (s ConditionSet) IsTrue(conditionTypes ...string) bool {
	for _, t := range conditionTypes {
		if c, _ := s.Find(t); c.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

// IsReady reports whether Ready is True for the object's current generation.
func (s ConditionSet) IsReady() bool {
	c, ok := s.Find(ConditionReady)
	return ok && s.isHealthy(c)
}

// Start adds Ready and the missing dependents with status Unknown, and reports whether it changed anything. The
// controller of the object's kind calls Start before the other methods.
func (s ConditionSet) Start(now time.Time) bool {
	changed := false
	for _, t := range append([]string{ConditionReady}, s.dependents...) {
		if s.index(t) >= 0 {
			continue
		}
		changed = s.SetUnknown(now, t, ReasonAwaitingReconciliation, "not reconciled yet") || changed
	}
	return changed
}

// SetTrue makes a condition True, with its type as the reason, and reports whether that changed anything.
func (s ConditionSet) SetTrue(now time.Time, conditionType string) bool {
	return s.Set(now, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: conditionType})
}

// SetFalse makes a condition False and reports whether that changed anything.
func (s ConditionSet) SetFalse(now time.Time, conditionType, reason, message string) bool {
	return s.Set(now, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	})
}

// SetUnknown makes a condition Unknown and reports whether that changed anything.
func (s ConditionSet) SetUnknown(now time.Time, conditionType, reason, message string) bool {
	return s.Set(now, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason, Message: message,
	})
}

// Set writes a condition and Ready after it, and reports whether that changed anything. The set itself fills in the
// generation and the transition time, so those of c are ignored. A message longer than maxMessage is truncated.
func (s ConditionSet) Set(now time.Time, c metav1.Condition) bool {
	changed := s.put(now, c)
	if c.Type != ConditionReady {
		changed = s.put(now, s.computeReady()) || changed
	}
	return changed
}

// Remove deletes a condition and reports whether it existed. Dependents and Ready cannot be deleted.
func (s ConditionSet) Remove(conditionType string) bool {
	i := s.index(conditionType)
	if i < 0 || s.isPermanent(conditionType) {
		return false
	}
	*s.list = slices.Delete(slices.Clone(*s.list), i, i+1)
	return true
}

// put writes one condition and reports whether that changed anything.
func (s ConditionSet) put(now time.Time, c metav1.Condition) bool {
	c.ObservedGeneration = s.object.GetGeneration()
	c.Message = truncate(c.Message)
	c.LastTransitionTime = metav1.NewTime(now)
	if c.Status == metav1.ConditionUnknown && s.isPermanent(c.Type) {
		c.LastTransitionTime = s.object.GetCreationTimestamp()
	}
	// The new list is a copy: callers compare the result with the object that they read, and compute patches from the
	// difference.
	list := slices.Clone(*s.list)
	if i := s.index(c.Type); i >= 0 {
		old := list[i]
		c.LastTransitionTime = old.LastTransitionTime
		if c.Status != old.Status {
			c.LastTransitionTime = metav1.NewTime(now)
		}
		if c == old {
			return false
		}
		list = slices.Delete(list, i, i+1)
	}
	if s.object.GetDeletionTimestamp() != nil {
		// Deleting an object increments its generation without changing the spec, so conditions of the previous
		// generation stay valid.
		for i := range list {
			list[i].ObservedGeneration = s.object.GetGeneration()
		}
	}
	list = append(list, c)
	slices.SortStableFunc(list, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(s.rank(a.Type), s.rank(b.Type)), strings.Compare(a.Type, b.Type))
	})
	*s.list = list
	return true
}

func (s ConditionSet) computeReady() metav1.Condition {
	status := metav1.ConditionUnknown
	var notReady []string // what the message of Ready lists
	for _, t := range s.dependents {
		c, ok := s.Find(t)
		if ok && s.isHealthy(c) {
			continue
		}
		if !ok {
			c.Status = metav1.ConditionUnknown
		}
		if c.Status == metav1.ConditionFalse && c.ObservedGeneration == s.object.GetGeneration() {
			status = metav1.ConditionFalse
		}
		notReady = append(notReady, t+"="+string(c.Status))
	}
	switch {
	case len(notReady) == 0:
		return metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ConditionReady}
	case status == metav1.ConditionFalse:
		return metav1.Condition{
			Type: ConditionReady, Status: status,
			Reason: ReasonUnhealthyDependents, Message: strings.Join(notReady, ", "),
		}
	}
	return metav1.Condition{
		Type: ConditionReady, Status: status,
		Reason: ReasonReconcilingDependents, Message: strings.Join(notReady, ", "),
	}
}

// isHealthy reports whether the condition is True for the object's current generation.
func (s ConditionSet) isHealthy(c metav1.Condition) bool {
	return c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.object.GetGeneration()
}

// isPermanent reports whether the condition is Ready or a dependent, which Remove does not delete.
func (s ConditionSet) isPermanent(conditionType string) bool {
	return conditionType == ConditionReady || slices.Contains(s.dependents, conditionType)
}

func (s ConditionSet) index(conditionType string) int {
	return slices.IndexFunc(*s.list, func(c metav1.Condition) bool { return c.Type == conditionType })
}

// rank returns the sort key of a condition: the dependents come first, in their order, and Ready comes last.
func (s ConditionSet) rank(conditionType string) int {
	if conditionType == ConditionReady {
		return len(s.dependents) + 1
	}
	if i := slices.Index(s.dependents, conditionType); i >= 0 {
		return i
	}
	return len(s.dependents)
}

// truncate shortens a message to maxMessage characters, the last of which is then an ellipsis.
func truncate(message string) string {
	if len(message) <= maxMessage { // bytes, so at most as many characters
		return message
	}
	runes := []rune(message)
	if len(runes) <= maxMessage {
		return message
	}
	return string(runes[:maxMessage-1]) + "…"
}
