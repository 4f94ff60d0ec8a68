// Package auth checks whether the API server authenticates a node: its role, instance profile, access entry and row in
// aws-auth.
//
// In: an index.Index.
// Out: findings of the checks AUTH, and the steps that map a role.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Checks returns the checks AUTH.
func Checks() []index.Check {
	return []index.Check{
		{ID: "AUTH-1", Title: "the cluster reads the mapping of the node role", Layer: diagnosis.LayerAuth, Judge: judgeAuthMode},
		{ID: "AUTH-2", Title: "the node role has a valid access entry", Layer: diagnosis.LayerAuth, Judge: judgeEntry},
		{ID: "AUTH-3", Title: "aws-auth maps the node role", Layer: diagnosis.LayerAuth, Judge: judgeAuthMap},
		{ID: "AUTH-4", Title: "the access entry is not for a deleted role of the same name", Layer: diagnosis.LayerAuth, Judge: judgeStaleEntry},
		{
			ID:    "AUTH-5",
			Title: "node role and controller role are not mistaken for each other",
			Layer: diagnosis.LayerAuth,
			Judge: judgeMistakenRole,
		},
		{ID: "AUTH-6", Title: "the node role has the required trust policy and permissions", Layer: diagnosis.LayerBoot, Judge: judgeNodeRole},
		{ID: "AUTH-7", Title: "the instance profile has the role of the EC2NodeClass", Layer: diagnosis.LayerLaunch, Judge: judgeProfileRole},
		{ID: "AUTH-8", Title: "the controller may pass the node role", Layer: diagnosis.LayerLaunch, Judge: judgePassRole},
		{ID: "AUTH-9", Title: "host names are those that the mapping expects", Layer: diagnosis.LayerAuth, Judge: judgeHostnames},
		{ID: "AUTH-10", Title: "node groups join with another role", Layer: diagnosis.LayerAuth, Judge: judgeOtherRole},
		{
			ID:       "AUTH-11",
			Title:    "the API server refuses a mapped role",
			Layer:    diagnosis.LayerAuth,
			Fallback: true,
			Judge:    judgeRefusedDespiteMapping,
		},
	}
}

// eachRole returns the findings of f for each class whose node role is known, or Fine if f returns none. For other
// classes, it returns an Unknown finding.
func eachRole(ix *index.Index, f func(c diagnosis.Class, subject, role string) []diagnosis.Finding) []diagnosis.Finding {
	var out []diagnosis.Finding
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		role := nodeRole(ix, c)
		if role == "" {
			out = append(out, diagnosis.Finding{Verdict: diagnosis.Unknown, Certainty: diagnosis.Certain, Subject: subject,
				Cause: "the role of its instances is not known: " + whyNoRole(ix, c)})
			continue
		}
		found := f(c, subject, role)
		if len(found) == 0 {
			found = []diagnosis.Finding{diagnosis.ReportFine(subject)}
		}
		out = append(out, found...)
	}
	return out
}

func whyNoRole(ix *index.Index, c diagnosis.Class) string {
	if c.Role != "" {
		return "neither the account nor the role could be read"
	}
	p := ix.Evidence.Profiles[c.Profile]
	if gap, ok := p.Gap("instance profile " + c.Profile); ok {
		return gap.Cause
	}
	return "instance profile " + c.Profile + " has no role"
}

// MappingGap reports whether the mappings that the cluster reads are known. If not, gap is the Unknown finding of a
// check that needs them.
func MappingGap(ix *index.Index) (gap diagnosis.Finding, known bool) {
	if gap, ok := ix.Evidence.Cluster.Gap("the cluster's authentication mode"); ok {
		return gap, false
	}
	if ix.Evidence.Cluster.Value.AcceptsEntries() {
		if gap, ok := ix.Evidence.Entries.Gap("the access entries"); ok {
			return gap, false
		}
	}
	if ix.Evidence.Cluster.Value.ReadsAuthMap() && !ix.Evidence.AuthMap.Is(diagnosis.Missing) {
		if gap, ok := ix.Evidence.AuthMap.Gap("the ConfigMap aws-auth"); ok {
			return gap, false
		}
	}
	return diagnosis.Finding{}, true
}

