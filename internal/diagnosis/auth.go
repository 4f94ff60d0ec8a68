package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func authChecks() []Check {
	return []Check{
		{ID: "AUTH-1", Title: "the cluster reads the mapping that was made", Layer: LayerAuth, judge: judgeAuthMode},
		{ID: "AUTH-2", Title: "access entry of the node role", Layer: LayerAuth, judge: judgeEntry},
		{ID: "AUTH-3", Title: "aws-auth's mapping of the node role", Layer: LayerAuth, judge: judgeAuthMap},
		{ID: "AUTH-4", Title: "access entry is of this role and not of a deleted one", Layer: LayerAuth, judge: judgeStaleEntry},
		{ID: "AUTH-5", Title: "node role and controller role are not mistaken for each other", Layer: LayerAuth, judge: judgeMistakenRole},
		{ID: "AUTH-6", Title: "trust and permissions of the node role", Layer: LayerBoot, judge: judgeNodeRole},
		{ID: "AUTH-7", Title: "instance profile has the role of the EC2NodeClass", Layer: LayerLaunch, judge: judgeProfileRole},
		{ID: "AUTH-8", Title: "the controller may pass the node role", Layer: LayerLaunch, judge: judgePassRole},
		{ID: "AUTH-9", Title: "host names are those that the mapping expects", Layer: LayerAuth, judge: judgeHostnames},
		{ID: "AUTH-10", Title: "another role joins already", Layer: LayerAuth, judge: judgeOtherRole},
		{ID: "AUTH-11", Title: "the API server refuses a role that is mapped", Layer: LayerAuth, Fallback: true, judge: judgeRefusedAllTheSame},
	}
}

// eachRole calls f for each class whose node role is known; what is needed to judge mappings must be known.
func (d *desk) eachRole(f func(c Class, subject, role string) []Finding) []Finding {
	var out []Finding
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		role, _ := d.nodeRole(c)
		if role == "" {
			out = append(out, Finding{Verdict: Unknown, Certainty: Certain, Subject: subject,
				Cause: "the role of its instances is not known: " + d.whyNoRole(c)})
			continue
		}
		found := f(c, subject, role)
		if len(found) == 0 {
			found = []Finding{fine(subject)}
		}
		out = append(out, found...)
	}
	return out
}

func (d *desk) whyNoRole(c Class) string {
	if c.Role != "" {
		return "neither the account nor the role could be read"
	}
	p := d.Profiles[c.Profile]
	if gap, ok := p.gap("instance profile " + c.Profile); ok {
		return gap.Cause
	}
	return "instance profile " + c.Profile + " has none"
}

// mappings are what is known of who is let in, or the gap in it.
func (d *desk) mappings() (Finding, bool) {
	if gap, ok := d.Cluster.gap("the cluster's authentication mode"); ok {
		return gap, false
	}
	if d.Cluster.Value.api() {
		if gap, ok := d.Entries.gap("the access entries"); ok {
			return gap, false
		}
	}
	if d.Cluster.Value.configMap() && !d.AuthMap.Is(Missing) {
		if gap, ok := d.AuthMap.gap("the ConfigMap aws-auth"); ok {
			return gap, false
		}
	}
	return Finding{}, true
}

func (d *desk) modeLine() string {
	return fmt.Sprintf("%s: authenticationMode %s", d.Cluster.Source, d.Cluster.Value.AuthMode)
}

// judgeAuthMode: the mapping is there, and is not read.
func judgeAuthMode(d *desk) []Finding {
	if gap, ok := d.Cluster.gap("the cluster's authentication mode"); ok {
		return []Finding{gap}
	}
	return d.eachRole(func(_ Class, subject, role string) []Finding {
		_, hasEntry := d.entry(role)
		switch c := d.Cluster.Value; {
		case !c.configMap() && !hasEntry && len(d.rows(role)) > 0 && d.Entries.Known():
			return []Finding{broken(subject, Certain,
				"node role %s is mapped in aws-auth only, and the cluster reads access entries only", roleName(role)).
				with(d.modeLine(), "configmap kube-system/aws-auth: maps "+d.rows(role)[0].ARN, d.Entries.Source+": none for "+role).
				with(lines(d.of("", Unauthorized))...).explaining(Unauthorized).mend(d.createEntry(role, d.entryFor(role)))}
		}
		return nil
	})
}

