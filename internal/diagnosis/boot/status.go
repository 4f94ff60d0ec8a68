package boot

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// judgeStatus reports instances that fail EC2's status checks and have no ready node.
func judgeStatus(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Impaired.Gap("EC2's status checks"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Claims.Gap("the NodeClaims"); ok { // they show which instances belong to this cluster
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, id := range slices.Sorted(maps.Keys(ix.Evidence.Impaired.Value)) {
		at := slices.IndexFunc(ix.Evidence.Instances.Value, func(i diagnosis.Instance) bool { return i.ID == id })
		if at < 0 || !ix.Evidence.Instances.Value[at].Runs() || ix.IsForeign(ix.Evidence.Instances.Value[at]) {
			continue
		}
		i := ix.Evidence.Instances.Value[at]
		if node, isNode := ix.NodeByInstance[id]; isNode && node.Ready {
			continue // node repair, if enabled, handles nodes that have joined
		}
		cause := "its operating system does not answer"
		if ix.Evidence.Impaired.Value[id] == "system" {
			cause = "its host is broken"
		}
		out = append(out, diagnosis.ReportBroken("instance "+id, diagnosis.Certain,
			"instance %s fails EC2's status checks: %s", id, cause).With(ix.Evidence.Impaired.Source).FixedBy(replaceInstance(ix, i)))
	}
	return out
}

// replaceInstance is the step that replaces an instance that has not joined. It uses the NodeClaim with the instance's
// provider ID and not the instance's tags, because anyone who may tag instances can forge tags.
func replaceInstance(ix *index.Index, i diagnosis.Instance) fix.Step {
	at := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.IsOf(i) })
	switch {
	case at >= 0:
		return fix.DeleteClaims(fix.Claim{
			Name:     ix.Evidence.Claims.Value[at].Name,
			Instance: i.ID,
		}).With("another instance is launched in its place")
	case !ix.Evidence.Claims.Known():
		return fix.Kubectl(fix.Text("get"), fix.Text("nodeclaims"), fix.Text("-o"),
			fix.Text("wide")).With("delete the NodeClaim whose provider ID ends in %s", i.ID)
	}
	return fix.Call("ec2", "terminate-instances", ix.RegionParam(),
		fix.P("--instance-ids", fix.Instance(i.ID))).With("if it is not needed; no NodeClaim has its provider ID")
}

// judgeMetadata reports classes that disable the instance metadata service, from which an instance reads its user data.
func judgeMetadata(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		if !c.NoMetadata {
			continue
		}
		out = append(out, diagnosis.ReportBroken("EC2NodeClass "+c.Name, diagnosis.Certain, "its instances cannot read their metadata, and so have no user data, no name and no credentials: the endpoint is switched off").
			With(ix.Evidence.Classes.Source+
				": spec.metadataOptions.httpEndpoint: disabled").With(index.Lines(ix.OccurrencesOf(c.Name, diagnosis.NoMetadata))...).
			Explaining(diagnosis.NoMetadata, diagnosis.NoCredentials, diagnosis.NodeadmFailed, diagnosis.ScriptFailed).
			FixedBy(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Text("enabled"), "spec", "metadataOptions", "httpEndpoint"))))
	}
	return out
}