// ModeLine returns the cluster's authentication mode as a line of evidence.
func ModeLine(ix *index.Index) string {
	return fmt.Sprintf("%s: authenticationMode %s", ix.Evidence.Cluster.Source, ix.Evidence.Cluster.Value.AuthMode)
}

// judgeAuthMode reports roles that are mapped only in aws-auth, when the cluster reads only access entries.
func judgeAuthMode(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Cluster.Gap("the cluster's authentication mode"); ok {
		return []diagnosis.Finding{gap}
	}
	return eachRole(ix, func(_ diagnosis.Class, subject, role string) []diagnosis.Finding {
		_, hasEntry := FindEntry(ix, role)
		switch c := ix.Evidence.Cluster.Value; {
		case !c.ReadsAuthMap() && !hasEntry && len(MapRows(ix, role)) > 0 && ix.Evidence.Entries.Known():
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
				"node role %s is mapped in aws-auth only, and the cluster reads access entries only", RoleName(role)).
				With(ModeLine(ix), "configmap kube-system/aws-auth: maps "+MapRows(ix, role)[0].ARN, ix.Evidence.Entries.Source+": none for "+role).
				With(index.Lines(ix.OccurrencesOf("",
					diagnosis.Unauthorized))...).Explaining(diagnosis.Unauthorized).FixedBy(CreateEntry(ix, role, entryType(ix, role)))}
		}
		return nil
	})
}

// judgeEntry checks that the node role has an access entry of a node type, if the cluster reads access entries. If the
// cluster also reads aws-auth, a row there suffices.
func judgeEntry(ix *index.Index) []diagnosis.Finding {
	if gap, ok := MappingGap(ix); !ok {
		return []diagnosis.Finding{gap}
	}
	if !ix.Evidence.Cluster.Value.AcceptsEntries() {
		return nil
	}
	return eachRole(ix, func(_ diagnosis.Class, subject, role string) []diagnosis.Finding {
		entry, hasEntry := FindEntry(ix, role)
		seen := index.Lines(ix.OccurrencesOf("", diagnosis.Unauthorized))
		switch {
		case hasEntry && entry.Principal != role && ix.Evidence.Roles[RoleName(role)].Known():
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Likely,
				"the access entry is for %s, and the node role is %s: an entry applies to the whole ARN, path included",
				entry.Principal, role).With(ix.Evidence.Entries.Source).With(seen...).Explaining(diagnosis.Unauthorized).
				FixedBy(DeleteEntry(ix, entry), CreateEntry(ix, role, entryType(ix, role)))}
		case hasEntry && !isNodeEntry(entry):
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
				"the access entry of node role %s is of type %s, which does not authorize nodes: the type must be %s",
				RoleName(role), entry.Type, entryType(ix, role)).
				With(ix.Evidence.Entries.Source+": "+entry.Principal+" type "+entry.Type, ModeLine(ix)).
				With(seen...).Explaining(diagnosis.Unauthorized).FixedBy(DeleteEntry(ix, entry), CreateEntry(ix, role, entryType(ix, role)))}
		case hasEntry, isMapped(ix, role), len(MapRows(ix, role)) > 0:
			return nil // AUTH-1 and AUTH-3 judge the rows of aws-auth
		}
		f := diagnosis.ReportBroken(subject, diagnosis.Certain,
			"node role %s is not mapped: the cluster has no access entry for it%s", RoleName(role), noRowSuffix(ix)).
			With(ModeLine(ix), fmt.Sprintf("%s: %s", ix.Evidence.Entries.Source, entryList(ix))).With(seen...).
			Explaining(diagnosis.Unauthorized).FixedBy(CreateEntry(ix, role, entryType(ix, role)))
		if isMistakenRole(ix, role) {
			f.Follows = "AUTH-5"
		}
		return []diagnosis.Finding{f}
	})
}