// judgeEntry: with entries read, the role has one, and of a type for nodes; or aws-auth has it, where that is read too.
func judgeEntry(d *desk) []Finding {
	if gap, ok := d.mappings(); !ok {
		return []Finding{gap}
	}
	if !d.Cluster.Value.api() {
		return nil
	}
	return d.eachRole(func(_ Class, subject, role string) []Finding {
		entry, ok := d.entry(role)
		sights := lines(d.of("", Unauthorized))
		switch {
		case ok && entry.Principal != role && d.Roles[roleName(role)].Known():
			return []Finding{broken(subject, Likely, "the access entry is for %s, and the node role is %s: entries are by the whole ARN, path included",
				entry.Principal, role).with(d.Entries.Source).with(sights...).explaining(Unauthorized).
				mend(d.deleteEntry(entry), d.createEntry(role, d.entryFor(role)))}
		case ok && !entry.isNodes():
			return []Finding{broken(subject, Certain, "the access entry of node role %s is of type %s, which lets no node in: it must be %s",
				roleName(role), entry.Type, d.entryFor(role)).with(d.Entries.Source+": "+entry.Principal+" type "+entry.Type, d.modeLine()).
				with(sights...).explaining(Unauthorized).mend(d.deleteEntry(entry), d.createEntry(role, d.entryFor(role)))}
		case ok, d.mapped(role), len(d.rows(role)) > 0:
			return nil // AUTH-1 and AUTH-3 judge the rows of aws-auth
		}
		f := broken(subject, Certain, "node role %s is not mapped: the cluster has no access entry for it%s", roleName(role), d.norMap()).
			with(d.modeLine(), fmt.Sprintf("%s: %s", d.Entries.Source, d.principals())).with(sights...).
			explaining(Unauthorized).mend(d.createEntry(role, d.entryFor(role)))
		if d.mistaken(role) {
			f.Follows = "AUTH-5"
		}
		return []Finding{f}
	})
}

func (d *desk) norMap() string {
	if d.Cluster.Value.configMap() {
		return ", and aws-auth no row"
	}
	return ""
}

// principals are the access entries, as a line.
func (d *desk) principals() string {
	var out []string
	for _, e := range d.Entries.Value {
		out = append(out, roleName(e.Principal)+" ("+e.Type+")")
	}
	if len(out) == 0 {
		return "none at all"
	}
	const most = 6
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return strings.Join(out, ", ")
}

// judgeAuthMap: what aws-auth says of the role, where aws-auth is read and no entry goes before it.
func judgeAuthMap(d *desk) []Finding {
	if gap, ok := d.mappings(); !ok {
		return []Finding{gap}
	}
	if !d.Cluster.Value.configMap() {
		return nil
	}
	if problem := d.AuthMap.Value.Problem; problem != "" {
		f := broken("", Certain, "aws-auth cannot be read, so it maps nobody: %s", problem).
			with(d.AuthMap.Source, d.modeLine()).with(lines(d.of("", Unauthorized))...).explaining(Unauthorized).
			mend(d.mapAnew()...)
		if d.Cluster.Value.api() {
			f.Verdict, f.Certainty = Suspicious, Certain
		}
		return []Finding{f}
	}
	return d.eachRole(func(_ Class, subject, role string) []Finding {
		if _, ok := d.entry(role); ok && d.Cluster.Value.api() || d.mapped(role) {
			return d.duplicates(subject, role)
		}
		sights := lines(d.of("", Unauthorized))
		for _, m := range d.rows(role) {
			if fault := m.fault(role); fault != "" {
				return []Finding{broken(subject, Certain, "aws-auth has a row for node role %s that lets no node in: %s", roleName(role), fault).
					with(d.AuthMap.Source+": rolearn "+m.ARN, d.modeLine()).with(sights...).explaining(Unauthorized, OtherName).mend(d.mapRole(role))}
			}
		}
		if d.Cluster.Value.api() {
			return nil // AUTH-2 reports that neither has it
		}
		f := broken(subject, Certain, "node role %s is not mapped: aws-auth has no row for it, and the cluster reads nothing else", roleName(role)).
			with(d.modeLine(), d.AuthMap.Source+": "+d.mapLine()).with(sights...).explaining(Unauthorized).mend(d.mapRole(role))
		if d.mistaken(role) {
			f.Follows = "AUTH-5"
		}
		return []Finding{f}
	})
}

// mapAnew are the steps that keep the text of an aws-auth that cannot be read, and map the node roles, which is what nodes need.
func (d *desk) mapAnew() []fix.Step {
	var rows []Mapping
	done := map[string]bool{}
	for _, c := range d.Classes.Value {
		if role, _ := d.nodeRole(c); role != "" && !done[role] {
			done[role] = true
			rows = append(rows, d.nodeRow(role))
		}
	}
	if len(rows) == 0 {
		return []fix.Step{fix.Edit(fix.AuthMap()).With("correct mapRoles: a list of rolearn, username and groups")}
	}
	return []fix.Step{fix.Save(fix.AuthMap(), "aws-auth-before.yaml").With("correct its other rows, and add them again"), mapRoles(written(rows...))}
}

// mapLine is who is mapped, as a line.
func (d *desk) mapLine() string {
	var out []string
	for _, m := range d.AuthMap.Value.Roles {
		out = append(out, roleName(m.ARN))
	}
	if len(out) == 0 {
		return "no roles"
	}
	return "maps " + strings.Join(out[:min(len(out), 6)], ", ")
}

// duplicates: of several rows for one role only the last counts.
func (d *desk) duplicates(subject, role string) []Finding {
	rows := d.rows(role)
	if len(rows) < 2 || slices.IndexFunc(rows, func(m Mapping) bool { return m.fault(role) != "" }) < 0 {
		return nil
	}
	return []Finding{suspicious(subject, Likely, "aws-auth has %d rows for node role %s that say different things", len(rows), roleName(role)).
		with(d.AuthMap.Source).mend(mapRoles(d.withRow(d.nodeRow(role))))}
}

