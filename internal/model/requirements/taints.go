package requirements

import (
	"strconv"
	"strings"
)

// Effect is the effect of a taint on pods that do not tolerate it.
type Effect string

// The effects of Kubernetes taints.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint keeps pods off a node unless they tolerate it.
type Taint struct {
	Key, Value string // key and value of the taint
	Effect     Effect // NoSchedule, PreferNoSchedule or NoExecute
}

// String returns the taint as kubectl shows it: "key=value:Effect" or "key:Effect".
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// IsTransient reports whether, by its name, the taint is probably one that a component removes when the node is ready
// for pods: node.cilium.io/agent-not-ready, node.cloudprovider.kubernetes.io/uninitialized. Such a taint belongs in the
// startupTaints of a NodePool.
func (t Taint) IsTransient() bool {
	domain, name, hasDomain := strings.Cut(t.Key, "/")
	if !hasDomain {
		domain, name = "", domain
	}
	if domain == "startup-taint.cluster-autoscaler.kubernetes.io" || domain == "ignore-taint.cluster-autoscaler.kubernetes.io" {
		return true
	}
	letters := strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	for _, word := range []string{"notready", "unready", "uninitialized", "notinitialized", "unregistered", "notinstalled",
		"notrunning", "unavailable", "notconfigured", "initializing", "startuptaint"} {
		if strings.Contains(letters, word) {
			return true
		}
	}
	return false
}

// Toleration is a toleration of a pod.
type Toleration struct {
	Key      string // empty with operator Exists: every key
	Operator string // Equal (also if empty), Exists, Lt (the taint's value is an integer below Value) or Gt (above Value)
	Value    string // compared with the taint's value
	Effect   Effect // empty: every effect
}

// Tolerates reports whether the toleration matches the taint, with the semantics of
// k8s.io/component-helpers/scheduling/corev1 for Equal, Exists, Lt and Gt.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", "Equal":
		return t.Key != "" && t.Value == taint.Value
	case "Exists":
		return true
	case "Lt", "Gt":
		bound, boundErr := strconv.ParseInt(t.Value, 10, 64)
		value, valueErr := strconv.ParseInt(taint.Value, 10, 64)
		if boundErr != nil || valueErr != nil || t.Key == "" {
			return false
		}
		return t.Operator == "Lt" && value < bound || t.Operator == "Gt" && value > bound
	}
	return false
}

// Untolerated returns the first taint that keeps a pod with these tolerations off the node, and whether there is one.
// PreferNoSchedule taints are ignored.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect != PreferNoSchedule && !Tolerated(taint, tolerations) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Tolerated reports whether one of the tolerations matches the taint.
func Tolerated(taint Taint, tolerations []Toleration) bool {
	for _, t := range tolerations {
		if t.Tolerates(taint) {
			return true
		}
	}
	return false
}
