package kubetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// renderPool writes a pool: one line with its name, then one line per field that is not empty.
func renderPool(b *strings.Builder, p cluster.Pool) {
	fmt.Fprintf(b, "pool %s class=%s weight=%d\n", p.Name, p.NodeClass, p.Weight)
	field(b, "unusable", p.Unusable)
	for _, r := range p.Requirements {
		text := fmt.Sprintf("%s %s %v", r.Key, r.Operator, r.Values)
		if r.MinValues > 0 {
			text += fmt.Sprintf(" minValues=%d", r.MinValues)
		}
		field(b, "require", text)
	}
	field(b, "labels", labelText(p.Labels))
	field(b, "taints", join(p.Taints))
	field(b, "startupTaints", join(p.StartupTaints))
	var limits []string
	for name, v := range p.Limits.Ceiling {
		limits = append(limits, fmt.Sprintf("%s=%d", name, v))
	}
	if p.Limits.Nodes != nil {
		limits = append(limits, fmt.Sprintf("nodes=%d", *p.Limits.Nodes))
	}
	slices.Sort(limits)
	field(b, "limits", strings.Join(limits, " "))
	field(b, "usage", fmt.Sprintf("%v nodes=%d", p.Usage, p.Nodes))
}

// renderNode writes a node in the form of renderPool.
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
	field(b, "providerID", n.ProviderID)
	if n.Pool != "" || n.NodeClass != "" {
		field(b, "pool", n.Pool+" class="+n.NodeClass)
	}
	field(b, "labels", labelText(n.Labels))
	field(b, "taints", join(n.Taints))
	field(b, "capacity", n.Capacity.String())
	field(b, "allocatable", n.Allocatable.String())
	field(b, "requested", n.Requested.String())
	ports(b, n.HostPorts)
	for _, p := range n.Pods {
		field(b, "runs", p.ID())
	}
	for _, r := range n.Residents {
		renderResident(b, r)
	}
}

// renderResident writes a group of pods that run on a node.
func renderResident(b *strings.Builder, r cluster.Resident) {
	text := strings.TrimSpace(fmt.Sprintf("%d of %s %s", r.Count, r.Namespace, labelText(r.Labels)))
	if r.Ending {
		text += " ending"
	}
	field(b, "resident", text)
	for _, t := range r.Avoids {
		field(b, "  avoids", termText(t))
	}
}

// renderPod writes a pod in the form of renderPool.
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
	field(b, "unplannable", p.Unplannable)
	field(b, "labels", labelText(p.Labels))
	field(b, "requests", p.Requests.String())
	alternatives(b, p.Required)
	for _, w := range p.Preferred {
		field(b, "prefer", fmt.Sprintf("%d: %s", w.Weight, w.Requirements))
	}
	tolerated(b, p.Tolerations)
	ports(b, p.HostPorts)
	for _, c := range p.Spread {
		field(b, "spread", SpreadText(c))
	}
	for _, t := range p.Affinity {
		field(b, "near", termText(t))
	}
	for _, t := range p.AntiAffinity {
		field(b, "apart", termText(t))
	}
	field(b, "volumes", strings.Join(p.Volumes, " "))
}

// termText returns a term of a pod affinity as text.
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

// selectorText returns a selector as text.
func selectorText(s cluster.Selector) string {
	if s.Nothing {
		return "{nothing}"
	}
	return "{" + s.Labels.String() + "}"
}

// field writes a line with a field, unless its value is empty.
func field(b *strings.Builder, name, value string) {
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

// alternatives writes a line for each alternative of the required node affinity.
func alternatives(b *strings.Builder, list []requirements.Requirements) {
	for _, r := range list {
		field(b, "require", r.String())
	}
}

// tolerated writes the tolerations.
func tolerated(b *strings.Builder, list []requirements.Toleration) {
	var out []string
	for _, t := range list {
		out = append(out, fmt.Sprintf("%s %s %s:%s", t.Key, t.Operator, t.Value, t.Effect))
	}
	field(b, "tolerates", strings.Join(out, "; "))
}

// ports writes the host ports.
func ports(b *strings.Builder, list []cluster.HostPort) {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s:%d/%s", p.IP, p.Port, p.Protocol))
	}
	field(b, "ports", strings.Join(out, " "))
}

// join returns the taints as text.
func join(taints []requirements.Taint) string {
	var out []string
	for _, t := range taints {
		out = append(out, t.String())
	}
	return strings.Join(out, " ")
}
