package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// judgeNodeRole: EC2 may give instances the role, and the role may what a node must.
func judgeNodeRole(d *desk) []Finding {
	return d.eachRole(func(c Class, subject, role string) []Finding {
		name := roleName(role)
		r := d.Roles[name]
		if d.isControllers(role) {
			return nil // AUTH-5 reports that
		}
		if r.Is(Missing) {
			return []Finding{broken(subject, Certain, "there is no role %s in the account", name).with(r.Source).explaining(NoCredentials).
				mend(d.giveRole(c))}
		}
		if gap, ok := r.gap("role " + name); ok {
			gap.Subject = subject
			return []Finding{gap}
		}
		if len(r.Value.Trusts) > 0 && !trustsEC2(r.Value) {
			return []Finding{broken(subject, Certain, "EC2 may not give instances the role %s: its trust policy trusts %s", name, strings.Join(r.Value.Trusts, ", ")).
				with(r.Source).with(lines(d.of(c.Name, NoCredentials))...).explaining(NoCredentials).
				mend(trust(role, fix.Text("ec2.amazonaws.com")))}
		}
		return d.lackingPolicies(c, subject, role, r)
	})
}

// trust is the step that makes a role trust an AWS service.
func trust(role string, service fix.Value) fix.Step {
	return fix.Call("iam", "update-assume-role-policy", fix.P("--role-name", fix.RoleOf(role)), fix.P("--policy-document", trustPolicy(service)))
}

func trustPolicy(service fix.Value) fix.Value {
	return policyOf(fix.Fields{"Effect": fix.Text("Allow"), "Principal": fix.Fields{"Service": service}, "Action": fix.Text("sts:AssumeRole")})
}

// policyOf returns a policy document with one statement.
func policyOf(statement fix.Fields) fix.Value {
	return fix.Document(fix.Fields{"Version": fix.Text("2012-10-17"), "Statement": fix.List{statement}})
}

// lackingPolicies: the managed policies that nodes need, where no other policy can have what is in them.
func (d *desk) lackingPolicies(c Class, subject, role string, r Item[Role]) []Finding {
	has := func(policies ...string) bool {
		return slices.ContainsFunc(r.Value.Policies, func(arn string) bool { return slices.Contains(policies, arn[strings.LastIndexByte(arn, '/')+1:]) })
	}
	custom := r.Value.Inline > 0 || slices.ContainsFunc(r.Value.Policies, func(arn string) bool { return !strings.Contains(arn, ":aws:policy/") })
	var lacking []string
	if !has("AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy", "AdministratorAccess", "AmazonEKSAutoNodePolicy") {
		lacking = append(lacking, "AmazonEKSWorkerNodePolicy")
	}
	if !has("AmazonEC2ContainerRegistryReadOnly", "AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryPowerUser",
		"AmazonEC2ContainerRegistryFullAccess", "AdministratorAccess") {
		lacking = append(lacking, "AmazonEC2ContainerRegistryPullOnly")
	}
	if len(lacking) == 0 {
		return nil
	}
	var steps []fix.Step
	for _, p := range lacking {
		steps = append(steps, d.attach(role, p))
	}
	certainty, verdict := Certain, Broken
	if custom {
		certainty, verdict = Possible, Suspicious
	}
	sights := d.of(c.Name, NotPermitted, PullFailed)
	if custom && len(sights) == 0 {
		return nil // other policies were not read and may grant the permissions, and no symptom contradicts that
	}
	f := broken(subject, certainty, "node role %s lacks %s", roleName(role), strings.Join(lacking, " and ")).
		with(r.Source+": "+fmt.Sprintf("%d policies attached, %d of its own", len(r.Value.Policies), r.Value.Inline)).
		with(lines(sights)...).explaining(NotPermitted, PullFailed).mend(steps...)
	f.Verdict = verdict
	return []Finding{f}
}

// attach is the step that attaches a policy of AWS to a role.
func (d *desk) attach(role, policy string) fix.Step {
	return fix.Call("iam", "attach-role-policy", fix.P("--role-name", fix.RoleOf(role)),
		fix.P("--policy-arn", fix.Policy("arn:"+d.Cluster.Value.partition()+":iam::aws:policy/"+policy)))
}

