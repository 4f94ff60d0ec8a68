// Package identity checks whether the cluster, its instances and its network belong to each other.
//
// In: an index.Index.
// Out: findings of the checks whose IDs begin with ID-.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package identity

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/launch"
	"github.com/joiner-sh/joiner/internal/diagnosis/network"
)

// Checks returns the checks whose IDs begin with ID-.
func Checks() []index.Check {
	return []index.Check{
		{ID: "ID-1", Title: "the configured cluster name is the name of this cluster", Layer: diagnosis.LayerController, Judge: judgeHome},
		{ID: "ID-3", Title: "no other cluster has this name", Layer: diagnosis.LayerFleet, Judge: judgeSameName},
		{ID: "ID-4", Title: "every instance belongs to a NodeClaim", Layer: diagnosis.LayerFleet, Judge: judgeOrphans},
		{ID: "ID-7", Title: "only Joiner terminates its instances", Layer: diagnosis.LayerFleet, Judge: judgeForeignEnd},
		{ID: "ID-8", Title: "instances have the security groups of their EC2NodeClass", Layer: diagnosis.LayerFleet, Judge: judgeGroupDrift},
		{ID: "ID-9", Title: "subnets and security groups belong to this cluster", Layer: diagnosis.LayerFleet, Judge: judgeNetworksOwner},
	}
}

// judgeHome checks that the EKS cluster of the configured name is the cluster whose API server answered.
func judgeHome(ix *index.Index) []diagnosis.Finding {
	if ix.Evidence.Cluster.Is(diagnosis.Missing) && ix.Evidence.Identity.Known() {
		return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain, "there is no EKS cluster named %s in %s",
			ix.Evidence.Name, ix.Evidence.Region).With(ix.Evidence.Cluster.Source).
			FixedBy(fix.Call("eks", "list-clusters",
				ix.RegionParam()).With("then set settings.clusterName (CLUSTER_NAME) to the name of this cluster"))}
	}
	if gap, ok := ix.Evidence.Cluster.Gap("the EKS cluster " + ix.Evidence.Name); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Identity.Gap("the cluster's own certificate authority and issuer"); ok {
		return []diagnosis.Finding{gap}
	}
	c, h := ix.Evidence.Cluster.Value, ix.Evidence.Identity.Value
	var differences []string
	if c.Issuer != "" && h.Issuer != "" && strings.TrimSuffix(c.Issuer, "/") != strings.TrimSuffix(h.Issuer, "/") {
		differences = append(differences, "issuer: EKS has "+c.Issuer+", the cluster "+h.Issuer)
	}
	if c.CA != "" && h.CA != "" && !sameAuthority(c.CA, h.CA) {
		differences = append(differences, "certificate authority: not the same")
	}
	if len(differences) == 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain, "the EKS cluster named %s is not the cluster of the kubeconfig: the cluster's name is set wrong, or the kubeconfig is for another cluster", ix.Evidence.Name).
		With(differences...).With(ix.Evidence.Cluster.Source, ix.Evidence.Identity.Source).
		Explaining(diagnosis.Unauthorized, diagnosis.Untrusted).
		FixedBy(fix.Call("eks", "list-clusters",
			ix.RegionParam()).With("set settings.clusterName (CLUSTER_NAME) to the name of the cluster with endpoint %s", h.Endpoint))}
}

// sameAuthority reports whether encoded (PEM in base64) and text (PEM) have certificates with a common public key. If
// one of them has no certificate, it reports whether their PEM is equal.
func sameAuthority(encoded, text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		decoded = []byte(encoded)
	}
	a, b := publicKeys(decoded), publicKeys([]byte(text))
	if len(a) == 0 || len(b) == 0 {
		return strings.TrimSpace(string(decoded)) == strings.TrimSpace(text)
	}
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}

func publicKeys(text []byte) []string {
	var out []string
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, string(c.RawSubjectPublicKeyInfo))
		}
		text = rest
	}
}

