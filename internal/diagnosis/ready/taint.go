package ready

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// TaintChecks returns the checks TAINT.
func TaintChecks() []index.Check {
	problem := func(id, title string) index.Check {
		return index.Check{ID: id, Title: title, Layer: diagnosis.LayerBoot, Judge: func(ix *index.Index) []diagnosis.Finding {
			if gap, ok := ix.Evidence.UserData.Gap("user data"); ok {
				return []diagnosis.Finding{gap}
			}
			return nodeclass.Problems(ix, id)
		}}
	}
	return []index.Check{
		{ID: "TAINT-1", Title: "user data registers the node with karpenter.sh/unregistered", Layer: diagnosis.LayerBoot, Judge: judgeStartTaint},
		problem("TAINT-2", "quotes and repeated flags in user data lose no kubelet argument"),
		problem("TAINT-3", "TOML, NodeConfig and PowerShell in user data are valid"),
		{ID: "TAINT-4", Title: "no Node of the same name existed before the instance", Layer: diagnosis.LayerAuth, Judge: judgeStaleNode},
		{ID: "TAINT-5", Title: "only the controller removes its startup taint", Layer: diagnosis.LayerReady, Judge: judgeTaintRemover},
	}
}

// judgeStartTaint reports user data with which the kubelet does not register the taint karpenter.sh/unregistered, and
// nodes that registered without the taint.
func judgeStartTaint(ix *index.Index) []diagnosis.Finding {
	out := nodeclass.Problems(ix, "TAINT-1")
	for i := range out {
		// If quoting loses an argument of the kubelet, that may be the argument with the taint.
		if slices.ContainsFunc(nodeclass.Problems(ix, "TAINT-2"),
			func(f diagnosis.Finding) bool { return f.Subject == out[i].Subject && f.Verdict == diagnosis.Broken }) {
			out[i].Follows = "TAINT-2"
		}
	}
	if gap, ok := ix.Evidence.UserData.Gap("user data"); ok {
		out = append(out, gap)
	}
	for _, statement := range ix.ControllerStatements([]string{"UnregisteredTaintMissing"}) {
		line := statement.String()
		if strings.Contains(line, diagnosis.TaintRemoversPrefix) {
			continue // the node registered with the taint: TAINT-5 reports what removed it
		}
		f := diagnosis.ReportSuspicious("", diagnosis.Likely,
			"a node registered without the taint %s, so pods may have been scheduled to it before it had its labels", diagnosis.TaintUnregistered).With(line)
		if slices.ContainsFunc(judgeTaintRemover(ix), func(f diagnosis.Finding) bool { return f.Verdict == diagnosis.Suspicious }) {
			f.Follows = "TAINT-5"
		}
		out = append(out, f.FixedBy(fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--instance-type"), fix.Text("m5.large")).
			With("then change spec.userData to pass --register-with-taints="+diagnosis.TaintUnregistered+":NoExecute to the kubelet")))
	}
	return out
}

// clockTolerance is by how much a Node may seem to be older than its own instance. The API server truncates creation
// times to seconds, and its clock differs from EC2's.
const clockTolerance = 10 * time.Second

