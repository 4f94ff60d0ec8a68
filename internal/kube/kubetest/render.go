package kubetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// renderPool writes a pool: one line with its name, then one line for each field that is not empty.
func renderPool(b *strings.Builder, p cluster.Pool) {
	fmt.Fprintf(b, "pool %s class=%s weight=%d\n", p.Name, p.NodeClass, p.Weight)
	renderField(b, "unusable", p.Unusable)
	for _, r := range p.Requirements {
		text := fmt.Sprintf("%s %s %v", r.Key, r.Operator, r.Values)
		if r.MinValues > 0 {
			text += fmt.Sprintf(" minValues=%d", r.MinValues)
		}
		renderField(b, "require", text)
	}
	renderField(b, "labels", labelText(p.Labels))
	renderField(b, "taints", taintText(p.Taints))
	renderField(b, "startupTaints", taintText(p.StartupTaints))
	var limits []string
	for name, v := range p.Limits.Ceiling {
		limits = append(limits, fmt.Sprintf("%s=%d", name, v))
	}
	if p.Limits.Nodes != nil {
		limits = append(limits, fmt.Sprintf("nodes=%d", *p.Limits.Nodes))
	}
	slices.Sort(limits)
	renderField(b, "limits", strings.Join(limits, " "))
	renderField(b, "usage", fmt.Sprintf("%v nodes=%d", p.Usage, p.Nodes))
}

func renderNode(b *strings.Builder, n cluster.Node) {
	fmt.Fprintf(b, "node %s", n.Name)
	if n.Claim != "" {
		fmt.Fprintf(b, " claim=%s", n.Claim)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{n.Joined, "joined"}, {n.Initialized, "initialized"}, {n.Leaving, "leaving"}, {n.Cordoned(), "cordoned"}} {
		if flag.set {
			b.WriteString(" " + flag.name)
		}
	}
	b.WriteByte('\n')
	renderField(b, "providerID", n.ProviderID)
	if n.Pool != "" || n.NodeClass != "" {
		renderField(b, "pool", n.Pool+" class="+n.NodeClass)
	}
	renderField(b, "labels", labelText(n.Labels))
	renderField(b, "taints", taintText(n.Taints))
	renderField(b, "capacity", n.Capacity.String())
	renderField(b, "allocatable", n.Allocatable.String())
	renderField(b, "requested", n.Requested.String())
	renderPorts(b, n.HostPorts)
	for _, p := range n.Pods {
		renderField(b, "runs", p.ID())
	}
	for _, r := range n.Residents {
		renderResident(b, r)
	}
}

func renderResident(b *strings.Builder, r cluster.Resident) {
	text := strings.TrimSpace(fmt.Sprintf("%d of %s %s", r.Count, r.Namespace, labelText(r.Labels)))
	if r.Terminating {
		text += " ending"
	}
	renderField(b, "resident", text)
	for _, t := range r.RequiredAntiAffinity {
		renderField(b, "  avoids", termText(t))
	}
}

func renderPod(b *strings.Builder, p cluster.Pod) {
	fmt.Fprintf(b, "pod %s", p.ID())
	if p.Node != "" {
		fmt.Fprintf(b, " on=%s", p.Node)
	}
	if p.Owner != "" {
		fmt.Fprintf(b, " of=%s", p.Owner)
	}
	if p.Priority != 0 {
		fmt.Fprintf(b, " priority=%d", p.Priority)
	}
	b.WriteByte('\n')
	renderField(b, "unplannable", p.Unplannable)
	renderField(b, "labels", labelText(p.Labels))
	renderField(b, "requests", p.Requests.String())
	renderAlternatives(b, p.Required)
	for _, w := range p.Preferred {
		renderField(b, "prefer", fmt.Sprintf("%d: %s", w.Weight, w.Requirements))
	}
	renderTolerations(b, p.Tolerations)
	renderPorts(b, p.HostPorts)
	for _, c := range p.Spread {
		renderField(b, "spread", SpreadText(c))
	}
	for _, t := range p.Affinity {
		renderField(b, "near", termText(t))
	}
	for _, t := range p.AntiAffinity {
		renderField(b, "apart", termText(t))
	}
	renderField(b, "volumes", strings.Join(p.Volumes, " "))
}

func termText(t cluster.Term) string {
	text := t.Key
	if t.Weight != 0 {
		text = fmt.Sprintf("%d: %s", t.Weight, text)
	}
	if t.AllNamespaces {
		return text + " in=* " + selectorText(t.Selector)
	}
	return fmt.Sprintf("%s in=%s %s", text, strings.Join(t.Namespaces, ","), selectorText(t.Selector))
}

func selectorText(s cluster.Selector) string {
	if s.MatchesNothing {
		return "{nothing}"
	}
	return "{" + s.Labels.String() + "}"
}

// renderField writes a line with a field, unless its value is empty.
func renderField(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %s: %s\n", name, value)
	}
}

// labelText returns the labels sorted, as "key=value" separated by blanks.
func labelText(labels requirements.Labels) string {
	var out []string
	for k, v := range labels {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// renderAlternatives writes a line for each alternative of the required node affinity.
func renderAlternatives(b *strings.Builder, list []requirements.Requirements) {
	for _, r := range list {
		renderField(b, "require", r.String())
	}
}

func renderTolerations(b *strings.Builder, list []requirements.Toleration) {
	var out []string
	for _, t := range list {
		out = append(out, fmt.Sprintf("%s %s %s:%s", t.Key, t.Operator, t.Value, t.Effect))
	}
	renderField(b, "tolerates", strings.Join(out, "; "))
}

func renderPorts(b *strings.Builder, list []cluster.HostPort) {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s:%d/%s", p.IP, p.Port, p.Protocol))
	}
	renderField(b, "ports", strings.Join(out, " "))
}

func taintText(taints []requirements.Taint) string {
	var out []string
	for _, t := range taints {
		out = append(out, t.String())
	}
	return strings.Join(out, " ")
}
