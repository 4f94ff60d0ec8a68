package diagnosis

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func identityChecks() []Check {
	return []Check{
		{ID: "ID-1", Title: "the cluster name is this cluster's", Layer: LayerController, judge: judgeHome},
		{ID: "ID-3", Title: "no other cluster goes by this name", Layer: LayerFleet, judge: judgeNamesake},
		{ID: "ID-4", Title: "every instance belongs to a NodeClaim", Layer: LayerFleet, judge: judgeOrphans},
		{ID: "ID-7", Title: "only the controller terminates instances", Layer: LayerFleet, judge: judgeForeignEnd},
		{ID: "ID-8", Title: "security groups of instances are those of their class", Layer: LayerFleet, judge: judgeGroupDrift},
		{ID: "ID-9", Title: "networks belong to this cluster", Layer: LayerFleet, judge: judgeNetworksOwner},
	}
}

// judgeHome: the cluster that EKS describes under the name is the one that Kubernetes answered for.
func judgeHome(d *desk) []Finding {
	if d.Cluster.Is(Missing) && d.Home.Known() {
		return []Finding{broken("", Certain, "there is no EKS cluster named %s in %s", d.Name, d.Region).with(d.Cluster.Source).
			mend(fix.Call("eks", "list-clusters", d.inRegion()).With("then set the cluster's name (settings.clusterName, CLUSTER_NAME) to this one's"))}
	}
	if gap, ok := d.Cluster.gap("the EKS cluster " + d.Name); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Home.gap("the cluster's own certificate authority and issuer"); ok {
		return []Finding{gap}
	}
	c, h := d.Cluster.Value, d.Home.Value
	var differ []string
	if c.Issuer != "" && h.Issuer != "" && strings.TrimSuffix(c.Issuer, "/") != strings.TrimSuffix(h.Issuer, "/") {
		differ = append(differ, "issuer: EKS has "+c.Issuer+", the cluster "+h.Issuer)
	}
	if c.CA != "" && h.CA != "" && !sameAuthority(c.CA, h.CA) {
		differ = append(differ, "certificate authority: not the same")
	}
	if len(differ) == 0 {
		return nil
	}
	return []Finding{broken("", Certain, "the EKS cluster named %s is not the cluster that Kubernetes answered for: the cluster's name is set wrong, or the kubeconfig is another's", d.Name).
		with(differ...).with(d.Cluster.Source, d.Home.Source).explaining(Unauthorized, Untrusted).
		mend(fix.Call("eks", "list-clusters", d.inRegion()).With("the one whose endpoint is %s: set settings.clusterName (CLUSTER_NAME) to it", h.Endpoint))}
}

// sameAuthority compares base64-encoded PEM with PEM, by their certificates.
func sameAuthority(encoded, text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		decoded = []byte(encoded)
	}
	a, b := certificates(decoded), certificates([]byte(text))
	if len(a) == 0 || len(b) == 0 {
		return strings.TrimSpace(string(decoded)) == strings.TrimSpace(text)
	}
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