// judgeStaleEntry: an entry knows the role by its unique id; a role that was deleted and made again has another.
func judgeStaleEntry(d *desk) []Finding {
	if gap, ok := d.mappings(); !ok {
		return []Finding{gap}
	}
	return d.eachRole(func(_ Class, subject, role string) []Finding {
		entry, ok := d.entry(role)
		r := d.Roles[roleName(role)]
		if !ok || !d.Cluster.Value.api() || entry.Created.IsZero() {
			return nil
		}
		if gap, ok := r.gap("role " + roleName(role)); ok {
			gap.Subject = subject
			return []Finding{gap}
		}
		if r.Value.Created.IsZero() || !r.Value.Created.After(entry.Created) {
			return nil
		}
		return []Finding{broken(subject, Likely,
			"the access entry of node role %s is older than the role: it stands for a role of that name that was deleted, and lets this one not in", roleName(role)).
			with("entry made "+stamp(entry.Created)+", role made "+stamp(r.Value.Created)).with(lines(d.of("", Unauthorized))...).
			explaining(Unauthorized).mend(d.deleteEntry(entry), d.createEntry(role, d.entryFor(role)))}
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// controllerMapped returns a role that is mapped as if it were the nodes', and is the controller's, or at least no instance's.
func (d *desk) controllerMapped() (role string, ok bool) {
	var candidates []string
	for _, m := range d.AuthMap.Value.Roles {
		if slices.Contains(m.Groups, "system:nodes") && d.Cluster.Value.configMap() {
			candidates = append(candidates, m.ARN)
		}
	}
	for _, e := range d.Entries.Value {
		if e.isNodes() && d.Cluster.Value.api() {
			candidates = append(candidates, e.Principal)
		}
	}
	i := slices.IndexFunc(candidates, d.isControllers)
	if i < 0 {
		return "", false
	}
	return candidates[i], true
}

// isControllers reports whether a role is the controller's, or can be had by pods only.
func (d *desk) isControllers(role string) bool {
	own := d.Controller.Value.Role
	return own != "" && bare(role) == bare(own) || d.isForPods(role)
}

// mistaken reports whether AUTH-5 is the reason that a role is not mapped.
func (d *desk) mistaken(role string) bool {
	_, mapped := d.controllerMapped()
	return mapped || d.isControllers(role)
}

// isForPods reports whether a role can be had by pods only, as far as its trust policy was read.
func (d *desk) isForPods(role string) bool {
	r := d.Roles[roleName(role)]
	if !r.Known() || len(r.Value.Trusts) == 0 || trustsEC2(r.Value) {
		return false
	}
	return slices.ContainsFunc(r.Value.Trusts, func(t string) bool {
		return t == "pods.eks.amazonaws.com" || strings.Contains(t, ":oidc-provider/")
	})
}

func trustsEC2(r Role) bool {
	return slices.Contains(r.Trusts, "ec2.amazonaws.com") || slices.Contains(r.Trusts, "ec2.amazonaws.com.cn") || slices.Contains(r.Trusts, "*")
}

// judgeMistakenRole: the controller's role stands where the nodes' belongs: in the mapping, or in the EC2NodeClass.
func judgeMistakenRole(d *desk) []Finding {
	if gap, ok := d.mappings(); !ok {
		return []Finding{gap}
	}
	return d.eachRole(func(c Class, subject, role string) []Finding {
		own := d.Controller.Value.Role
		if d.isControllers(role) {
			return []Finding{broken(subject, Certain, "%s is the role of the controller's pods, and EC2NodeClass %s gives it to instances", roleName(role), c.Name).
				with(d.roleLine(role)).with(lines(d.of(c.Name, NoCredentials, Unauthorized))...).explaining(NoCredentials, Unauthorized).
				mend(d.giveRole(c))}
		}
		other, ok := d.controllerMapped()
		if !ok || d.mapped(role) {
			return nil
		}
		whose := "the controller's own"
		if own == "" || bare(own) != bare(other) {
			whose = "one that only pods can have, like the controller's"
		}
		return []Finding{broken(subject, Certain, "node role %s is not mapped; the role that is mapped, %s, is %s", roleName(role), roleName(other), whose).
			with(d.modeLine(), d.roleLine(other)).with(lines(d.of("", Unauthorized))...).explaining(Unauthorized).mend(d.mapRole(role))}
	})
}

// roleLine is what is known of whom a role is for.
func (d *desk) roleLine(role string) string {
	if c := d.Controller.Value; c.Role != "" && bare(c.Role) == bare(role) {
		return fmt.Sprintf("%s: service account %s/%s has role %s (%s)", d.Controller.Source, c.Namespace, c.Account, roleName(role), c.How)
	}
	if r := d.Roles[roleName(role)]; r.Known() {
		return r.Source + ": trusts " + strings.Join(r.Value.Trusts, ", ")
	}
	return ""
}