// judgeStaleNode reports Nodes that are older than the instance with their name. A kubelet takes over an existing Node
// of its name unchanged: it writes its provider ID, labels and taints only into a new Node.
func judgeStaleNode(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Nodes.Gap("the nodes"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, i := range ix.Evidence.Instances.Value {
		for _, n := range ix.Evidence.Nodes.Value {
			isOwn := ix.NodeByInstance[i.ID].Name == n.Name && strings.HasSuffix(n.ProviderID, "/"+i.ID)
			hasName := isOwn || n.Name == i.PrivateDNS && i.PrivateDNS != ""
			if !hasName || !i.Runs() || ix.IsForeign(i) || i.Launched.IsZero() || n.Created.IsZero() || i.Launched.Sub(n.Created) < clockTolerance {
				continue
			}
			f := diagnosis.ReportBroken("instance "+i.ID, diagnosis.Likely, "instance %s cannot become a node: its name %s is the name of a Node which another instance left behind", i.ID, n.Name)
			if isOwn {
				f = diagnosis.ReportSuspicious("instance "+i.ID, diagnosis.Likely, "the Node %s is older than its instance %s: another instance left the Node behind, and the kubelet's labels and taints were not written to it", n.Name, i.ID)
			}
			steps := []fix.Step{fix.Delete(fix.Node(n.Name))}
			// the instance must be replaced too, because a kubelet registers only once
			if k := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.IsOf(i) }); k >= 0 {
				steps = append(steps, fix.DeleteClaims(fix.Claim{Name: ix.Evidence.Claims.Value[k].Name, Instance: i.ID, Joined: isOwn}).
					With("another instance is launched in its place, and creates its own Node"))
			}
			out = append(out, f.With(fmt.Sprintf("Node created %s, of %s; instance launched %s", diagnosis.Stamp(n.Created),
				diagnosis.OrElse(n.ProviderID, "no instance"), diagnosis.Stamp(i.Launched))).FixedBy(steps...))
		}
	}
	return out
}

// judgeTaintRemover reports a client that changes the taints of a node before the controller has prepared the node. The
// API server records only the last writer, so the writers in the controller's event take precedence.
func judgeTaintRemover(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Nodes.Gap("the nodes"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, statement := range ix.ControllerStatements([]string{"UnregisteredTaintMissing"}) {
		i := slices.IndexFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool {
			return strings.Contains(statement.String(), n.Name+" ") || strings.HasSuffix(statement.String(), n.Name)
		})
		if i < 0 {
			continue
		}
		n := ix.Evidence.Nodes.Value[i]
		removers := diagnosis.UnexpectedTaintWriters(n.TaintsBy)
		if _, names, ok := strings.Cut(statement.String(), diagnosis.TaintRemoversPrefix); ok {
			removers = strings.Split(names, ", ")
		}
		if len(removers) == 0 {
			continue
		}
		out = append(out, diagnosis.ReportSuspicious("node "+n.Name, diagnosis.Likely, "%s removed the startup taint of the node before the controller had prepared the node, so pods may have been scheduled to it too early", strings.Join(removers, " or ")).
			With(statement.String()).With("metadata.managedFields of node "+n.Name).FixedBy(stopRemover(ix, removers[0], n)...))
	}
	return slices.CompactFunc(out, func(a, b diagnosis.Finding) bool { return a.Cause == b.Cause })
}

// stopRemover returns the steps with which the user changes the client that removed the taint, and replaces the node.
// remover is the client's name. No command contains this name, because any client that can write the Node or the event
// can choose it.
func stopRemover(ix *index.Index, remover string, n diagnosis.Node) []fix.Step {
	steps := []fix.Step{fix.Show("get", fix.Node(n.Name), "-o", "yaml",
		"--show-managed-fields").With("then change %s so that it keeps "+diagnosis.TaintUnregistered, remover)}
	if s, ok := ix.FindDaemonSet(remover); ok {
		steps = []fix.Step{fix.Edit(fix.DaemonSet(s.Namespace, s.Name)).With("if it removes the taint " +
			diagnosis.TaintUnregistered + ", remove that code or setting")}
	}
	isOwn := ix.NodeByInstance[diagnosis.InstanceID(n.ProviderID)].Name == n.Name // n's provider ID is of its own instance
	if c := slices.IndexFunc(ix.Evidence.Claims.Value,
		func(c diagnosis.Claim) bool { return c.ProviderID == n.ProviderID && n.ProviderID != "" }); c >= 0 && isOwn {
		steps = append(steps, fix.DeleteClaims(fix.Claim{
			Name:     ix.Evidence.Claims.Value[c].Name,
			Instance: diagnosis.InstanceID(n.ProviderID),
			Joined:   true,
		}).
			With("its pods may have been scheduled before it had its labels and taints"))
	}
	return steps
}
