package auth

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

func judgeNodeRole(ix *index.Index) []diagnosis.Finding {
	return eachRole(ix, func(c diagnosis.Class, subject, role string) []diagnosis.Finding {
		name := RoleName(role)
		r := ix.Evidence.Roles[name]
		if isControllerOrPodRole(ix, role) {
			return nil // AUTH-5 reports that nodes have the controller's role
		}
		if r.Is(diagnosis.Missing) {
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain, "there is no role %s in the account",
				name).With(r.Source).Explaining(diagnosis.NoCredentials).
				FixedBy(giveRole(ix, c))}
		}
		if gap, ok := r.Gap("role " + name); ok {
			gap.Subject = subject
			return []diagnosis.Finding{gap}
		}
		if len(r.Value.Trusts) > 0 && !trustsEC2(r.Value) {
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
				"EC2 is not allowed to give instances the role %s: its trust policy trusts %s", name, strings.Join(r.Value.Trusts, ", ")).
				With(r.Source).With(index.Lines(ix.OccurrencesOf(c.Name, diagnosis.NoCredentials))...).Explaining(diagnosis.NoCredentials).
				FixedBy(TrustService(role, fix.Text("ec2.amazonaws.com")))}
		}
		return judgePolicies(ix, c, subject, role, r)
	})
}

// TrustService is the step that makes a role trust an AWS service.
func TrustService(role string, service fix.Value) fix.Step {
	return fix.Call("iam", "update-assume-role-policy", fix.P("--role-name", fix.RoleOf(role)),
		fix.P("--policy-document", TrustPolicy(service)))
}

// TrustPolicy is the policy document that lets a service assume a role.
func TrustPolicy(service fix.Value) fix.Value {
	return policyOf(fix.Fields{"Effect": fix.Text("Allow"), "Principal": fix.Fields{"Service": service}, "Action": fix.Text("sts:AssumeRole")})
}

func policyOf(statement fix.Fields) fix.Value {
	return fix.Document(fix.Fields{"Version": fix.Text("2012-10-17"), "Statement": fix.List{statement}})
}

// judgePolicies reports the AWS managed policies that nodes need and the role lacks. The text of custom
// policies is not read. If the role has one, there is a finding only if a console shows a missing permission.
func judgePolicies(ix *index.Index, c diagnosis.Class, subject, role string, r diagnosis.Item[diagnosis.Role]) []diagnosis.Finding {
	hasAny := func(policies ...string) bool {
		return slices.ContainsFunc(r.Value.Policies,
			func(arn string) bool { return slices.Contains(policies, arn[strings.LastIndexByte(arn, '/')+1:]) })
	}
	hasCustom := r.Value.Inline > 0 ||
		slices.ContainsFunc(r.Value.Policies, func(arn string) bool { return !strings.Contains(arn, ":aws:policy/") })
	var lacking []string
	if !hasAny("AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy", "AdministratorAccess", "AmazonEKSAutoNodePolicy") {
		lacking = append(lacking, "AmazonEKSWorkerNodePolicy")
	}
	if !hasAny("AmazonEC2ContainerRegistryReadOnly", "AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryPowerUser",
		"AmazonEC2ContainerRegistryFullAccess", "AdministratorAccess") {
		lacking = append(lacking, "AmazonEC2ContainerRegistryPullOnly")
	}
	if len(lacking) == 0 {
		return nil
	}
	var steps []fix.Step
	for _, p := range lacking {
		steps = append(steps, Attach(ix, role, p))
	}
	certainty, verdict := diagnosis.Certain, diagnosis.Broken
	if hasCustom {
		certainty, verdict = diagnosis.Possible, diagnosis.Suspicious
	}
	seen := ix.OccurrencesOf(c.Name, diagnosis.NotPermitted, diagnosis.PullFailed)
	if hasCustom && len(seen) == 0 {
		return nil // a custom policy may grant the permissions, and no symptom contradicts that
	}
	f := diagnosis.ReportBroken(subject, certainty, "node role %s lacks %s", RoleName(role), strings.Join(lacking, " and ")).
		With(r.Source+": "+fmt.Sprintf("%d attached policies, %d inline policies", len(r.Value.Policies), r.Value.Inline)).
		With(index.Lines(seen)...).Explaining(diagnosis.NotPermitted, diagnosis.PullFailed).FixedBy(steps...)
	f.Verdict = verdict
	return []diagnosis.Finding{f}
}

// Attach is the step that attaches a managed policy of AWS to a role.
func Attach(ix *index.Index, role, policy string) fix.Step {
	return fix.Call("iam", "attach-role-policy", fix.P("--role-name", fix.RoleOf(role)),
		fix.P("--policy-arn", fix.Policy("arn:"+ix.Evidence.Cluster.Value.Partition()+":iam::aws:policy/"+policy)))
}

