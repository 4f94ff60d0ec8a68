package diagnosis

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// judgeStatus: an instance whose status checks fail will say no more.
func judgeStatus(d *desk) []Finding {
	if gap, ok := d.Impaired.gap("EC2's status checks"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Claims.gap("the NodeClaims"); ok { // whose instances are ours, they say alone
		return []Finding{gap}
	}
	var out []Finding
	for _, id := range slices.Sorted(maps.Keys(d.Impaired.Value)) {
		at := slices.IndexFunc(d.Instances.Value, func(i Instance) bool { return i.ID == id })
		if at < 0 || !d.Instances.Value[at].runs() || d.isOthers(d.Instances.Value[at]) {
			continue
		}
		i := d.Instances.Value[at]
		if node, isNode := d.joined[id]; isNode && node.Ready {
			continue // node repair handles nodes that have joined, if it is enabled
		}
		cause := "its operating system does not answer"
		if d.Impaired.Value[id] == "system" {
			cause = "its host is broken"
		}
		out = append(out, broken("instance "+id, Certain, "instance %s fails EC2's status checks: %s", id, cause).with(d.Impaired.Source).mend(d.replaced(i)))
	}
	return out
}

// replaced is the step by which another instance takes the place of one that has not joined. Whose it is, its NodeClaim says and not its tags, which
// anybody with rights to tag may write.
func (d *desk) replaced(i Instance) fix.Step {
	at := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return c.of(i) })
	switch {
	case at >= 0:
		return fix.DeleteClaims(fix.Claim{Name: d.Claims.Value[at].Name, Instance: i.ID}).With("another instance is launched in its place")
	case !d.Claims.Known():
		return fix.Kubectl(fix.Text("get"), fix.Text("nodeclaims"), fix.Text("-o"), fix.Text("wide")).With("delete the NodeClaim whose provider ID ends in %s", i.ID)
	}
	return fix.Call("ec2", "terminate-instances", d.inRegion(), fix.P("--instance-ids", fix.Instance(i.ID))).With("if it is not needed; no NodeClaim has its provider ID")
}

// of reports whether the claim's status names the instance.
func (c Claim) of(i Instance) bool {
	return i.ID != "" && c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:] == i.ID
}

// judgeMetadata: an instance reads from its metadata what it is to do.
func judgeMetadata(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		if !c.NoMetadata {
			continue
		}
		out = append(out, broken("EC2NodeClass "+c.Name, Certain, "its instances cannot read their metadata, and so have no user data, no name and no credentials: the endpoint is switched off").
			with(d.Classes.Source+": spec.metadataOptions.httpEndpoint: disabled").with(lines(d.of(c.Name, NoMetadata))...).
			explaining(NoMetadata, NoCredentials, NodeadmFailed, ScriptFailed).
			mend(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Text("enabled"), "spec", "metadataOptions", "httpEndpoint"))))
	}
	return out
}
