package diagnosis

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// judgeExecutionRole: the role by which Fargate's nodes join must be mapped, and trust Fargate.
func judgeExecutionRole(d *desk) []Finding {
	if gap, ok := d.Fargate.gap("the Fargate profiles"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Fargate.Value {
		said := ""
		for _, pod := range d.waiting() {
			said = orElse(said, pod.said("pod execution role"))
		}
		if found, ok := d.judgeOneExecutionRole(p, said); ok {
			out = append(out, found)
		}
	}
	return out
}

func (d *desk) judgeOneExecutionRole(p FargateProfile, said string) (Finding, bool) {
	subject, name := "Fargate profile "+p.Name, roleName(p.Role)
	r := d.Roles[name]
	switch {
	case r.Is(Missing) && r.Source != "":
		return broken(subject, Certain, "there is no pod execution role %s in the account", name).with(r.Source, said).mend(d.thenAgain(p, d.makeExecutionRole(p.Role)...)...), true
	case r.Known() && len(r.Value.Trusts) > 0 && !slices.Contains(r.Value.Trusts, fargateService):
		return broken(subject, Certain, "the pod execution role %s does not trust Fargate: it trusts %s", name, strings.Join(r.Value.Trusts, ", ")).with(r.Source, said).
			mend(d.thenAgain(p, trust(p.Role, fix.Text(fargateService)))...), true
	}
	if gap, known := d.mappings(); !known {
		gap.Subject = subject
		return gap, true
	}
	if !d.mappedForFargate(p.Role) {
		return d.unmappedForFargate(p, subject, said), true
	}
	lacks := r.Known() && r.Value.Inline == 0 &&
		!slices.ContainsFunc(r.Value.Policies, func(arn string) bool { return strings.HasSuffix(arn, "/AmazonEKSFargatePodExecutionRolePolicy") })
	switch {
	case said != "" && lacks:
		return broken(subject, Likely, "the pod execution role %s lacks AmazonEKSFargatePodExecutionRolePolicy", name).with(r.Source, said).
			mend(d.thenAgain(p, d.attach(p.Role, executionPolicy))...), true
	case said != "":
		return suspicious(subject, Possible, "Fargate says that pod execution role %s is not let in or lacks permissions, and it looks right now: Fargate may not have tried again", name).
			with(said).mend(fix.DeletePending(orElse(d.Controller.Value.Namespace, "kube-system"))), true
	}
	return Finding{}, false
}

// fargateService is the service principal that a pod execution role must trust.
const fargateService = "eks-fargate-pods.amazonaws.com"

// unmappedForFargate says what is wrong with the mapping of a pod execution role.
func (d *desk) unmappedForFargate(p FargateProfile, subject, said string) Finding {
	name := roleName(p.Role)
	if entry, ok := d.entry(p.Role); ok && d.Cluster.Value.api() {
		return broken(subject, Certain, "the access entry of pod execution role %s is of type %s, and must be FARGATE_LINUX: is it a node role too?", name, entry.Type).
			with(d.Entries.Source, said).mend(d.thenAgain(p, d.deleteEntry(entry), d.createEntry(p.Role, fix.Text("FARGATE_LINUX")))...)
	}
	step := d.createEntry(p.Role, fix.Text("FARGATE_LINUX"))
	if !d.Cluster.Value.api() {
		step = mapRoles(d.withRow(Mapping{ARN: bare(p.Role), Username: "system:node:{{SessionName}}",
			Groups: []string{"system:bootstrappers", "system:nodes", "system:node-proxier"}}))
	}
	f := broken(subject, Certain, "the pod execution role %s of Fargate profile %s is not mapped, so Fargate launches nothing for it", name, p.Name).
		with(said, d.modeLine(), d.AuthMap.Source+": "+d.mapLine()).mend(d.thenAgain(p, step)...)
	if d.AuthMap.Value.Problem != "" {
		f.Follows = "AUTH-3"
	}
	return f
}

// thenAgain adds to a fix that the pods which Fargate refused for a profile are made anew: it does not try them again.
func (d *desk) thenAgain(p FargateProfile, steps ...fix.Step) []fix.Step {
	refused := slices.DeleteFunc(d.waiting(), func(pod ControllerPod) bool {
		profile, ok := d.profileOf(pod)
		return !ok || profile.Name != p.Name || pod.said("pod execution role") == ""
	})
	if len(refused) == 0 {
		return steps
	}
	return append(steps, d.Controller.Value.release(refused))
}

// mappedForFargate reports whether Fargate's nodes with the role are let in, by what the cluster reads.
func (d *desk) mappedForFargate(role string) bool {
	if e, ok := d.entry(role); ok && d.Cluster.Value.api() {
		return e.Type == "FARGATE_LINUX"
	}
	return d.Cluster.Value.configMap() && slices.ContainsFunc(d.rows(role), func(m Mapping) bool {
		return m.ARN == bare(role) && slices.Contains(m.Groups, "system:node-proxier") && slices.Contains(m.Groups, "system:nodes")
	})
}

// executionPolicy is the AWS managed policy that a pod execution role needs.
const executionPolicy = "AmazonEKSFargatePodExecutionRolePolicy"

func (d *desk) makeExecutionRole(role string) []fix.Step {
	return []fix.Step{fix.Call("iam", "create-role", fix.P("--role-name", fix.RoleOf(role)), fix.P("--assume-role-policy-document", trustPolicy(fix.Text(fargateService)))),
		d.attach(role, executionPolicy)}
}