// judgeProfileRole: a profile that was named, or that was made, must have the role that is meant.
func judgeProfileRole(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		p, asked := d.Profiles[c.Profile]
		if c.Profile == "" || !asked || p.Is(Missing) {
			out = append(out, fine(subject)) // LAUNCH-1 judges a missing profile
			continue
		}
		if gap, ok := p.gap("instance profile " + c.Profile); ok {
			gap.Subject = subject
			out = append(out, gap)
			continue
		}
		switch add := d.addRole(c); {
		case p.Value.Role == "":
			out = append(out, broken(subject, Certain, "instance profile %s has no role, so its instances have no credentials", c.Profile).
				with(p.Source).with(lines(d.of(c.Name, NoCredentials))...).explaining(NoCredentials, Unauthorized).mend(add))
		case c.Role != "" && roleName(c.Role) != roleName(p.Value.Role):
			out = append(out, broken(subject, Certain, "instance profile %s has the role %s, and EC2NodeClass %s says %s", c.Profile, roleName(p.Value.Role), c.Name, roleName(c.Role)).
				with(p.Source).explaining(Unauthorized, NoCredentials).
				mend(fix.Call("iam", "remove-role-from-instance-profile", fix.P("--instance-profile-name", fix.Profile(c.Profile)),
					fix.P("--role-name", fix.RoleOf(p.Value.Role))), add))
		default:
			out = append(out, fine(subject))
		}
	}
	return out
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// judgePassRole: launching with a role takes iam:PassRole for it.
func judgePassRole(d *desk) []Finding {
	denied := d.messages("iam:PassRole")
	return d.eachRole(func(_ Class, subject, role string) []Finding {
		may, asked := d.PassRole[role]
		mine := slices.DeleteFunc(slices.Clone(denied), func(l string) bool { return !strings.Contains(l, roleName(role)) })
		switch {
		case d.isControllers(role):
			return nil // AUTH-5 reports that this role must not be passed at all
		case len(mine) > 0, asked && may.Known() && !may.Value:
			certainty := Likely // the author of an EC2NodeClass may name any role
			if d.mapped(role) {
				certainty = Certain
			}
			return []Finding{broken(subject, certainty, "the controller may not pass the role %s to instances: iam:PassRole is not allowed for it", roleName(role)).
				with(may.Source).with(mine...).mend(d.passRoleFix(role))}
		case len(denied) == 0 && len(d.Claims.Value) > 0 && slices.ContainsFunc(d.Instances.Value, Instance.runs):
			return nil // launches succeed
		case !asked:
			return []Finding{{Verdict: Unknown, Certainty: Certain, Subject: subject, Cause: "whether the controller may pass role " + roleName(role) + " was not looked at"}}
		}
		if gap, ok := may.gap("whether the controller may pass role " + roleName(role)); ok {
			gap.Subject = subject
			return []Finding{gap}
		}
		return nil
	})
}

// passRoleFix is a policy of its own: the one that is there is not known.
func (d *desk) passRoleFix(role string) fix.Step {
	return fix.Call("iam", "put-role-policy", fix.P("--role-name", fix.RoleOf(d.Controller.Value.Role).Or("CONTROLLER_ROLE")),
		fix.P("--policy-name", fix.Join(fix.Text("PassNodeRole-"), fix.RoleOf(role))),
		fix.P("--policy-document", policyOf(fix.Fields{"Effect": fix.Text("Allow"), "Action": fix.Text("iam:PassRole"), "Resource": fix.RoleARN(role),
			"Condition": fix.At(fix.Text("ec2.amazonaws.com"), "StringEquals", "iam:PassedToService")})))
}

