// Package fargate checks why the controller's own pods do not run, mainly on Fargate: profile, subnets, pod execution
// role and DNS.
//
// In: an index.Index.
// Out: findings of the checks FG.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package fargate

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/network"
)

// Checks returns the checks FG.
func Checks() []index.Check {
	return []index.Check{
		{
			ID:    "FG-1",
			Title: "a Fargate profile is active and selects the controller's pods",
			Layer: diagnosis.LayerController,
			Judge: judgeFargateProfile,
		},
		{ID: "FG-2", Title: "the pods are younger than the profile", Layer: diagnosis.LayerController, Judge: judgeTooEarly},
		{ID: "FG-3", Title: "the pod execution role is authorized", Layer: diagnosis.LayerController, Judge: judgeExecutionRole},
		{
			ID:    "FG-4",
			Title: "the profile's subnets are private and have a route out",
			Layer: diagnosis.LayerController,
			Judge: judgeFargateSubnets,
		},
		{
			ID:    "FG-5",
			Title: "the controller has a region and credentials on Fargate",
			Layer: diagnosis.LayerController,
			Judge: judgeFargateIdentity,
		},
		{ID: "FG-6", Title: "the controller does not need cluster DNS before it runs", Layer: diagnosis.LayerController, Judge: judgeFargateDNS},
		{ID: "FG-7", Title: "the controller's pods fit the existing nodes", Layer: diagnosis.LayerController, Judge: judgeControllerNode},
		{ID: "FG-8", Title: "the controller's pods tolerate Fargate", Layer: diagnosis.LayerController, Judge: judgeTolerations},
	}
}

func isAssignedOrReported(p diagnosis.ControllerPod) bool {
	return p.Scheduler == "fargate-scheduler" || strings.HasPrefix(p.Node, "fargate-") || index.PodMessage(p, "fargate") != ""
}

// selects reports whether the profile selects a pod with these labels in a namespace.
func selects(p diagnosis.FargateProfile, namespace string, labels map[string]string) bool {
	return slices.ContainsFunc(p.Selectors, func(s diagnosis.FargateSelector) bool {
		if ok, err := path.Match(s.Namespace, namespace); err != nil || !ok {
			return false
		}
		for k, want := range s.Labels {
			if ok, err := path.Match(want, labels[k]); err != nil || !ok {
				return false
			}
		}
		return true
	})
}

// profileOf returns the first Fargate profile that selects a pod of the controller; false if none does.
func profileOf(ix *index.Index, p diagnosis.ControllerPod) (diagnosis.FargateProfile, bool) {
	i := slices.IndexFunc(ix.Evidence.Fargate.Value, func(f diagnosis.FargateProfile) bool {
		return selects(f, ix.Evidence.Controller.Value.Namespace, p.Labels)
	})
	if i < 0 {
		return diagnosis.FargateProfile{}, false
	}
	return ix.Evidence.Fargate.Value[i], true
}

// isForFargate reports whether a pod is for Fargate: a profile selects it, it was assigned to Fargate, or its messages
// are about Fargate.
func isForFargate(ix *index.Index, p diagnosis.ControllerPod) bool {
	_, isSelected := profileOf(ix, p)
	return isSelected || isAssignedOrReported(p) || taintMessage(ix, p) != ""
}

// taintMessage returns kube-scheduler's message that a pod does not tolerate Fargate's taint; empty if there is none.
// Newer kube-schedulers do not name the taint. A message without the taint's name counts only if the pod lacks the
// toleration and a node has the taint.
func taintMessage(ix *index.Index, p diagnosis.ControllerPod) string {
	if message := index.PodMessage(p, diagnosis.TaintFargate); message != "" {
		return message
	}
	hasTaintedNode := slices.ContainsFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool {
		return slices.ContainsFunc(n.Taints, func(t diagnosis.Taint) bool { return t.Key == diagnosis.TaintFargate })
	})
	if !hasTaintedNode || tolerates(p, diagnosis.TaintFargate) {
		return ""
	}
	return index.PodMessage(p, "untolerated taint")
}

