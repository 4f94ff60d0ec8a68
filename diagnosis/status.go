package diagnosis

import (
	"fmt"
	"maps"
	"slices"
)

// judgeStatus: an instance whose status checks fail will say no more.
func judgeStatus(d *desk) []Finding {
	if gap, ok := d.Impaired.gap("EC2's status checks"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, id := range slices.Sorted(maps.Keys(d.Impaired.Value)) {
		at := slices.IndexFunc(d.Instances.Value, func(i Instance) bool { return i.ID == id })
		if at < 0 || !d.Instances.Value[at].runs() {
			continue
		}
		i := d.Instances.Value[at]
		if node, isNode := d.joined[id]; isNode && node.Ready {
			continue // what is wrong with nodes that have joined is repaired, if that is wanted
		}
		cause, fix := "its operating system does not answer", "kubectl delete nodeclaim "+i.Claim+"   # another one is bought in its place"
		if d.Impaired.Value[id] == "system" {
			cause = "its host is broken"
		}
		if i.Claim == "" {
			fix = fmt.Sprintf("aws ec2 terminate-instances --region %s --instance-ids %s", d.Region, id)
		}
		out = append(out, broken("instance "+id, Certain, "instance %s fails EC2's status checks: %s", id, cause).with(d.Impaired.Source).mend(fix))
	}
	return out
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
			mend(fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"metadataOptions":{"httpEndpoint":"enabled"}}}'`, c.Name)))
	}
	return out
}