func judgeProfileRole(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		p, wasAsked := ix.Evidence.Profiles[c.Profile]
		if c.Profile == "" || !wasAsked || p.Is(diagnosis.Missing) {
			out = append(out, diagnosis.ReportFine(subject)) // LAUNCH-1 judges a missing profile
			continue
		}
		if gap, ok := p.Gap("instance profile " + c.Profile); ok {
			gap.Subject = subject
			out = append(out, gap)
			continue
		}
		switch add := AddRole(ix, c); {
		case p.Value.Role == "":
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain,
				"instance profile %s has no role, so its instances have no credentials", c.Profile).
				With(p.Source).With(index.Lines(ix.OccurrencesOf(c.Name,
				diagnosis.NoCredentials))...).Explaining(diagnosis.NoCredentials, diagnosis.Unauthorized).FixedBy(add))
		case c.Role != "" && RoleName(c.Role) != RoleName(p.Value.Role):
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain,
				"instance profile %s has the role %s, and EC2NodeClass %s names %s", c.Profile, RoleName(p.Value.Role), c.Name, RoleName(c.Role)).
				With(p.Source).Explaining(diagnosis.Unauthorized, diagnosis.NoCredentials).
				FixedBy(fix.Call("iam", "remove-role-from-instance-profile", fix.P("--instance-profile-name", fix.Profile(c.Profile)),
					fix.P("--role-name", fix.RoleOf(p.Value.Role))), add))
		default:
			out = append(out, diagnosis.ReportFine(subject))
		}
	}
	return out
}

// judgePassRole checks that the controller has the permission iam:PassRole for the node role, which launches need.
func judgePassRole(ix *index.Index) []diagnosis.Finding {
	allDenials := ix.StatementLines("iam:PassRole") // errors of AWS that name the permission
	return eachRole(ix, func(_ diagnosis.Class, subject, role string) []diagnosis.Finding {
		allowed, wasAsked := ix.Evidence.PassRole[role]
		denials := slices.DeleteFunc(slices.Clone(allDenials), func(l string) bool { return !strings.Contains(l, RoleName(role)) })
		switch {
		case isControllerOrPodRole(ix, role):
			return nil // AUTH-5 reports that this role must not be passed at all
		case len(denials) > 0, wasAsked && allowed.Known() && !allowed.Value:
			certainty := diagnosis.Likely // the author of an EC2NodeClass may name any role
			if isMapped(ix, role) {
				certainty = diagnosis.Certain
			}
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, certainty,
				"the controller is not allowed to pass the role %s to instances: it lacks iam:PassRole", RoleName(role)).
				With(allowed.Source).With(denials...).FixedBy(passRoleFix(ix, role))}
		case len(allDenials) == 0 && len(ix.Evidence.Claims.Value) > 0 &&
			slices.ContainsFunc(ix.Evidence.Instances.Value, diagnosis.Instance.Runs):
			return nil // launches succeed
		case !wasAsked:
			return []diagnosis.Finding{{
				Verdict:   diagnosis.Unknown,
				Certainty: diagnosis.Certain,
				Subject:   subject,
				Cause:     "whether the controller may pass role " + RoleName(role) + " was not checked",
			}}
		}
		if gap, ok := allowed.Gap("whether the controller may pass role " + RoleName(role)); ok {
			gap.Subject = subject
			return []diagnosis.Finding{gap}
		}
		return nil
	})
}

// passRoleFix is the step that lets the controller pass a role. It adds an inline policy and keeps existing policies,
// because their text is not read.
func passRoleFix(ix *index.Index, role string) fix.Step {
	return fix.Call("iam", "put-role-policy",
		fix.P("--role-name", fix.RoleOf(ix.Evidence.Controller.Value.Role).OrPlaceholder("CONTROLLER_ROLE")),
		fix.P("--policy-name", fix.Join(fix.Text("PassNodeRole-"), fix.RoleOf(role))),
		fix.P("--policy-document", policyOf(fix.Fields{
			"Effect":    fix.Text("Allow"),
			"Action":    fix.Text("iam:PassRole"),
			"Resource":  fix.RoleARN(role),
			"Condition": fix.At(fix.Text("ec2.amazonaws.com"), "StringEquals", "iam:PassedToService")})))
}

