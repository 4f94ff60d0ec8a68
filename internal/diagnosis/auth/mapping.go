package auth

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// nodeUser is the user name that a node role must be mapped to, in aws-auth and in access entries.
const nodeUser = "system:node:{{EC2PrivateDNSName}}"

// nodeGroups returns the groups that a node role must be mapped to in aws-auth.
func nodeGroups() []string { return []string{"system:bootstrappers", "system:nodes"} }

// WithoutPath returns a role's ARN without the role's path, in the form in which the authenticator sees the caller.
func WithoutPath(arn string) string {
	head, name, ok := strings.Cut(arn, ":role/")
	if !ok {
		return arn
	}
	return head + ":role/" + name[strings.LastIndexByte(name, '/')+1:]
}

// RoleName returns the name in a role's ARN, without the path.
func RoleName(arn string) string {
	_, name, ok := strings.Cut(arn, ":role/")
	if !ok {
		name = arn
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// nodeRole returns the ARN of spec.role, or else of the role in the instance profile; empty if it is not known.
func nodeRole(ix *index.Index, c diagnosis.Class) string {
	if p, ok := ix.Evidence.Profiles[c.Profile]; c.Profile != "" && ok && p.Known() && p.Value.Role != "" && c.Role == "" {
		return p.Value.Role
	}
	if c.Role == "" {
		return ""
	}
	if strings.HasPrefix(c.Role, "arn:") {
		return c.Role
	}
	if r, ok := ix.Evidence.Roles[RoleName(c.Role)]; ok && r.Known() {
		return r.Value.ARN
	}
	if ix.Evidence.Account == "" {
		return ""
	}
	return "arn:" + ix.Evidence.Cluster.Value.Partition() + ":iam::" + ix.Evidence.Account + ":role/" + strings.TrimPrefix(c.Role, "/")
}

// FindEntry returns the access entry of a role, or an entry whose ARN differs only in the path; false if there is none.
func FindEntry(ix *index.Index, role string) (diagnosis.Entry, bool) {
	i := slices.IndexFunc(ix.Evidence.Entries.Value, func(e diagnosis.Entry) bool {
		return e.Principal == role || WithoutPath(e.Principal) == WithoutPath(role) && e.Principal != ""
	})
	if i < 0 {
		return diagnosis.Entry{}, false
	}
	return ix.Evidence.Entries.Value[i], true
}

// MapRows returns the rows of aws-auth whose ARN has the name of the role. Path and account may differ.
func MapRows(ix *index.Index, role string) []diagnosis.Mapping {
	var out []diagnosis.Mapping
	for _, m := range ix.Evidence.AuthMap.Value.Roles {
		if RoleName(m.ARN) == RoleName(role) {
			out = append(out, m)
		}
	}
	return out
}

// The types of access entries for nodes that Joiner launches. Entries for other nodes have the type EC2 (EKS Auto Mode)
// or HYBRID_LINUX (nodes outside AWS).
const (
	entryLinux   = "EC2_LINUX"
	entryWindows = "EC2_WINDOWS"
)

// entryType returns the type of access entry that a role needs: entryWindows if a Windows EC2NodeClass uses the role.
func entryType(ix *index.Index, role string) fix.Value {
	isForWindows := func(c diagnosis.Class) bool {
		return nodeRole(ix, c) == role && strings.HasPrefix(c.Family, "Windows")
	}
	if slices.ContainsFunc(ix.Evidence.Classes.Value, isForWindows) {
		return fix.Text(entryWindows)
	}
	return fix.Text(entryLinux)
}

func isNodeEntry(e diagnosis.Entry) bool {
	return e.Type == entryLinux || e.Type == entryWindows
}

// rowProblem describes why a row of aws-auth does not authorize nodes with the role; empty if it authorizes them.
func rowProblem(m diagnosis.Mapping, role string) string {
	switch {
	case m.ARN != WithoutPath(role) && WithoutPath(m.ARN) == WithoutPath(role):
		return fmt.Sprintf("its rolearn %s has the role's path, which the authenticator does not see: write %s", m.ARN, WithoutPath(role))
	case m.ARN != WithoutPath(role):
		return fmt.Sprintf("its rolearn is %s, of another account or partition than %s", m.ARN, WithoutPath(role))
	case !slices.Contains(m.Groups, "system:nodes"):
		return "its groups lack system:nodes"
	case !slices.Contains(m.Groups, "system:bootstrappers"):
		return "its groups lack system:bootstrappers"
	case !strings.HasPrefix(m.Username, "system:node:{{") || !strings.HasSuffix(m.Username, "}}"):
		return fmt.Sprintf("its username is %q, and must be %q", m.Username, nodeUser)
	case m.Username != nodeUser && m.Username != "system:node:{{SessionName}}":
		return fmt.Sprintf("its username is %q, which the authenticator does not fill in: it must be %q", m.Username, nodeUser)
	}
	return ""
}

// isMapped reports whether the mappings that the cluster reads authorize nodes with the role. An access entry takes
// precedence over aws-auth.
func isMapped(ix *index.Index, role string) bool {
	if e, ok := FindEntry(ix, role); ok && ix.Evidence.Cluster.Value.AcceptsEntries() {
		return isNodeEntry(e)
	}
	return ix.Evidence.Cluster.Value.ReadsAuthMap() &&
		slices.ContainsFunc(MapRows(ix, role), func(m diagnosis.Mapping) bool { return rowProblem(m, role) == "" })
}

// mapRole is the step that maps a role: with an access entry if the cluster reads entries, otherwise with a row in
// aws-auth.
func mapRole(ix *index.Index, role string) fix.Step {
	if ix.Evidence.Cluster.Value.AcceptsEntries() {
		return CreateEntry(ix, role, entryType(ix, role))
	}
	return SetMapRoles(WithRow(ix, nodeRow(ix, role)))
}

// CreateEntry is the step that creates an access entry for the role. kind is the type of the entry.
func CreateEntry(ix *index.Index, role string, kind fix.Value) fix.Step {
	return fix.Call("eks", "create-access-entry", ix.ClusterParam(), ix.RegionParam(),
		fix.P("--principal-arn", fix.RoleARN(role)), fix.P("--type", kind))
}

// DeleteEntry is the step that deletes an access entry if its type and creation time are still those in the evidence.
func DeleteEntry(ix *index.Index, e diagnosis.Entry) fix.Step {
	return fix.Call("eks", "delete-access-entry", ix.ClusterParam(), ix.RegionParam(),
		fix.P("--principal-arn", fix.RoleARN(e.Principal))).Expecting(e.Type, e.Created)
}

// WithRow returns the text of mapRoles in which the row replaces all rows of the same role. Other rows, their order and
// comments are unchanged if editMapRoles can edit the text. WithRow returns the first invalid value of the row, if any:
// a step with the value becomes advice.
func WithRow(ix *index.Index, row diagnosis.Mapping) fix.Value {
	if bad := invalidValues(row); len(bad) > 0 {
		return bad[0]
	}
	if text, ok := editMapRoles(ix.Evidence.AuthMap.Value.Raw, row); ok {
		return fix.FieldText(text)
	}
	var rows []diagnosis.Mapping
	for _, m := range ix.Evidence.AuthMap.Value.Roles {
		if RoleName(m.ARN) != RoleName(row.ARN) {
			rows = append(rows, m)
		}
	}
	return mapRolesText(append(rows, row)...)
}

// mapRolesText returns rows as the text of mapRoles, or their first invalid value.
func mapRolesText(rows ...diagnosis.Mapping) fix.Value {
	var b strings.Builder
	for _, m := range rows {
		if bad := invalidValues(m); len(bad) > 0 {
			return bad[0]
		}
		writeRow(m, &b)
	}
	return fix.FieldText(b.String())
}

func invalidValues(m diagnosis.Mapping) []fix.Value {
	all := []fix.Value{fix.RoleARN(m.ARN), fix.Username(m.Username)}
	for _, g := range m.Groups {
		all = append(all, fix.Username(g))
	}
	return slices.DeleteFunc(all, fix.Value.IsValid)
}

func nodeRow(ix *index.Index, role string) diagnosis.Mapping {
	out := diagnosis.Mapping{ARN: WithoutPath(role), Username: nodeUser, Groups: nodeGroups()}
	if entryType(ix, role).String() == entryWindows {
		out.Groups = append(out.Groups, "eks:kube-proxy-windows")
	}
	return out
}

// plainScalar matches texts that YAML reads unchanged without quotes.
var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./:-]*[A-Za-z0-9]$`)

// writeRow writes the row as YAML to b. JSON strings are also YAML strings.
func writeRow(m diagnosis.Mapping, b *strings.Builder) {
	scalar := func(s string) string {
		isReserved := slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null"}, strings.ToLower(s))
		if plainScalar.MatchString(s) && !isReserved {
			return s
		}
		text, err := json.Marshal(s)
		if err != nil {
			return "\"\"" // json.Marshal does not fail for a string
		}
		return string(text)
	}
	fmt.Fprintf(b, "- rolearn: %s\n  username: %s\n  groups:\n", scalar(m.ARN), scalar(m.Username))
	for _, g := range m.Groups {
		fmt.Fprintf(b, "  - %s\n", scalar(g))
	}
}

// SetMapRoles is the step that sets mapRoles in aws-auth to a text.
func SetMapRoles(text fix.Value) fix.Step {
	return fix.Merge(fix.AuthMap(), fix.At(text, "data", "mapRoles"))
}
