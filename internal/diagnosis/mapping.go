package diagnosis

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// nodeUser is the user name that a node role must be mapped to, in aws-auth and in access entries.
const nodeUser = "system:node:{{EC2PrivateDNSName}}"

// nodeGroups returns the groups that a node role must be mapped to in aws-auth.
func nodeGroups() []string { return []string{"system:bootstrappers", "system:nodes"} }

// bare returns a role's ARN without its path, as the authenticator sees the caller.
func bare(arn string) string {
	head, name, ok := strings.Cut(arn, ":role/")
	if !ok {
		return arn
	}
	return head + ":role/" + name[strings.LastIndexByte(name, '/')+1:]
}

// roleName returns the name in a role's ARN, without its path.
func roleName(arn string) string {
	_, name, ok := strings.Cut(arn, ":role/")
	if !ok {
		name = arn
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// nodeRole is the ARN of the role that instances of a class take, and where that is from; empty if it is not known.
func (d *desk) nodeRole(c Class) (arn, source string) {
	if p, ok := d.Profiles[c.Profile]; c.Profile != "" && ok && p.Known() && p.Value.Role != "" && c.Role == "" {
		return p.Value.Role, p.Source
	}
	if c.Role == "" {
		return "", ""
	}
	if strings.HasPrefix(c.Role, "arn:") {
		return c.Role, "spec.role of EC2NodeClass " + c.Name
	}
	if r, ok := d.Roles[roleName(c.Role)]; ok && r.Known() {
		return r.Value.ARN, "spec.role of EC2NodeClass " + c.Name
	}
	if d.Account == "" {
		return "", ""
	}
	return "arn:" + d.Cluster.Value.partition() + ":iam::" + d.Account + ":role/" + strings.TrimPrefix(c.Role, "/"), "spec.role of EC2NodeClass " + c.Name
}

// entry returns the access entry of a role.
func (d *desk) entry(role string) (Entry, bool) {
	i := slices.IndexFunc(d.Entries.Value, func(e Entry) bool { return e.Principal == role || bare(e.Principal) == bare(role) && e.Principal != "" })
	if i < 0 {
		return Entry{}, false
	}
	return d.Entries.Value[i], true
}

// rows are the rows of aws-auth that are about a role, rightly or nearly.
func (d *desk) rows(role string) []Mapping {
	var out []Mapping
	for _, m := range d.AuthMap.Value.Roles {
		if roleName(m.ARN) == roleName(role) {
			out = append(out, m)
		}
	}
	return out
}

// The types of access entries for nodes of this controller. EC2 is for Auto Mode, HYBRID_LINUX for hybrid nodes outside AWS.
const (
	entryLinux   = "EC2_LINUX"
	entryWindows = "EC2_WINDOWS"
)

// entryFor is the type of access entry that a role needs: by the EC2NodeClasses that give it to instances.
func (d *desk) entryFor(role string) fix.Value {
	windows := func(c Class) bool {
		arn, _ := d.nodeRole(c)
		return arn == role && strings.HasPrefix(c.Family, "Windows")
	}
	if slices.ContainsFunc(d.Classes.Value, windows) {
		return fix.Text(entryWindows)
	}
	return fix.Text(entryLinux)
}

// isNodes reports whether an access entry authorizes nodes.
func (e Entry) isNodes() bool {
	return e.Type == entryLinux || e.Type == entryWindows
}

// fault describes why a row of aws-auth does not authorize nodes with the role; empty if it does.
func (m Mapping) fault(role string) string {
	switch {
	case m.ARN != bare(role) && bare(m.ARN) == bare(role):
		return fmt.Sprintf("its rolearn %s has the role's path, which the authenticator does not see: write %s", m.ARN, bare(role))
	case m.ARN != bare(role):
		return fmt.Sprintf("its rolearn is %s, of another account or partition than %s", m.ARN, bare(role))
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

// mapped reports whether nodes with the role are let in, by what the cluster reads.
func (d *desk) mapped(role string) bool {
	if e, ok := d.entry(role); ok && d.Cluster.Value.api() {
		return e.isNodes()
	}
	return d.Cluster.Value.configMap() &&
		slices.ContainsFunc(d.rows(role), func(m Mapping) bool { return m.fault(role) == "" })
}

// mapRole is the step that lets a role in as the cluster reads mappings.
func (d *desk) mapRole(role string) fix.Step {
	if d.Cluster.Value.api() {
		return d.createEntry(role, d.entryFor(role))
	}
	return mapRoles(d.withRow(d.nodeRow(role)))
}

func (d *desk) createEntry(role string, kind fix.Value) fix.Step {
	return fix.Call("eks", "create-access-entry", d.ofCluster(), d.inRegion(), fix.P("--principal-arn", fix.RoleARN(role)), fix.P("--type", kind))
}

// deleteEntry is the step that deletes an access entry, as long as it is the one that was seen.
func (d *desk) deleteEntry(e Entry) fix.Step {
	return fix.Call("eks", "delete-access-entry", d.ofCluster(), d.inRegion(), fix.P("--principal-arn", fix.RoleARN(e.Principal))).Expecting(e.Type, e.Created)
}

// withRow is the text of mapRoles with a row in place of those that are about its role, and all else as it is: rows, their order, comments.
func (d *desk) withRow(row Mapping) fix.Value {
	if bad := row.invalid(); len(bad) > 0 {
		return bad[0]
	}
	if text, ok := edited(d.AuthMap.Value.Raw, row); ok {
		return fix.Preserved(text)
	}
	var rows []Mapping
	for _, m := range d.AuthMap.Value.Roles {
		if roleName(m.ARN) != roleName(row.ARN) {
			rows = append(rows, m)
		}
	}
	return written(append(rows, row)...)
}

// written returns rows of aws-auth as the text of mapRoles, or the first invalid value in them.
func written(rows ...Mapping) fix.Value {
	var b strings.Builder
	for _, m := range rows {
		if bad := m.invalid(); len(bad) > 0 {
			return bad[0]
		}
		m.write(&b)
	}
	return fix.Preserved(b.String())
}

// invalid returns the values of a row that do not have the required syntax.
func (m Mapping) invalid() []fix.Value {
	all := []fix.Value{fix.RoleARN(m.ARN), fix.Username(m.Username)}
	for _, g := range m.Groups {
		all = append(all, fix.Username(g))
	}
	return slices.DeleteFunc(all, fix.Value.IsValid)
}

// nodeRow is the row of aws-auth that lets nodes with a role in.
func (d *desk) nodeRow(role string) Mapping {
	out := Mapping{ARN: bare(role), Username: nodeUser, Groups: nodeGroups()}
	if d.entryFor(role).String() == entryWindows {
		out.Groups = append(out.Groups, "eks:kube-proxy-windows")
	}
	return out
}

// plainScalar matches texts that YAML reads as themselves without quotes.
var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./:-]*[A-Za-z0-9]$`)

// write writes the row as YAML. JSON strings are also YAML strings.
func (m Mapping) write(b *strings.Builder) {
	plain := func(s string) string {
		isWord := slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null"}, strings.ToLower(s))
		if plainScalar.MatchString(s) && !isWord {
			return s
		}
		text, err := json.Marshal(s)
		if err != nil {
			return "\"\"" // a string is always JSON
		}
		return string(text)
	}
	fmt.Fprintf(b, "- rolearn: %s\n  username: %s\n  groups:\n", plain(m.ARN), plain(m.Username))
	for _, g := range m.Groups {
		fmt.Fprintf(b, "  - %s\n", plain(g))
	}
}

// mapRoles is the step that sets mapRoles.
func mapRoles(text fix.Value) fix.Step {
	return fix.Merge(fix.AuthMap(), fix.At(text, "data", "mapRoles"))
}
