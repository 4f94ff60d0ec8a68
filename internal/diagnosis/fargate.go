package diagnosis

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func fargateChecks() []Check {
	return []Check{
		{ID: "FG-1", Title: "a Fargate profile is active and selects the controller's pods", Layer: LayerController, judge: judgeFargateProfile},
		{ID: "FG-2", Title: "the pods are younger than the profile", Layer: LayerController, judge: judgeTooEarly},
		{ID: "FG-3", Title: "the pod execution role is let in", Layer: LayerController, judge: judgeExecutionRole},
		{ID: "FG-4", Title: "the profile's subnets are private and have a way out", Layer: LayerController, judge: judgeFargateSubnets},
		{ID: "FG-5", Title: "the controller has region and credentials on Fargate", Layer: LayerController, judge: judgeFargateIdentity},
		{ID: "FG-6", Title: "the controller does not need cluster DNS that is not up", Layer: LayerController, judge: judgeFargateDNS},
		{ID: "FG-7", Title: "the controller's pods fit the nodes that there are", Layer: LayerController, judge: judgeControllerPlace},
		{ID: "FG-8", Title: "the controller's pods tolerate Fargate", Layer: LayerController, judge: judgeTolerations},
	}
}

// waiting are the controller's pods that are not ready, and gone from pending for no reason of their own.
func (d *desk) waiting() []ControllerPod {
	return slices.DeleteFunc(slices.Clone(d.Controller.Value.Pods), func(p ControllerPod) bool { return p.Ready || p.Phase == "Succeeded" })
}

// said returns the first message of a pod that contains all words.
func (p ControllerPod) said(words ...string) string {
	for _, m := range p.Messages {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(m), strings.ToLower(w)) }) {
			return quote(m)
		}
	}
	return ""
}

// onFargate reports whether a pod was given to Fargate, or has a message about it.
func (p ControllerPod) onFargate() bool {
	return p.Scheduler == "fargate-scheduler" || strings.HasPrefix(p.Node, "fargate-") || p.said("fargate") != ""
}