// judgeHostnames: kubelet must call itself what the mapping makes of the instance.
func judgeHostnames(d *desk) []Finding {
	return d.eachRole(func(c Class, subject, role string) []Finding {
		sights := d.of(c.Name, OtherName)
		rows := d.rows(role)
		entry, hasEntry := d.entry(role)
		user := entry.Username
		if !hasEntry && len(rows) > 0 {
			user = rows[len(rows)-1].Username
		}
		resource := slices.ContainsFunc(d.Subnets.Value, func(s Subnet) bool {
			return slices.Contains(c.Subnets, s.ID) && s.HostnameType == "resource-name"
		})
		if len(sights) > 0 {
			return []Finding{broken(subject, Likely, "nodes call themselves by another name than the mapping's user name %q gives them, so the API server does not let them write their own Node", orElse(user, nodeUser)).
				with(lines(sights)...).with(hostnameLine(d, c)).explaining(OtherName).mend(d.mapRole(role))}
		}
		named := slices.DeleteFunc(d.problems("AUTH-9"), func(f Finding) bool { return f.Subject != "EC2NodeClass "+c.Name })
		resource = resource || len(named) > 0
		if resource && strings.Contains(user, "{{SessionName}}") {
			return nil
		}
		if len(named) > 0 {
			return named
		}
		if !resource && strings.Contains(user, "{{SessionName}}") && d.Subnets.Known() {
			return []Finding{suspicious(subject, Likely, "the mapping of node role %s names nodes by session, which is the instance's id, and the subnets name them by address: nodes will not be let write their own Node", roleName(role)).
				with(hostnameLine(d, c)).explaining(OtherName).mend(d.mapRole(role))}
		}
		return nil
	})
}

func hostnameLine(d *desk, c Class) string {
	for _, s := range d.Subnets.Value {
		if slices.Contains(c.Subnets, s.ID) && s.HostnameType != "" {
			return fmt.Sprintf("%s: %s names hosts by %s", d.Subnets.Source, s.ID, s.HostnameType)
		}
	}
	return ""
}

// judgeOtherRole is a hint where a role is not let in: another one is, and nodes with it are there.
func judgeOtherRole(d *desk) []Finding {
	if gap, ok := d.mappings(); !ok {
		return []Finding{gap}
	}
	return d.eachRole(func(c Class, subject, role string) []Finding {
		if d.mapped(role) || len(d.rows(role)) > 0 {
			return nil
		}
		for _, g := range d.NodeGroups.Value {
			if bare(g.Role) != bare(role) && d.mapped(g.Role) {
				f := suspicious(subject, Possible, "the nodes of node group %s join with role %s; EC2NodeClass %s names %s", g.Name, roleName(g.Role), c.Name, roleName(role)).
					with(d.NodeGroups.Source).mend(c.withRole(g.Role).With("if that role was meant"))
				f.Follows = "AUTH-2"
				return []Finding{f}
			}
		}
		return nil
	})
}

// settling is how long EKS takes to apply a new mapping.
const settling = 2 * time.Minute

// judgeRefusedAllTheSame knows the sign, and that the usual reasons are not it.
func judgeRefusedAllTheSame(d *desk) []Finding {
	sights := d.of("", Unauthorized)
	if gap, ok := d.consoles(); ok && len(sights) == 0 {
		return []Finding{gap}
	}
	if len(sights) == 0 {
		return nil
	}
	for _, e := range d.Entries.Value {
		if age := d.At.Sub(e.Created); !e.Created.IsZero() && age >= 0 && age < settling && e.isNodes() {
			return []Finding{suspicious("", Likely, "the API server refuses nodes, and the access entry of %s is %d seconds old: EKS takes up to two minutes to heed one",
				roleName(e.Principal), int(age.Seconds())).with(lines(sights)...).explaining(Unauthorized).mend(fix.Joiner(fix.Text("doctor")).With("again, in two minutes"))}
		}
	}
	f := broken("", Possible, "the API server answers nodes with 401, and their mapping looks right: the token may be for another cluster name or the clock wrong").
		with(lines(sights)...).explaining(Unauthorized).
		mend(fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--nodeclass"), fix.Name(sights[0].instance.Class).Or("NAME"), fix.Text("--instance-type"),
			fix.InstanceType(sights[0].instance.Type).Else(fix.Text("m5.large"))).With("compare the cluster's name in it with %s", d.Name),
			fix.Call("ssm", "start-session", fix.P("--target", fix.Instance(sights[0].instance.ID))).With("there: chronyc tracking, and aws sts get-caller-identity"))
	if _, known := d.mappings(); !known {
		f.Cause = "the API server answers nodes with 401: it does not know their role; who is mapped could not be read"
	}
	return []Finding{f}
}