// judgeHostnames checks that nodes register under the name that the mapping of their role expects.
func judgeHostnames(ix *index.Index) []diagnosis.Finding {
	return eachRole(ix, func(c diagnosis.Class, subject, role string) []diagnosis.Finding {
		seen := ix.OccurrencesOf(c.Name, diagnosis.OtherName)
		rows := MapRows(ix, role)
		entry, hasEntry := FindEntry(ix, role)
		user := entry.Username
		if !hasEntry && len(rows) > 0 {
			user = rows[len(rows)-1].Username // the authenticator uses the last row
		}
		// isByResource is true if a subnet, or the user data (below), makes instance IDs the host names.
		isByResource := slices.ContainsFunc(ix.Evidence.Subnets.Value, func(s diagnosis.Subnet) bool {
			return slices.Contains(c.Subnets, s.ID) && s.HostnameType == "resource-name"
		})
		if len(seen) > 0 {
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Likely, "nodes register under a name that differs from the user name %q of the mapping, so the API server does not allow them to write their own Node", diagnosis.OrElse(user, nodeUser)).
				With(index.Lines(seen)...).With(hostnameLine(ix, c)).Explaining(diagnosis.OtherName).FixedBy(mapRole(ix, role))}
		}
		problems := slices.DeleteFunc(nodeclass.Problems(ix, "AUTH-9"),
			func(f diagnosis.Finding) bool { return f.Subject != "EC2NodeClass "+c.Name })
		isByResource = isByResource || len(problems) > 0
		if isByResource && strings.Contains(user, "{{SessionName}}") {
			return nil
		}
		if len(problems) > 0 {
			return problems
		}
		if !isByResource && strings.Contains(user, "{{SessionName}}") && ix.Evidence.Subnets.Known() {
			return []diagnosis.Finding{diagnosis.ReportSuspicious(subject, diagnosis.Likely, "the mapping of node role %s names nodes by session, which is the instance's id, and the subnets name them by address: nodes will not be allowed to write their own Node", RoleName(role)).
				With(hostnameLine(ix, c)).Explaining(diagnosis.OtherName).FixedBy(mapRole(ix, role))}
		}
		return nil
	})
}

// hostnameLine returns how a subnet of the class names hosts, as a line of evidence; empty if that is not known.
func hostnameLine(ix *index.Index, c diagnosis.Class) string {
	for _, s := range ix.Evidence.Subnets.Value {
		if slices.Contains(c.Subnets, s.ID) && s.HostnameType != "" {
			return fmt.Sprintf("%s: %s names hosts by %s", ix.Evidence.Subnets.Source, s.ID, s.HostnameType)
		}
	}
	return ""
}

// judgeOtherRole reports a node group's role that is mapped if the node role is not mapped. The user may have meant the
// node group's role.
func judgeOtherRole(ix *index.Index) []diagnosis.Finding {
	if gap, ok := MappingGap(ix); !ok {
		return []diagnosis.Finding{gap}
	}
	return eachRole(ix, func(c diagnosis.Class, subject, role string) []diagnosis.Finding {
		if isMapped(ix, role) || len(MapRows(ix, role)) > 0 {
			return nil
		}
		for _, g := range ix.Evidence.NodeGroups.Value {
			if WithoutPath(g.Role) != WithoutPath(role) && isMapped(ix, g.Role) {
				f := diagnosis.ReportSuspicious(subject, diagnosis.Possible,
					"the nodes of node group %s join with role %s; EC2NodeClass %s names %s", g.Name, RoleName(g.Role), c.Name, RoleName(role)).
					With(ix.Evidence.NodeGroups.Source).FixedBy(withRole(c, g.Role).With("if that role was meant"))
				f.Follows = "AUTH-2"
				return []diagnosis.Finding{f}
			}
		}
		return nil
	})
}

// maxMappingDelay is the longest time that EKS takes to apply a new mapping.
const maxMappingDelay = 2 * time.Minute

// judgeRefusedDespiteMapping reports nodes that the API server refuses for a reason that no other check knows.
func judgeRefusedDespiteMapping(ix *index.Index) []diagnosis.Finding {
	seen := ix.OccurrencesOf("", diagnosis.Unauthorized)
	if gap, ok := ix.ConsoleGap(); ok && len(seen) == 0 {
		return []diagnosis.Finding{gap}
	}
	if len(seen) == 0 {
		return nil
	}
	for _, e := range ix.Evidence.Entries.Value {
		if age := ix.Evidence.At.Sub(e.Created); !e.Created.IsZero() && age >= 0 && age < maxMappingDelay && isNodeEntry(e) {
			return []diagnosis.Finding{diagnosis.ReportSuspicious("", diagnosis.Likely, "the API server refuses nodes, and the access entry of %s is %d seconds old: EKS takes up to two minutes to apply an entry",
				RoleName(e.Principal), int(age.Seconds())).With(index.Lines(seen)...).Explaining(diagnosis.Unauthorized).
				FixedBy(fix.Joiner(fix.Text("doctor")).With("again, in two minutes"))}
		}
	}
	f := diagnosis.ReportBroken("", diagnosis.Possible, "the API server answers nodes with 401, and their mapping looks right: the token may be for another cluster name, or the clock may be wrong").
		With(index.Lines(seen)...).Explaining(diagnosis.Unauthorized).
		FixedBy(fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--nodeclass"),
			fix.Name(seen[0].Instance.Class).OrPlaceholder("NAME"), fix.Text("--instance-type"),
			fix.InstanceType(seen[0].Instance.Type).OrElse(fix.Text("m5.large"))).
			With("compare the cluster's name in the output with %s", ix.Evidence.Name),
			fix.Call("ssm", "start-session",
				fix.P("--target", fix.Instance(seen[0].Instance.ID))).With("there: chronyc tracking, and aws sts get-caller-identity"))
	if _, known := MappingGap(ix); !known {
		f.Cause = "the API server answers nodes with 401: it does not know their role; the mapped roles could not be read"
	}
	return []diagnosis.Finding{f}
}