// judgeSameName reports running instances that are tagged with this cluster's name and another cluster's UID.
func judgeSameName(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Instances.Gap("the instances"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Identity.Gap("this cluster's UID"); ok {
		return []diagnosis.Finding{gap}
	}
	others := map[string][]string{} // instance IDs by cluster UID
	for _, i := range ix.Evidence.Instances.Value {
		if i.UID != "" && i.UID != ix.Evidence.Identity.Value.UID && i.Runs() {
			others[i.UID] = append(others[i.UID], i.ID)
		}
	}
	var out []diagnosis.Finding
	for _, uid := range slices.Sorted(maps.Keys(others)) {
		out = append(out, diagnosis.ReportSuspicious("", diagnosis.Certain, "another cluster in this account and region has the name %s: the cluster with uid %s has %d instance%s", ix.Evidence.Name, uid, len(others[uid]), diagnosis.Plural(others[uid], "s")).
			With(ix.Evidence.Instances.Source+": "+
				strings.Join(others[uid][:min(3, len(others[uid]))], ", "), "this cluster's uid is "+ix.Evidence.Identity.Value.UID).
			FixedBy(fix.Call("ec2", "create-tags", ix.RegionParam(), fix.P("--resources", instanceValues(others[uid])...),
				fix.P("--tags", fix.Join(fix.Text("Key=eks:eks-cluster-name,Value="), fix.ClusterName(otherName(ix.Evidence.Name, uid))))).
				With("use the other cluster's own name, also in settings.clusterName of its controller")))
	}
	return out
}

// otherName proposes a name for the other cluster, whose name is not known: this cluster's name and the start of the
// other cluster's UID.
func otherName(name, uid string) string { return name + "-" + uid[:min(8, len(uid))] }

// judgeOrphans reports running instances that have neither a cluster UID nor a NodeClaim nor a Node, and are older than
// MaxClaimDelay.
func judgeOrphans(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Instances.Gap("the instances"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Claims.Gap("the NodeClaims"); ok {
		return []diagnosis.Finding{gap}
	}
	var ids []string
	for _, i := range ix.Evidence.Instances.Value {
		_, isNode := ix.NodeByInstance[i.ID]
		isNew := !i.Launched.IsZero() && ix.Evidence.At.Sub(i.Launched) < diagnosis.MaxClaimDelay
		if i.Runs() && i.UID == "" && !isNode && i.Claim == "" && !isNew {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	beginning, end := fmt.Sprintf("%d instances are", len(ids)), "them: Joiner does not terminate them, and they cost money"
	if len(ids) == 1 {
		beginning, end = "an instance is", "it: Joiner does not terminate it, and it costs money"
	}
	return []diagnosis.Finding{diagnosis.ReportSuspicious("", diagnosis.Likely,
		"%s tagged with the cluster name %s, and no NodeClaim or Node refers to %s", beginning, ix.Evidence.Name, end).
		With(strings.Join(ids[:min(5, len(ids))], ", ")).
		FixedBy(fix.Call("ec2", "terminate-instances", ix.RegionParam(), fix.P("--instance-ids", instanceValues(ids)...)).
			With("if they are not needed"))}
}

func instanceValues(ids []string) []fix.Value {
	out := make([]fix.Value, len(ids))
	for i, id := range ids {
		out[i] = fix.Instance(id)
	}
	return out
}

// judgeForeignEnd reports terminated instances whose NodeClaim is not being deleted: a user or another program has
// terminated them.
func judgeForeignEnd(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Instances.Gap("the instances"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, i := range ix.Evidence.Instances.Value {
		k := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return strings.HasSuffix(c.ProviderID, "/"+i.ID) })
		if i.Runs() || k < 0 || ix.Evidence.Claims.Value[k].Deleting || !strings.Contains(i.StateReason, "User initiated") {
			continue
		}
		out = append(out, diagnosis.ReportSuspicious("NodeClaim "+ix.Evidence.Claims.Value[k].Name, diagnosis.Likely,
			"instance %s was terminated from outside: not by this controller, whose NodeClaim is not being deleted", i.ID).
			With(ix.Evidence.Instances.Source+": "+i.StateReason).
			FixedBy(fix.Call("cloudtrail", "lookup-events", ix.RegionParam(),
				fix.P("--lookup-attributes",
					fix.Join(fix.Text("AttributeKey=ResourceName,AttributeValue="), fix.Instance(i.ID)))).With("who called TerminateInstances")))
	}
	return out
}

// judgeGroupDrift reports instances that have all security groups that their EC2NodeClass selects, and further groups.
func judgeGroupDrift(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Instances.Gap("the instances"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	reported := map[string]bool{}
	for _, i := range ix.Evidence.Instances.Value {
		c, ok := ix.Evidence.Class(i.Class)
		hasOtherUID := i.UID != "" && ix.Evidence.Identity.Known() && i.UID != ix.Evidence.Identity.Value.UID
		if !ok || !i.Runs() || len(c.Groups) == 0 || len(i.Groups) == 0 || hasOtherUID {
			continue
		}
		var extra []string
		for _, g := range i.Groups {
			if !slices.Contains(c.Groups, g) {
				extra = append(extra, g)
			}
		}
		lacks := slices.ContainsFunc(c.Groups, func(g string) bool { return !slices.Contains(i.Groups, g) })
		key := c.Name + strings.Join(extra, ",")
		if len(extra) == 0 || lacks || reported[key] {
			continue // an instance without a selected group has drifted because the class was changed
		}
		reported[key] = true
		out = append(out, diagnosis.ReportSuspicious("EC2NodeClass "+c.Name, diagnosis.Possible, "instances of EC2NodeClass %[2]s have the security group %[1]s, which it does not select now: a user added the group, or the EC2NodeClass selected it before; the instances count as drifted and will be replaced", strings.Join(extra, ", "), c.Name).
			With(ix.Evidence.Instances.Source+": "+i.ID+" has "+strings.Join(i.Groups, ", ")).
			FixedBy(launch.WithGroups(c,
				append(slices.Clone(c.Groups), extra...)).With("or stop the program that adds the group to these instances")))
	}
	return out
}

// judgeNetworksOwner reports classes with security groups that, by their tags, belong to another cluster, and classes
// with subnets outside the cluster's VPC.
func judgeNetworksOwner(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		for _, g := range ix.Groups(c.Groups) {
			if other := ix.OtherOwner(g.Tags); other != "" {
				out = append(out, diagnosis.ReportSuspicious(subject, diagnosis.Likely,
					"its security group %s belongs to cluster %s, by its tags", g.ID, other).With(ix.Evidence.Groups.Source).
					FixedBy(launch.WithoutForeignGroups(ix, c).With("narrow it to this cluster's groups")))
			}
		}
		for _, id := range c.Subnets {
			i := slices.IndexFunc(ix.Evidence.Subnets.Value, func(s diagnosis.Subnet) bool { return s.ID == id })
			if i < 0 && ix.Evidence.Subnets.Known() && ix.Evidence.Cluster.Known() {
				out = append(out, diagnosis.ReportBroken(subject, diagnosis.Likely, "its subnet %s is not in the cluster's VPC %s",
					id, ix.Evidence.Cluster.Value.VPC).With(ix.Evidence.Subnets.Source).
					Explaining(diagnosis.TimedOut, diagnosis.NoSuchHost).FixedBy(network.SubnetsOfVPC(ix, c)))
			}
		}
	}
	return out
}