// eachWaiting returns the findings of f for each waiting pod of the controller that is for Fargate. Of several findings
// with the same cause, it returns the first. There are none without an installed controller (diagnosis.Missing).
func eachWaiting(ix *index.Index, f func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Controller.Gap("the controller's own pods"); ok && !ix.Evidence.Controller.Is(diagnosis.Missing) {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.WaitingPods() {
		if !isForFargate(ix, p) {
			continue
		}
		for _, found := range f(p, "pod "+ix.Evidence.Controller.Value.Namespace+"/"+p.Name) {
			if !slices.ContainsFunc(out, func(o diagnosis.Finding) bool { return o.Cause == found.Cause }) {
				out = append(out, found)
			}
		}
	}
	return out
}

// judgeFargateProfile checks that the Fargate profiles are active, and that one of them selects the controller's pods.
// Pods that no profile selects go to the default scheduler.
func judgeFargateProfile(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Fargate.Gap("the Fargate profiles"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Fargate.Value {
		if p.Status != "" && p.Status != "ACTIVE" || len(p.Issues) > 0 {
			out = append(out, diagnosis.ReportSuspicious("Fargate profile "+p.Name, diagnosis.Certain,
				"Fargate profile %s is %s: %s", p.Name, p.Status, diagnosis.OrElse(strings.Join(p.Issues, "; "), "pods that it selects wait")).
				With(ix.Evidence.Fargate.Source).FixedBy(fix.Call("eks", "wait", fix.P("fargate-profile-active"), ix.RegionParam(),
				ix.ClusterParam(), fix.P("--fargate-profile-name", fix.FargateProfile(p.Name)))))
		}
	}
	return append(out, eachWaiting(ix, func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding {
		if _, ok := profileOf(ix, p); ok || p.Scheduler == "fargate-scheduler" {
			return nil
		}
		var selectors []string
		for _, f := range ix.Evidence.Fargate.Value {
			for _, s := range f.Selectors {
				selectors = append(selectors, f.Name+" selects namespace "+s.Namespace)
			}
		}
		return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Likely, "no Fargate profile selects the controller's pods, so Fargate does not run them, and no other node fits them").
			With(selectors...).With(index.PodMessage(p, "taint")).
			FixedBy(makeProfile(ix))}
	})...)
}

func makeProfile(ix *index.Index) fix.Step {
	c := ix.Evidence.Controller.Value
	return fix.Call("eks", "create-fargate-profile", ix.RegionParam(), ix.ClusterParam(),
		fix.P("--fargate-profile-name", fix.FargateProfile(diagnosis.OrElse(c.ServiceAccount, "joiner"))),
		fix.P("--pod-execution-role-arn", executionRole(ix)), fix.P("--subnets", privateSubnets(ix)...),
		fix.P("--selectors", fix.Join(fix.Text("namespace="), fix.Namespace(diagnosis.OrElse(c.Namespace, "kube-system")))))
}

// executionRole returns the pod execution role of all profiles; a placeholder if it differs or there is no profile.
func executionRole(ix *index.Index) fix.Value {
	if len(ix.Evidence.Fargate.Value) == 0 ||
		slices.ContainsFunc(ix.Evidence.Fargate.Value,
			func(p diagnosis.FargateProfile) bool { return p.Role != ix.Evidence.Fargate.Value[0].Role }) {
		return fix.Placeholder("POD_EXECUTION_ROLE_ARN")
	}
	return fix.RoleARN(ix.Evidence.Fargate.Value[0].Role)
}

// privateSubnets returns the subnets whose instances get no public address by default, or a placeholder if there are
// none.
func privateSubnets(ix *index.Index) []fix.Value {
	var out []fix.Value
	for _, s := range ix.Evidence.Subnets.Value {
		if !s.Public {
			out = append(out, fix.Subnet(s.ID))
		}
	}
	if len(out) == 0 {
		return []fix.Value{fix.Placeholder("PRIVATE_SUBNET_IDS")}
	}
	return out
}

// maxActivationTime is the longest time from the creation of a Fargate profile until the profile is active. EKS reports
// the creation time, but not since when the profile is active.
const maxActivationTime = 5 * time.Minute

// isAfterActivation reports whether the pod p was certainly created after the profile f became active.
func isAfterActivation(p diagnosis.ControllerPod, f diagnosis.FargateProfile) bool {
	return !f.Created.IsZero() && p.Created.After(f.Created.Add(maxActivationTime))
}