// selects reports whether the profile selects a pod of a namespace.
func (p FargateProfile) selects(namespace string, labels map[string]string) bool {
	return slices.ContainsFunc(p.Selectors, func(s FargateSelector) bool {
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

func (d *desk) profileOf(p ControllerPod) (FargateProfile, bool) {
	i := slices.IndexFunc(d.Fargate.Value, func(f FargateProfile) bool { return f.selects(d.Controller.Value.Namespace, p.Labels) })
	if i < 0 {
		return FargateProfile{}, false
	}
	return d.Fargate.Value[i], true
}

// isForFargate reports whether a pod has to do with Fargate: it says so itself, or a profile selects it.
func (d *desk) isForFargate(p ControllerPod) bool {
	_, selected := d.profileOf(p)
	return selected || p.onFargate() || d.saidTaint(p) != ""
}

// saidTaint returns what was said of a pod that does not tolerate Fargate's nodes. Newer kube-schedulers do not name the taint: then it is
// taken for Fargate's where the pod does not tolerate that, and a node has it.
func (d *desk) saidTaint(p ControllerPod) string {
	if said := p.said(taintFargate); said != "" {
		return said
	}
	has := slices.ContainsFunc(d.Nodes.Value, func(n Node) bool {
		return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == taintFargate })
	})
	if !has || p.tolerates(taintFargate) {
		return ""
	}
	return p.said("untolerated taint")
}

// eachWaiting calls f for each of the controller's pods that waits and has to do with Fargate.
func (d *desk) eachWaiting(f func(p ControllerPod, subject string) []Finding) []Finding {
	if gap, ok := d.Controller.gap("the controller's own pods"); ok && !d.Controller.Is(Missing) {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.waiting() {
		if !d.isForFargate(p) {
			continue
		}
		for _, found := range f(p, "pod "+d.Controller.Value.Namespace+"/"+p.Name) {
			if !slices.ContainsFunc(out, func(o Finding) bool { return o.Cause == found.Cause }) {
				out = append(out, found) // the replicas have the same finding
			}
		}
	}
	return out
}

// judgeFargateProfile: without a profile for them, pods are the default scheduler's, and it has no node for them.
func judgeFargateProfile(d *desk) []Finding {
	if gap, ok := d.Fargate.gap("the Fargate profiles"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Fargate.Value {
		if p.Status != "" && p.Status != "ACTIVE" || len(p.Issues) > 0 {
			out = append(out, suspicious("Fargate profile "+p.Name, Certain, "Fargate profile %s is %s: %s", p.Name, p.Status, orElse(strings.Join(p.Issues, "; "), "pods that it selects wait")).
				with(d.Fargate.Source).mend(fix.Call("eks", "wait", fix.P("fargate-profile-active"), d.inRegion(), d.ofCluster(), fix.P("--fargate-profile-name", fix.FargateProfile(p.Name)))))
		}
	}
	return append(out, d.eachWaiting(func(p ControllerPod, subject string) []Finding {
		if _, ok := d.profileOf(p); ok || p.Scheduler == "fargate-scheduler" {
			return nil
		}
		var selectors []string
		for _, f := range d.Fargate.Value {
			for _, s := range f.Selectors {
				selectors = append(selectors, f.Name+" selects namespace "+s.Namespace)
			}
		}
		return []Finding{broken(subject, Likely, "no Fargate profile selects the controller's pods, so they are not Fargate's, and no other node is there for them").
			with(selectors...).with(p.said("taint")).
			mend(d.makeProfile())}
	})...)
}

// makeProfile is the step that makes a profile for the controller.
func (d *desk) makeProfile() fix.Step {
	c := d.Controller.Value
	return fix.Call("eks", "create-fargate-profile", d.inRegion(), d.ofCluster(), fix.P("--fargate-profile-name", fix.FargateProfile(orElse(c.Account, "joiner"))),
		fix.P("--pod-execution-role-arn", d.executionRole()), fix.P("--subnets", d.privateSubnets()...),
		fix.P("--selectors", fix.Join(fix.Text("namespace="), fix.Namespace(orElse(c.Namespace, "kube-system")))))
}

// executionRole is the role of the profiles that there are, if all have the same.
func (d *desk) executionRole() fix.Value {
	if len(d.Fargate.Value) == 0 || slices.ContainsFunc(d.Fargate.Value, func(p FargateProfile) bool { return p.Role != d.Fargate.Value[0].Role }) {
		return fix.Blank("POD_EXECUTION_ROLE_ARN")
	}
	return fix.RoleARN(d.Fargate.Value[0].Role)
}

func (d *desk) privateSubnets() []fix.Value {
	var out []fix.Value
	for _, s := range d.Subnets.Value {
		if !s.Public {
			out = append(out, fix.Subnet(s.ID))
		}
	}
	if len(out) == 0 {
		return []fix.Value{fix.Blank("PRIVATE_SUBNET_IDS")}
	}
	return out
}

// activation is the longest time until a Fargate profile is active. EKS reports only its creation time.
const activation = 5 * time.Minute

// late reports whether the pod was certainly created after the profile became active.
func (p ControllerPod) late(f FargateProfile) bool {
	return !f.Created.IsZero() && p.Created.After(f.Created.Add(activation))
}

// judgeTooEarly: pods are given to Fargate when they are made, or never.
func judgeTooEarly(d *desk) []Finding {
	return d.eachWaiting(func(p ControllerPod, subject string) []Finding {
		profile, ok := d.profileOf(p)
		if !ok || !p.passedOver() {
			return nil
		}
		var alike []ControllerPod
		for _, other := range d.waiting() {
			if same, ok := d.profileOf(other); ok && same.Name == profile.Name && other.passedOver() && other.late(profile) == p.late(profile) {
				alike = append(alike, other)
			}
		}
		f := broken(subject, Certain, "the pod was made before Fargate profile %s was active, and pods are given to Fargate only when they are made", profile.Name)
		switch {
		case p.late(profile) && d.saidTaint(p) != "" && !p.tolerates(taintFargate):
			return nil // FG-8 reports a missing toleration
		case p.late(profile):
			f = broken(subject, Likely, "the pod was not given to Fargate when it was made, although Fargate profile %s selects it, and nobody does that later", profile.Name)
		}
		f = f.with("spec.schedulerName is "+p.Scheduler, d.Fargate.Source).mend(d.Controller.Value.release(alike))
		if !profile.Created.IsZero() && !p.Created.IsZero() {
			f = f.with("profile made " + stamp(profile.Created) + ", pod made " + stamp(p.Created))
		}
		return []Finding{f}
	})
}

// passedOver reports whether another scheduler than Fargate's has the pod, and no node for it.
func (p ControllerPod) passedOver() bool {
	return p.Node == "" && p.Scheduler != "" && p.Scheduler != "fargate-scheduler"
}

// tolerates reports whether the pod tolerates a taint key, with any value and effect.
func (p ControllerPod) tolerates(key string) bool {
	return slices.ContainsFunc(p.Tolerates, func(t Taint) bool { return t.Key == key || t.Key == "" })
}

// judgeFargateSubnets: Fargate takes private subnets only, and needs a way to AWS in them.
func judgeFargateSubnets(d *desk) []Finding {
	if gap, ok := d.Routes.gap("the route tables"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Fargate.Value {
		for _, id := range p.Subnets {
			table, ok := d.table(id)
			i := slices.IndexFunc(table.Routes, func(r Route) bool { return r.To == "0.0.0.0/0" })
			switch {
			case !ok:
			case i >= 0 && strings.HasPrefix(table.Routes[i].Target, "igw-"):
				out = append(out, broken("Fargate profile "+p.Name, Certain, "subnet %s of Fargate profile %s is public, and Fargate's pods get no public address there", id, p.Name).with(d.Routes.Source+": "+table.ID).
					mend(fix.Call("eks", "delete-fargate-profile", d.inRegion(), d.ofCluster(), fix.P("--fargate-profile-name", fix.FargateProfile(p.Name))), d.makeProfile()))
			case i < 0 && len(d.lackingEndpoints()) > 0 && d.Endpoints.Known():
				out = append(out, broken("Fargate profile "+p.Name, Certain, "subnet %s of Fargate profile %s has no route out, and the VPC no endpoints for %s", id, p.Name, strings.Join(d.lackingEndpoints(), ", ")).
					with(d.Routes.Source+": "+table.ID).mend(fix.Call("ec2", "create-route", d.throughNAT(table, id)...)))
			}
		}
	}
	return out
}

// judgeFargateIdentity: on Fargate there is neither instance metadata nor the agent of Pod Identity.
func judgeFargateIdentity(d *desk) []Finding {
	return d.eachFargate(func(p ControllerPod, subject string) []Finding {
		c := d.Controller.Value
		var out []Finding
		if c.How == "pod identity" {
			out = append(out, broken(subject, Certain, "the controller relies on Pod Identity, and its agent does not run on Fargate").with(d.Controller.Source).
				mend(fix.Annotate(fix.ServiceAccount(c.Namespace, c.Account), "eks.amazonaws.com/role-arn", fix.RoleARN(c.Role).Or("ROLE_ARN"))))
		}
		if c.Settings["AWS_REGION"] == "" && p.said("region") != "" {
			out = append(out, broken(subject, Likely, "the controller does not know its region: there is no instance metadata on Fargate").with(p.said("region")).
				mend(fix.SetEnv(d.controllerDeployment(), "AWS_REGION", fix.Region(d.Region))))
		}
		return out
	})
}

// eachFargate is eachWaiting, for pods that Fargate has taken.
func (d *desk) eachFargate(f func(p ControllerPod, subject string) []Finding) []Finding {
	return d.eachWaiting(func(p ControllerPod, subject string) []Finding {
		if p.Scheduler != "fargate-scheduler" && !strings.HasPrefix(p.Node, "fargate-") {
			return nil
		}
		return f(p, subject)
	})
}

// judgeFargateDNS: cluster DNS may wait for the very nodes that the controller is to buy.
func judgeFargateDNS(d *desk) []Finding {
	if gap, ok := d.Controller.gap("the controller's own pods"); ok && !d.Controller.Is(Missing) {
		return []Finding{gap}
	}
	if gap, ok := d.Home.gap("cluster DNS"); ok && len(d.waiting()) > 0 {
		return []Finding{gap}
	}
	if d.Home.Value.DNSReady {
		return nil
	}
	var out []Finding
	for _, p := range d.waiting() {
		if p.DNSPolicy == "Default" || p.said("lookup") == "" {
			continue
		}
		if home := d.Home.Value; home.DNSAbsent != "" {
			gap, _ := Item[bool]{Absent: home.DNSAbsent, Why: home.DNSWhy}.gap("cluster DNS")
			return []Finding{gap}
		}
		c := d.Controller.Value
		out = append(out, broken("pod "+c.Namespace+"/"+p.Name, Likely, "the controller asks cluster DNS, which is not up, and may wait for nodes that the controller is to buy").
			with(p.said("lookup")).mend(fix.Merge(d.controllerDeployment(), fix.At(fix.Text("Default"), "spec", "template", "spec", "dnsPolicy"))))
		break
	}
	return out
}

// judgeControllerPlace: on node groups the controller needs room and tolerations as any pod does.
func judgeControllerPlace(d *desk) []Finding {
	if gap, ok := d.Controller.gap("the controller's own pods"); ok && !d.Controller.Is(Missing) {
		return []Finding{gap}
	}
	for _, p := range d.waiting() {
		why := orElse(p.said("untolerated taint"), orElse(p.said("too many pods"), orElse(p.said("insufficient"), p.said("no nodes available"))))
		if d.isForFargate(p) || p.Node != "" || why == "" {
			continue
		}
		c := d.Controller.Value
		return []Finding{broken("pod "+c.Namespace+"/"+p.Name, Certain, "the controller's own pod has no node: those that are there do not take it, and nobody else buys one").
			with(why).mend(fix.Show("describe", fix.Pod(c.Namespace, p.Name)).With("then add the toleration to the chart's values, or room to the node group"))}
	}
	return nil
}

// judgeTolerations: lists in a chart's values replace its defaults, and the toleration is lost. A pod that Fargate has taken needs
// none; one that it has not is to be made anew, and the fix does that.
func judgeTolerations(d *desk) []Finding {
	return d.eachWaiting(func(p ControllerPod, subject string) []Finding {
		if p.Scheduler == "fargate-scheduler" || d.saidTaint(p) == "" || p.tolerates(taintFargate) {
			return nil
		}
		c := d.Controller.Value
		f := broken(subject, Certain, "the controller's pods do not tolerate %s, and the nodes that there are have it", taintFargate).with(d.saidTaint(p)).
			mend(fix.JSONPatch(d.controllerDeployment(), c.oneMore()))
		switch profile, ok := d.profileOf(p); {
		case !ok:
			f.Follows = "FG-1" // each Fargate node is one pod's: the toleration alone helps nobody
		case !p.late(profile):
			f.Follows = "FG-2"
		}
		return []Finding{f}
	})
}

// oneMore is the JSON patch operation that adds the toleration for Fargate, to a list or as a new list.
func (c Controller) oneMore() fix.Fields {
	toleration := fix.Fields{"key": fix.Text(taintFargate), "operator": fix.Text("Equal"), "value": fix.Text("fargate"), "effect": fix.Text("NoSchedule")}
	if len(c.Tolerates) == 0 {
		return fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations"), "value": fix.List{toleration}}
	}
	return fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations/-"), "value": toleration}
}
