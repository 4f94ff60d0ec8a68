package fargate

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/auth"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// judgeExecutionRole checks that pod execution roles exist, trust Fargate and are mapped. Fargate's nodes join with
// these roles.
func judgeExecutionRole(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Fargate.Gap("the Fargate profiles"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Fargate.Value {
		message := ""
		for _, pod := range ix.WaitingPods() {
			message = diagnosis.OrElse(message, index.PodMessage(pod, "pod execution role"))
		}
		if found, ok := judgeOneExecutionRole(ix, p, message); ok {
			out = append(out, found)
		}
	}
	return out
}

// judgeOneExecutionRole returns the finding about the pod execution role of one profile; false if there is no finding.
// message is the message of a waiting pod about the pod execution role; empty if there is none.
func judgeOneExecutionRole(ix *index.Index, p diagnosis.FargateProfile, message string) (diagnosis.Finding, bool) {
	subject, name := "Fargate profile "+p.Name, auth.RoleName(p.Role)
	r := ix.Evidence.Roles[name]
	switch {
	case r.Is(diagnosis.Missing) && r.Source != "":
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "there is no pod execution role %s in the account",
			name).With(r.Source, message).FixedBy(withPodDeletion(ix, p, makeExecutionRole(ix, p.Role)...)...), true
	case r.Known() && len(r.Value.Trusts) > 0 && !slices.Contains(r.Value.Trusts, fargateService):
		return diagnosis.ReportBroken(subject, diagnosis.Certain,
			"the pod execution role %s does not trust Fargate: it trusts %s", name, strings.Join(r.Value.Trusts, ", ")).With(r.Source, message).
			FixedBy(withPodDeletion(ix, p, auth.TrustService(p.Role, fix.Text(fargateService)))...), true
	}
	if gap, known := auth.MappingGap(ix); !known {
		gap.Subject = subject
		return gap, true
	}
	if !isMappedForFargate(ix, p.Role) {
		return unmappedForFargate(ix, p, subject, message), true
	}
	lacksPolicy := r.Known() && r.Value.Inline == 0 &&
		!slices.ContainsFunc(r.Value.Policies, func(arn string) bool { return strings.HasSuffix(arn, "/"+executionPolicy) })
	switch {
	case message != "" && lacksPolicy:
		return diagnosis.ReportBroken(subject, diagnosis.Likely,
			"the pod execution role %s lacks AmazonEKSFargatePodExecutionRolePolicy", name).With(r.Source, message).
			FixedBy(withPodDeletion(ix, p, auth.Attach(ix, p.Role, executionPolicy))...), true
	case message != "":
		return diagnosis.ReportSuspicious(subject, diagnosis.Possible, "Fargate reports that pod execution role %s is not authorized or lacks permissions, but the role is correct now: Fargate may not have tried again", name).
			With(message).FixedBy(fix.DeletePending(diagnosis.OrElse(ix.Evidence.Controller.Value.Namespace, "kube-system"))), true
	}
	return diagnosis.Finding{}, false
}

// fargateService is the service principal that a pod execution role must trust.
const fargateService = "eks-fargate-pods.amazonaws.com"

// unmappedForFargate returns the finding about a pod execution role that is mapped wrongly or not at all.
func unmappedForFargate(ix *index.Index, p diagnosis.FargateProfile, subject, message string) diagnosis.Finding {
	name := auth.RoleName(p.Role)
	if entry, ok := auth.FindEntry(ix, p.Role); ok && ix.Evidence.Cluster.Value.AcceptsEntries() {
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "the access entry of pod execution role %s is of type %s, but must be FARGATE_LINUX (is the role also a node role?)", name, entry.Type).
			With(ix.Evidence.Entries.Source, message).FixedBy(withPodDeletion(ix, p, auth.DeleteEntry(ix, entry),
			auth.CreateEntry(ix, p.Role, fix.Text("FARGATE_LINUX")))...)
	}
	step := auth.CreateEntry(ix, p.Role, fix.Text("FARGATE_LINUX"))
	if !ix.Evidence.Cluster.Value.AcceptsEntries() {
		step = auth.SetMapRoles(auth.WithRow(ix, diagnosis.Mapping{ARN: auth.WithoutPath(p.Role), Username: "system:node:{{SessionName}}",
			Groups: []string{"system:bootstrappers", "system:nodes", "system:node-proxier"}}))
	}
	f := diagnosis.ReportBroken(subject, diagnosis.Certain,
		"the pod execution role %s of Fargate profile %s is not mapped, so Fargate launches nothing for it", name, p.Name).
		With(message, auth.ModeLine(ix), ix.Evidence.AuthMap.Source+": "+auth.MapLine(ix)).FixedBy(withPodDeletion(ix, p, step)...)
	if ix.Evidence.AuthMap.Value.Problem != "" {
		f.Follows = "AUTH-3"
	}
	return f
}

// withPodDeletion returns the steps, followed by a step that deletes the controller's pods that Fargate refuses because
// of the pod execution role of a profile. Fargate does not retry them, so their Deployment must recreate them.
func withPodDeletion(ix *index.Index, p diagnosis.FargateProfile, steps ...fix.Step) []fix.Step {
	refused := slices.DeleteFunc(ix.WaitingPods(), func(pod diagnosis.ControllerPod) bool {
		profile, ok := profileOf(ix, pod)
		return !ok || profile.Name != p.Name || index.PodMessage(pod, "pod execution role") == ""
	})
	if len(refused) == 0 {
		return steps
	}
	return append(steps, ix.Evidence.Controller.Value.Recreate(refused))
}

// isMappedForFargate reports whether Fargate's nodes with the role are authorized by the mappings that the cluster
// reads.
func isMappedForFargate(ix *index.Index, role string) bool {
	if e, ok := auth.FindEntry(ix, role); ok && ix.Evidence.Cluster.Value.AcceptsEntries() {
		return e.Type == "FARGATE_LINUX"
	}
	return ix.Evidence.Cluster.Value.ReadsAuthMap() && slices.ContainsFunc(auth.MapRows(ix, role), func(m diagnosis.Mapping) bool {
		return m.ARN == auth.WithoutPath(role) && slices.Contains(m.Groups, "system:node-proxier") && slices.Contains(m.Groups, "system:nodes")
	})
}

const executionPolicy = "AmazonEKSFargatePodExecutionRolePolicy"

func makeExecutionRole(ix *index.Index, role string) []fix.Step {
	return []fix.Step{fix.Call("iam", "create-role", fix.P("--role-name", fix.RoleOf(role)),
		fix.P("--assume-role-policy-document", auth.TrustPolicy(fix.Text(fargateService)))),
		auth.Attach(ix, role, executionPolicy)}
}