// judgeTooEarly reports pods that were created before their Fargate profile was active. EKS assigns a pod to Fargate
// only when the pod is created.
func judgeTooEarly(ix *index.Index) []diagnosis.Finding {
	return eachWaiting(ix, func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding {
		profile, ok := profileOf(ix, p)
		if !ok || !hasOtherScheduler(p) {
			return nil
		}
		var alike []diagnosis.ControllerPod // waiting pods with the same finding as p, p included
		for _, other := range ix.WaitingPods() {
			if same, ok := profileOf(ix, other); ok && same.Name == profile.Name && hasOtherScheduler(other) &&
				isAfterActivation(other, profile) == isAfterActivation(p, profile) {
				alike = append(alike, other)
			}
		}
		f := diagnosis.ReportBroken(subject, diagnosis.Certain, "the pod was created before Fargate profile %s was active, and EKS assigns pods to Fargate only when they are created", profile.Name)
		switch {
		case isAfterActivation(p, profile) && taintMessage(ix, p) != "" && !tolerates(p, diagnosis.TaintFargate):
			return nil // FG-8 reports a missing toleration
		case isAfterActivation(p, profile):
			f = diagnosis.ReportBroken(subject, diagnosis.Likely, "the pod was not assigned to Fargate when it was created, although Fargate profile %s selects it, and EKS does not assign it later", profile.Name)
		}
		f = f.With("spec.schedulerName is "+p.Scheduler, ix.Evidence.Fargate.Source).FixedBy(ix.Evidence.Controller.Value.Recreate(alike))
		if !profile.Created.IsZero() && !p.Created.IsZero() {
			f = f.With("profile created " + diagnosis.Stamp(profile.Created) + ", pod created " + diagnosis.Stamp(p.Created))
		}
		return []diagnosis.Finding{f}
	})
}

// hasOtherScheduler reports whether a pod without a node has a scheduler other than Fargate's.
func hasOtherScheduler(p diagnosis.ControllerPod) bool {
	return p.Node == "" && p.Scheduler != "" && p.Scheduler != "fargate-scheduler"
}

// tolerates reports whether the pod has a toleration for a taint key, whatever the toleration's value and effect. A
// toleration without a key is for all keys.
func tolerates(p diagnosis.ControllerPod, key string) bool {
	return slices.ContainsFunc(p.Tolerates, func(t diagnosis.Taint) bool { return t.Key == key || t.Key == "" })
}

func judgeFargateSubnets(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Routes.Gap("the route tables"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Fargate.Value {
		for _, id := range p.Subnets {
			table, ok := network.RouteTableOf(ix, id)
			i := slices.IndexFunc(table.Routes, func(r diagnosis.Route) bool { return r.To == "0.0.0.0/0" })
			lacking := network.LackingEndpoints(ix, "sts") // the controller gets its role by IRSA, so it calls STS
			switch {
			case !ok: // the route table is not known
			case i >= 0 && strings.HasPrefix(table.Routes[i].Target, "igw-"):
				out = append(out, diagnosis.ReportBroken("Fargate profile "+p.Name, diagnosis.Certain,
					"subnet %s of Fargate profile %s is public, and Fargate's pods get no public address there", id,
					p.Name).With(ix.Evidence.Routes.Source+": "+table.ID).
					FixedBy(fix.Call("eks", "delete-fargate-profile", ix.RegionParam(), ix.ClusterParam(),
						fix.P("--fargate-profile-name", fix.FargateProfile(p.Name))), makeProfile(ix)))
			case i < 0 && len(lacking) > 0 && ix.Evidence.Endpoints.Known():
				out = append(out, diagnosis.ReportBroken("Fargate profile "+p.Name, diagnosis.Certain,
					"subnet %s of Fargate profile %s has no route out, and the VPC has no endpoints for %s", id,
					p.Name, strings.Join(lacking, ", ")).
					With(ix.Evidence.Routes.Source+": "+table.ID).FixedBy(fix.Call("ec2", "create-route", network.ThroughNAT(ix, table, id)...)))
			}
		}
	}
	return out
}

// judgeFargateIdentity checks that the controller does not need instance metadata or the Pod Identity agent for its
// region and credentials. Fargate has neither.
func judgeFargateIdentity(ix *index.Index) []diagnosis.Finding {
	return eachOnFargate(ix, func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding {
		c := ix.Evidence.Controller.Value
		var out []diagnosis.Finding
		if c.RoleSource == "pod identity" {
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain,
				"the controller relies on Pod Identity, and the Pod Identity agent does not run on Fargate").With(ix.Evidence.Controller.Source).
				FixedBy(fix.Annotate(fix.ServiceAccount(c.Namespace, c.ServiceAccount), "eks.amazonaws.com/role-arn",
					fix.RoleARN(c.Role).OrPlaceholder("ROLE_ARN"))))
		}
		if c.Settings["AWS_REGION"] == "" && index.PodMessage(p, "region") != "" {
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Likely,
				"the controller does not know its region: there is no instance metadata on Fargate").With(index.PodMessage(p, "region")).
				FixedBy(fix.SetEnv(ix.ControllerDeployment(), "AWS_REGION", fix.Region(ix.Evidence.Region))))
		}
		return out
	})
}