func certificates(text []byte) []string {
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

// judgeNamesake: instances that carry our name and another UID are another cluster's.
func judgeNamesake(d *desk) []Finding {
	if gap, ok := d.Instances.gap("the instances"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Home.gap("this cluster's UID"); ok {
		return []Finding{gap}
	}
	others := map[string][]string{}
	for _, i := range d.Instances.Value {
		if i.UID != "" && i.UID != d.Home.Value.UID && i.runs() {
			others[i.UID] = append(others[i.UID], i.ID)
		}
	}
	var out []Finding
	for _, uid := range slices.Sorted(maps.Keys(others)) {
		out = append(out, suspicious("", Certain, "another cluster goes by the name %s in this account and region: the one with uid %s has %d instance%s here", d.Name, uid, len(others[uid]), plural(others[uid], "s")).
			with(d.Instances.Source+": "+strings.Join(others[uid][:min(3, len(others[uid]))], ", "), "this cluster's uid is "+d.Home.Value.UID).
			mend(fix.Call("ec2", "create-tags", d.inRegion(), fix.P("--resources", instances(others[uid])...),
				fix.P("--tags", fix.Join(fix.Text("Key=eks:eks-cluster-name,Value="), fix.ClusterName(otherName(d.Name, uid))))).
				With("use the other cluster's own name, also in settings.clusterName of its controller")))
	}
	return out
}

// otherName is a placeholder for the other cluster's name, which is not known.
func otherName(name, uid string) string { return name + "-" + uid[:min(8, len(uid))] }

// judgeOrphans: instances without UID and without a claim are nobody's that is known.
func judgeOrphans(d *desk) []Finding {
	if gap, ok := d.Instances.gap("the instances"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Claims.gap("the NodeClaims"); ok {
		return []Finding{gap}
	}
	var ids []string
	for _, i := range d.Instances.Value {
		_, isNode := d.joined[i.ID]
		isNew := !i.Launched.IsZero() && d.At.Sub(i.Launched) < Unclaimed
		if i.runs() && i.UID == "" && !isNode && i.Claim == "" && !isNew {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	carry, alone := fmt.Sprintf("%d instances carry", len(ids)), "them: they are left alone, and cost money"
	if len(ids) == 1 {
		carry, alone = "an instance carries", "it: it is left alone, and costs money"
	}
	return []Finding{suspicious("", Likely, "%s the name %s, and no NodeClaim or Node here is of %s", carry, d.Name, alone).
		with(strings.Join(ids[:min(5, len(ids))], ", ")).
		mend(fix.Call("ec2", "terminate-instances", d.inRegion(), fix.P("--instance-ids", instances(ids)...)).With("if they are not needed"))}
}

// instances returns instance IDs as values of a command.
func instances(ids []string) []fix.Value {
	out := make([]fix.Value, len(ids))
	for i, id := range ids {
		out[i] = fix.Instance(id)
	}
	return out
}

// Unclaimed is how long after its launch an instance may be missing from the status of its NodeClaim.
const Unclaimed = 20 * time.Second

// judgeForeignEnd: an instance that a person or another program terminated while its claim still wants it.
func judgeForeignEnd(d *desk) []Finding {
	if gap, ok := d.Instances.gap("the instances"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, i := range d.Instances.Value {
		k := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return strings.HasSuffix(c.ProviderID, "/"+i.ID) })
		if i.runs() || k < 0 || d.Claims.Value[k].Deleting || !strings.Contains(i.StateReason, "User initiated") {
			continue
		}
		out = append(out, suspicious("NodeClaim "+d.Claims.Value[k].Name, Likely, "instance %s was terminated from outside: not by this controller, whose NodeClaim still wants it", i.ID).
			with(d.Instances.Source+": "+i.StateReason).
			mend(fix.Call("cloudtrail", "lookup-events", d.inRegion(),
				fix.P("--lookup-attributes", fix.Join(fix.Text("AttributeKey=ResourceName,AttributeValue="), fix.Instance(i.ID)))).With("who called TerminateInstances")))
	}
	return out
}

// judgeGroupDrift tells groups that somebody added from groups that are missing.
func judgeGroupDrift(d *desk) []Finding {
	if gap, ok := d.Instances.gap("the instances"); ok {
		return []Finding{gap}
	}
	var out []Finding
	told := map[string]bool{}
	for _, i := range d.Instances.Value {
		c, ok := d.class(i.Class)
		if !ok || !i.runs() || len(c.Groups) == 0 || len(i.Groups) == 0 || i.UID != "" && d.Home.Known() && i.UID != d.Home.Value.UID {
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
		if len(extra) == 0 || lacks || told[key] {
			continue // groups that are missing are drift that a change of the class explains
		}
		told[key] = true
		out = append(out, suspicious("EC2NodeClass "+c.Name, Possible, "instances of EC2NodeClass %[2]s have the security group %[1]s, which it does not select now: somebody added it, or it was selected before; they count as drifted and will be replaced", strings.Join(extra, ", "), c.Name).
			with(d.Instances.Source+": "+i.ID+" has "+strings.Join(i.Groups, ", ")).
			mend(c.withGroups(append(slices.Clone(c.Groups), extra...)).With("or keep the program that adds it from these instances")))
	}
	return out
}

// judgeNetworksOwner: subnets and groups that the tags of another cluster claim.
func judgeNetworksOwner(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		for _, g := range d.groups(c.Groups) {
			if other := d.otherOwner(g.Tags); other != "" {
				out = append(out, suspicious(subject, Likely, "its security group %s belongs to cluster %s, by its tags", g.ID, other).with(d.Groups.Source).
					mend(d.ownGroups(c).With("narrow it to this cluster's groups")))
			}
		}
		for _, id := range c.Subnets {
			i := slices.IndexFunc(d.Subnets.Value, func(s Subnet) bool { return s.ID == id })
			if i < 0 && d.Subnets.Known() && d.Cluster.Known() {
				out = append(out, broken(subject, Likely, "its subnet %s is not in the cluster's VPC %s", id, d.Cluster.Value.VPC).with(d.Subnets.Source).
					explaining(TimedOut, NoSuchHost).mend(d.subnetsOfVPC(c)))
			}
		}
	}
	return out
}

// otherOwner returns the cluster that tags say something belongs to alone, if it is not ours.
func (d *desk) otherOwner(tags map[string]string) string {
	if name := tags["aws:eks:cluster-name"]; name != "" && name != d.Name {
		return name
	}
	other := ""
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		name, ok := strings.CutPrefix(key, "kubernetes.io/cluster/")
		if ok && name == d.Name {
			return ""
		}
		if ok && tags[key] == "owned" {
			other = name
		}
	}
	return other
}