// noRowSuffix returns the part about aws-auth of the message about a role that is not mapped; empty if the cluster does
// not read aws-auth.
func noRowSuffix(ix *index.Index) string {
	if ix.Evidence.Cluster.Value.ReadsAuthMap() {
		return ", and aws-auth has no row for it"
	}
	return ""
}

// entryList returns the role names and types of up to six access entries on one line.
func entryList(ix *index.Index) string {
	var out []string
	for _, e := range ix.Evidence.Entries.Value {
		out = append(out, RoleName(e.Principal)+" ("+e.Type+")")
	}
	if len(out) == 0 {
		return "no entries"
	}
	const shown = 6
	if len(out) > shown {
		out = append(out[:shown], fmt.Sprintf("and %d more", len(out)-shown))
	}
	return strings.Join(out, ", ")
}

// judgeAuthMap checks the row of the node role in aws-auth, if the cluster reads aws-auth. If a row maps the role, or
// if the role has an access entry (which takes precedence), judgeAuthMap checks only for contradicting rows.
func judgeAuthMap(ix *index.Index) []diagnosis.Finding {
	if gap, ok := MappingGap(ix); !ok {
		return []diagnosis.Finding{gap}
	}
	if !ix.Evidence.Cluster.Value.ReadsAuthMap() {
		return nil
	}
	if problem := ix.Evidence.AuthMap.Value.Problem; problem != "" {
		f := diagnosis.ReportBroken("", diagnosis.Certain, "aws-auth cannot be read, so it maps no role: %s", problem).
			With(ix.Evidence.AuthMap.Source, ModeLine(ix)).With(index.Lines(ix.OccurrencesOf("",
			diagnosis.Unauthorized))...).Explaining(diagnosis.Unauthorized).
			FixedBy(rewriteAuthMap(ix)...)
		if ix.Evidence.Cluster.Value.AcceptsEntries() {
			f.Verdict, f.Certainty = diagnosis.Suspicious, diagnosis.Certain // access entries may map all roles
		}
		return []diagnosis.Finding{f}
	}
	return eachRole(ix, func(_ diagnosis.Class, subject, role string) []diagnosis.Finding {
		if _, hasEntry := FindEntry(ix, role); hasEntry && ix.Evidence.Cluster.Value.AcceptsEntries() || isMapped(ix, role) {
			return judgeDuplicates(ix, subject, role)
		}
		seen := index.Lines(ix.OccurrencesOf("", diagnosis.Unauthorized))
		for _, m := range MapRows(ix, role) {
			if problem := rowProblem(m, role); problem != "" {
				return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
					"aws-auth has a row for node role %s that does not authorize nodes: %s", RoleName(role), problem).
					With(ix.Evidence.AuthMap.Source+": rolearn "+
						m.ARN, ModeLine(ix)).With(seen...).Explaining(diagnosis.Unauthorized, diagnosis.OtherName).FixedBy(mapRole(ix, role))}
			}
		}
		if ix.Evidence.Cluster.Value.AcceptsEntries() {
			return nil // AUTH-2 reports a role that has neither an entry nor a row
		}
		f := diagnosis.ReportBroken(subject, diagnosis.Certain,
			"node role %s is not mapped: aws-auth has no row for it, and the cluster reads nothing else", RoleName(role)).
			With(ModeLine(ix), ix.Evidence.AuthMap.Source+": "+
				MapLine(ix)).With(seen...).Explaining(diagnosis.Unauthorized).FixedBy(mapRole(ix, role))
		if isMistakenRole(ix, role) {
			f.Follows = "AUTH-5"
		}
		return []diagnosis.Finding{f}
	})
}