// eachOnFargate is eachWaiting, limited to pods that are assigned to Fargate.
func eachOnFargate(ix *index.Index, f func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding) []diagnosis.Finding {
	return eachWaiting(ix, func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding {
		if p.Scheduler != "fargate-scheduler" && !strings.HasPrefix(p.Node, "fargate-") {
			return nil
		}
		return f(p, subject)
	})
}

// judgeFargateDNS reports a controller that waits for cluster DNS, which is not ready and may wait for the controller's
// nodes.
func judgeFargateDNS(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Controller.Gap("the controller's own pods"); ok && !ix.Evidence.Controller.Is(diagnosis.Missing) {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Identity.Gap("cluster DNS"); ok && len(ix.WaitingPods()) > 0 {
		return []diagnosis.Finding{gap}
	}
	if ix.Evidence.Identity.Value.DNSReady {
		return nil
	}
	var out []diagnosis.Finding
	for _, p := range ix.WaitingPods() {
		if p.DNSPolicy == "Default" || index.PodMessage(p, "lookup") == "" {
			continue
		}
		if home := ix.Evidence.Identity.Value; home.DNSAbsent != "" { // cluster DNS could not be read
			gap, _ := diagnosis.Item[bool]{Absent: home.DNSAbsent, Why: home.DNSWhy}.Gap("cluster DNS")
			return []diagnosis.Finding{gap}
		}
		c := ix.Evidence.Controller.Value
		out = append(out, diagnosis.ReportBroken("pod "+c.Namespace+"/"+p.Name, diagnosis.Likely, "the controller needs cluster DNS, which is not ready and may wait for nodes that the controller must launch").
			With(index.PodMessage(p, "lookup")).FixedBy(fix.Merge(ix.ControllerDeployment(),
			fix.At(fix.Text("Default"), "spec", "template", "spec", "dnsPolicy"))))
		break
	}
	return out
}

func judgeControllerNode(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Controller.Gap("the controller's own pods"); ok && !ix.Evidence.Controller.Is(diagnosis.Missing) {
		return []diagnosis.Finding{gap}
	}
	for _, p := range ix.WaitingPods() {
		why := diagnosis.OrElse(index.PodMessage(p, "untolerated taint"),
			diagnosis.OrElse(index.PodMessage(p, "too many pods"),
				diagnosis.OrElse(index.PodMessage(p, "insufficient"), index.PodMessage(p, "no nodes available"))))
		if isForFargate(ix, p) || p.Node != "" || why == "" {
			continue
		}
		c := ix.Evidence.Controller.Value
		return []diagnosis.Finding{diagnosis.ReportBroken("pod "+c.Namespace+"/"+p.Name, diagnosis.Certain, "the controller's own pod has no node: it fits none of the existing nodes, and no other program launches a node").
			With(why).FixedBy(fix.Show("describe",
			fix.Pod(c.Namespace, p.Name)).With("then add the toleration to the chart's values, or enlarge the node group"))}
	}
	return nil
}

// judgeTolerations reports controller pods that lack the toleration for Fargate's taint. The chart's default has the
// toleration, but a list in the user's values replaces the default. Pods that are assigned to Fargate do not need it.
func judgeTolerations(ix *index.Index) []diagnosis.Finding {
	return eachWaiting(ix, func(p diagnosis.ControllerPod, subject string) []diagnosis.Finding {
		if p.Scheduler == "fargate-scheduler" || taintMessage(ix, p) == "" || tolerates(p, diagnosis.TaintFargate) {
			return nil
		}
		c := ix.Evidence.Controller.Value
		f := diagnosis.ReportBroken(subject, diagnosis.Certain,
			"the controller's pods do not tolerate the taint %s of the existing nodes", diagnosis.TaintFargate).With(taintMessage(ix, p)).
			FixedBy(fix.JSONPatch(ix.ControllerDeployment(), addToleration(c)))
		switch profile, ok := profileOf(ix, p); {
		case !ok:
			f.Follows = "FG-1" // a Fargate node runs only its own pod, so the toleration alone does not help
		case !isAfterActivation(p, profile):
			f.Follows = "FG-2" // the pod may be older than the active profile
		}
		return []diagnosis.Finding{f}
	})
}

func addToleration(c diagnosis.Controller) fix.Fields {
	toleration := fix.Fields{
		"key":      fix.Text(diagnosis.TaintFargate),
		"operator": fix.Text("Equal"),
		"value":    fix.Text("fargate"),
		"effect":   fix.Text("NoSchedule"),
	}
	if len(c.Tolerates) == 0 {
		return fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations"), "value": fix.List{toleration}}
	}
	return fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations/-"), "value": toleration}
}
