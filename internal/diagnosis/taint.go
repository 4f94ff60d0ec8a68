package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func taintChecks() []Check {
	problem := func(id, title string) Check {
		return Check{ID: id, Title: title, Layer: LayerBoot, judge: func(d *desk) []Finding {
			if gap, ok := d.UserData.gap("user data"); ok {
				return []Finding{gap}
			}
			return d.problems(id)
		}}
	}
	return []Check{
		{ID: "TAINT-1", Title: "user data registers the node with karpenter.sh/unregistered", Layer: LayerBoot, judge: judgeStartTaint},
		problem("TAINT-2", "quotes and repeated flags in user data lose no kubelet argument"),
		problem("TAINT-3", "TOML, NodeConfig and PowerShell in user data are valid"),
		{ID: "TAINT-4", Title: "no Node of the same name was there before the instance", Layer: LayerAuth, judge: judgeStaleNode},
		{ID: "TAINT-5", Title: "only the controller takes startup taints away", Layer: LayerReady, judge: judgeTaintThief},
	}
}

// judgeStartTaint: what user data will do, and nodes that did register without.
func judgeStartTaint(d *desk) []Finding {
	out := d.problems("TAINT-1")
	for i := range out {
		// If a taint is written but does not arrive, quoting loses it.
		if slices.ContainsFunc(d.problems("TAINT-2"), func(f Finding) bool { return f.Subject == out[i].Subject && f.Verdict == Broken }) {
			out[i].Follows = "TAINT-2"
		}
	}
	if gap, ok := d.UserData.gap("user data"); ok {
		out = append(out, gap)
	}
	for _, said := range d.heardOf([]string{"UnregisteredTaintMissing"}) {
		line := said.String()
		if strings.Contains(line, TakenAwayBy) {
			continue // the node registered with the taint: TAINT-5 reports what removed it
		}
		f := suspicious("", Likely, "a node registered without the taint %s, so pods may have landed on it before it had its labels", taintUnregistered).with(line)
		if slices.ContainsFunc(judgeTaintThief(d), func(f Finding) bool { return f.Verdict == Suspicious }) {
			f.Follows = "TAINT-5"
		}
		out = append(out, f.mend(fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--instance-type"), fix.Text("m5.large")).
			With("then let spec.userData pass --register-with-taints="+taintUnregistered+":NoExecute to the kubelet")))
	}
	return out
}

// clockGrain is how much later than its Node's creation an instance's launch may seem: the API server truncates creation times to seconds, and
// its clock differs from EC2's.
const clockGrain = 10 * time.Second

// judgeStaleNode: a kubelet takes over a Node that has its name as it is, and writes its provider id, its labels and its taints into a new one only.
func judgeStaleNode(d *desk) []Finding {
	if gap, ok := d.Nodes.gap("the nodes"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, i := range d.Instances.Value {
		for _, n := range d.Nodes.Value {
			own := d.joined[i.ID].Name == n.Name && strings.HasSuffix(n.ProviderID, "/"+i.ID)
			same := own || n.Name == i.PrivateDNS && i.PrivateDNS != ""
			if !same || !i.runs() || d.isOthers(i) || i.Launched.IsZero() || n.Created.IsZero() || i.Launched.Sub(n.Created) < clockGrain {
				continue
			}
			f := broken("instance "+i.ID, Likely, "instance %s cannot become a node: its name %s is that of a Node which another instance left behind", i.ID, n.Name)
			if own {
				f = suspicious("instance "+i.ID, Likely, "the Node %s is older than its instance %s: it was left from another one, and the kubelet's labels and taints were not written to it", n.Name, i.ID)
			}
			steps := []fix.Step{fix.Delete(fix.Node(n.Name))}
			if k := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return c.of(i) }); k >= 0 { // a kubelet registers only once
				steps = append(steps, fix.DeleteClaims(fix.Claim{Name: d.Claims.Value[k].Name, Instance: i.ID, Joined: own}).
					With("another instance is launched in its place, and makes a Node of its own"))
			}
			out = append(out, f.with(fmt.Sprintf("Node made %s, of %s; instance launched %s", stamp(n.Created), orElse(n.ProviderID, "no instance"), stamp(i.Launched))).mend(steps...))
		}
	}
	return out
}

// TakenAwayBy precedes the names of the field managers, separated by commas, in the event about a node that lost its startup taint. Judge
// parses it.
const TakenAwayBy = "taken away by "

// judgeTaintThief: whoever else writes the taints of a node before the controller has prepared it. The API server notes only who wrote them last, so
// the controller says in the event whom it found there.
func judgeTaintThief(d *desk) []Finding {
	if gap, ok := d.Nodes.gap("the nodes"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, said := range d.heardOf([]string{"UnregisteredTaintMissing"}) {
		i := slices.IndexFunc(d.Nodes.Value, func(n Node) bool {
			return strings.Contains(said.String(), n.Name+" ") || strings.HasSuffix(said.String(), n.Name)
		})
		if i < 0 {
			continue
		}
		n := d.Nodes.Value[i]
		thieves := StrangeTaintWriters(n.TaintsBy)
		if _, names, ok := strings.Cut(said.String(), TakenAwayBy); ok {
			thieves = strings.Split(names, ", ")
		}
		if len(thieves) == 0 {
			continue
		}
		out = append(out, suspicious("node "+n.Name, Likely, "%s took the startup taint off the node before the controller had prepared it, so pods may have landed there too early", strings.Join(thieves, " or ")).
			with(said.String()).with("metadata.managedFields of node "+n.Name).mend(d.stopThief(thieves[0], n)...))
	}
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Cause == b.Cause })
}

// StrangeTaintWriters returns the field managers of a node's taints that are unexpected: neither Kubernetes, nor the cloud, a person, or an
// autoscaler. It keeps their order; nil if there are none.
func StrangeTaintWriters(managers []string) []string {
	expected := []string{"kubelet", "kube-controller-manager", "joiner", "karpenter", "controller", "cloud-controller-manager", "aws-cloud-controller-manager", "kubectl"}
	var out []string
	for _, m := range managers {
		if !slices.ContainsFunc(expected, func(known string) bool { return strings.HasPrefix(m, known) }) {
			out = append(out, m)
		}
	}
	return out
}

// stopThief are the steps that have a person change whoever took the taint, and replace the node. The name is free text of whoever may write the Node
// or the event: it decides nothing that is carried out.
func (d *desk) stopThief(thief string, n Node) []fix.Step {
	steps := []fix.Step{fix.Show("get", fix.Node(n.Name), "-o", "yaml", "--show-managed-fields").With("then let %s leave "+taintUnregistered+" alone", thief)}
	if s, ok := d.daemon(thief); ok {
		steps = []fix.Step{fix.Edit(fix.DaemonSet(s.Namespace, s.Name)).With("if it removes the taint " + taintUnregistered + ", stop that")}
	}
	isOwn := d.joined[instanceOf(n.ProviderID)].Name == n.Name // not the provider ID of another instance
	if c := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return c.ProviderID == n.ProviderID && n.ProviderID != "" }); c >= 0 && isOwn {
		steps = append(steps, fix.DeleteClaims(fix.Claim{Name: d.Claims.Value[c].Name, Instance: instanceOf(n.ProviderID), Joined: true}).
			With("its pods may have come before its labels and taints did"))
	}
	return steps
}