// rewriteAuthMap returns the steps for an aws-auth that cannot be parsed: they save the ConfigMap, and replace its
// mapRoles by rows for the node roles.
func rewriteAuthMap(ix *index.Index) []fix.Step {
	var rows []diagnosis.Mapping
	hasRow := map[string]bool{} // by role
	for _, c := range ix.Evidence.Classes.Value {
		if role := nodeRole(ix, c); role != "" && !hasRow[role] {
			hasRow[role] = true
			rows = append(rows, nodeRow(ix, role))
		}
	}
	if len(rows) == 0 {
		return []fix.Step{fix.Edit(fix.AuthMap()).With("correct mapRoles: a list of rolearn, username and groups")}
	}
	return []fix.Step{fix.Save(fix.AuthMap(), "aws-auth-before.yaml").With("correct its other rows, and add them again"),
		SetMapRoles(mapRolesText(rows...))}
}

// MapLine returns the first six roles in aws-auth as a line of evidence.
func MapLine(ix *index.Index) string {
	var out []string
	for _, m := range ix.Evidence.AuthMap.Value.Roles {
		out = append(out, RoleName(m.ARN))
	}
	if len(out) == 0 {
		return "no roles"
	}
	return "maps " + strings.Join(out[:min(len(out), 6)], ", ")
}

// judgeDuplicates reports a role with several rows in aws-auth if at least one of them does not authorize nodes. The
// authenticator uses only the last row.
func judgeDuplicates(ix *index.Index, subject, role string) []diagnosis.Finding {
	rows := MapRows(ix, role)
	if len(rows) < 2 || slices.IndexFunc(rows, func(m diagnosis.Mapping) bool { return rowProblem(m, role) != "" }) < 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportSuspicious(subject, diagnosis.Likely,
		"aws-auth has %d rows for node role %s that contradict each other", len(rows), RoleName(role)).
		With(ix.Evidence.AuthMap.Source).FixedBy(SetMapRoles(WithRow(ix, nodeRow(ix, role))))}
}

// judgeStaleEntry reports access entries that are older than their role. An entry refers to the role's unique ID, and a
// recreated role has another ID.
func judgeStaleEntry(ix *index.Index) []diagnosis.Finding {
	if gap, ok := MappingGap(ix); !ok {
		return []diagnosis.Finding{gap}
	}
	return eachRole(ix, func(_ diagnosis.Class, subject, role string) []diagnosis.Finding {
		entry, hasEntry := FindEntry(ix, role)
		r := ix.Evidence.Roles[RoleName(role)]
		if !hasEntry || !ix.Evidence.Cluster.Value.AcceptsEntries() || entry.Created.IsZero() {
			return nil
		}
		if gap, ok := r.Gap("role " + RoleName(role)); ok {
			gap.Subject = subject
			return []diagnosis.Finding{gap}
		}
		if r.Value.Created.IsZero() || !r.Value.Created.After(entry.Created) {
			return nil
		}
		return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Likely,
			"the access entry of node role %s is older than the role: the entry belongs to a deleted role of the same name, so the current role is not authorized", RoleName(role)).
			With("entry created "+diagnosis.Stamp(entry.Created)+", role created "+
				diagnosis.Stamp(r.Value.Created)).With(index.Lines(ix.OccurrencesOf("", diagnosis.Unauthorized))...).
			Explaining(diagnosis.Unauthorized).FixedBy(DeleteEntry(ix, entry), CreateEntry(ix, role, entryType(ix, role)))}
	})
}

// mappedPodRole returns the ARN of a role that is mapped as a node role although it is for pods: the controller's role,
// or a role that only pods can assume.
func mappedPodRole(ix *index.Index) (role string, ok bool) {
	var candidates []string
	for _, m := range ix.Evidence.AuthMap.Value.Roles {
		if slices.Contains(m.Groups, "system:nodes") && ix.Evidence.Cluster.Value.ReadsAuthMap() {
			candidates = append(candidates, m.ARN)
		}
	}
	for _, e := range ix.Evidence.Entries.Value {
		if isNodeEntry(e) && ix.Evidence.Cluster.Value.AcceptsEntries() {
			candidates = append(candidates, e.Principal)
		}
	}
	i := slices.IndexFunc(candidates, func(arn string) bool { return isControllerOrPodRole(ix, arn) })
	if i < 0 {
		return "", false
	}
	return candidates[i], true
}

func isControllerOrPodRole(ix *index.Index, role string) bool {
	controller := ix.Evidence.Controller.Value.Role
	return controller != "" && WithoutPath(role) == WithoutPath(controller) || isPodRole(ix, role)
}

// isMistakenRole reports whether AUTH-5 (judgeMistakenRole) explains why the role is not mapped.
func isMistakenRole(ix *index.Index, role string) bool {
	_, isMistaken := mappedPodRole(ix)
	return isMistaken || isControllerOrPodRole(ix, role)
}

// isPodRole reports whether the role's trust policy trusts pods and not EC2. It is false if the policy was not read.
func isPodRole(ix *index.Index, role string) bool {
	r := ix.Evidence.Roles[RoleName(role)]
	if !r.Known() || len(r.Value.Trusts) == 0 || trustsEC2(r.Value) {
		return false
	}
	return slices.ContainsFunc(r.Value.Trusts, func(t string) bool {
		return t == "pods.eks.amazonaws.com" || strings.Contains(t, ":oidc-provider/")
	})
}

func trustsEC2(r diagnosis.Role) bool {
	return slices.Contains(r.Trusts, "ec2.amazonaws.com") || slices.Contains(r.Trusts, "ec2.amazonaws.com.cn") ||
		slices.Contains(r.Trusts, "*")
}

// judgeMistakenRole reports that a role of pods, such as the controller's, is used in place of the node role, in the
// mapping or in the EC2NodeClass.
func judgeMistakenRole(ix *index.Index) []diagnosis.Finding {
	if gap, ok := MappingGap(ix); !ok {
		return []diagnosis.Finding{gap}
	}
	return eachRole(ix, func(c diagnosis.Class, subject, role string) []diagnosis.Finding {
		controller := ix.Evidence.Controller.Value.Role
		if isControllerOrPodRole(ix, role) {
			return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
				"%s is the role of the controller's pods, and EC2NodeClass %s gives it to instances", RoleName(role), c.Name).
				With(roleLine(ix, role)).With(index.Lines(ix.OccurrencesOf(c.Name, diagnosis.NoCredentials,
				diagnosis.Unauthorized))...).Explaining(diagnosis.NoCredentials, diagnosis.Unauthorized).
				FixedBy(giveRole(ix, c))}
		}
		podRole, ok := mappedPodRole(ix)
		if !ok || isMapped(ix, role) {
			return nil
		}
		kind := "the controller's own"
		if controller == "" || WithoutPath(controller) != WithoutPath(podRole) {
			kind = "a role that only pods can assume, like the controller's"
		}
		return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
			"node role %s is not mapped; the role that is mapped, %s, is %s", RoleName(role), RoleName(podRole), kind).
			With(ModeLine(ix), roleLine(ix,
				podRole)).With(index.Lines(ix.OccurrencesOf("",
			diagnosis.Unauthorized))...).Explaining(diagnosis.Unauthorized).FixedBy(mapRole(ix, role))}
	})
}

// roleLine returns a line of evidence that shows who uses a role: the controller's service account, or else the
// principals in the role's trust policy. It is empty if neither is known.
func roleLine(ix *index.Index, role string) string {
	if c := ix.Evidence.Controller.Value; c.Role != "" && WithoutPath(c.Role) == WithoutPath(role) {
		return fmt.Sprintf("%s: service account %s/%s has role %s (%s)", ix.Evidence.Controller.Source, c.Namespace,
			c.ServiceAccount, RoleName(role), c.RoleSource)
	}
	if r := ix.Evidence.Roles[RoleName(role)]; r.Known() {
		return r.Source + ": trusts " + strings.Join(r.Value.Trusts, ", ")
	}
	return ""
}
