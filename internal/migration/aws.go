package migration

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// idOf returns the instance ID in a provider ID: "aws:///us-east-1a/i-0123".
func idOf(providerID string) string { return providerID[strings.LastIndexByte(providerID, '/')+1:] }

// instances checks whether each NodeClaim's instance can be adopted, and finds instances without a NodeClaim. It
// returns nil if EC2 was not queried.
func instances(in Installation) []Finding {
	if in.Instances == nil {
		return nil
	}
	owners := map[string]Owner{}
	for _, i := range in.Instances {
		if !i.Ended {
			owners[i.ID] = i.Owner
		}
	}
	var out []Finding
	var gone, sameName, strangers []string
	untagged := map[string][]string{} // by NodePool
	claimed := map[string]bool{}
	for _, c := range in.Claims {
		id := idOf(c.ProviderID)
		if id == "" {
			continue
		}
		claimed[id] = true
		switch owner, ok := owners[id]; {
		case !ok:
			gone = append(gone, c.Name)
		case owner == Untagged:
			untagged[c.Pool] = append(untagged[c.Pool], id)
		case owner == Stranger:
			strangers = append(strangers, id)
		case owner == SameName:
			sameName = append(sameName, id)
		}
	}
	if n := len(gone); n > 0 {
		out = append(out, differs("NodeClaim "+some(gone), "no instance of the cluster's name belongs to %s: Joiner asks EC2 about each by its id, and deletes the claims of those that are gone", is(n, "it", "them")))
	}
	cluster := fix.ClusterName(in.Cluster).Or("NAME")
	for _, pool := range slices.Sorted(maps.Keys(untagged)) {
		out = append(out, stops("instance "+some(untagged[pool]),
			"the tags of the cluster or of the NodePool are missing, so Joiner would never terminate it").
			run("", fix.Words("aws ec2 create-tags --resources"), each(untagged[pool], fix.Instance), fix.Words("--tags"),
				one(fix.Text("Key=kubernetes.io/cluster/"), cluster, fix.Text(",Value=owned")),
				one(fix.Text("Key=eks:eks-cluster-name,Value="), cluster),
				one(fix.Text("Key=karpenter.sh/nodepool,Value="), fix.Name(pool))))
	}
	describe := fix.Words("aws ec2 describe-instances --instance-ids")
	if len(strangers) > 0 {
		out = append(out, stops("instance "+some(strangers), "it carries the tags of another cluster, a node group or an Auto Scaling group: Joiner never terminates it").
			run("find out why a NodeClaim has it: ", describe, each(strangers, fix.Instance)))
	}
	if len(sameName) > 0 {
		out = append(out, stops("instance "+some(sameName), "it has the UID tag of another cluster with the same name: Joiner never changes it").
			run("find out whose it is: ", describe, each(sameName, fix.Instance)))
	}
	return append(out, in.ownerless(claimed)...)
}

// ownerless finds instances with the cluster's name tag whose IDs are not among those that NodeClaims have.
func (in Installation) ownerless(claimed map[string]bool) []Finding {
	var out []Finding
	var unclaimed, sameName []string
	adopted := 0
	for _, i := range in.Instances {
		switch {
		case i.Ended:
		case claimed[i.ID]:
			if i.Owner == Legacy || i.Owner == OurOwn {
				adopted++
			}
		case i.Owner == Legacy:
			unclaimed = append(unclaimed, i.ID)
		case i.Owner == SameName:
			sameName = append(sameName, i.ID)
		}
	}
	if n := len(unclaimed); n > 0 {
		out = append(out, differs("instance "+some(unclaimed), "%s the cluster's name and no NodeClaim: Karpenter would remove %s, Joiner touches only what a NodeClaim names or itself has launched", is(n, "it has", "they have"), is(n, "it", "them")).
			run("if "+is(n, "it is", "they are")+" not needed: ", fix.Words("aws ec2 terminate-instances --instance-ids"),
				each(slices.Sorted(slices.Values(unclaimed)), fix.Instance)))
	}
	if n := len(sameName); n > 0 {
		out = append(out, differs("instance "+some(sameName), "%s to another cluster with the same name: never changed",
			is(n, "it belongs", "they belong")).
			withFix("give each cluster of an account and region a different name"))
	}
	if adopted > 0 {
		out = append(out, stays("%s in EC2 %s by %s: tags stay as they are", count(adopted, "instance"),
			is(adopted, "is adopted", "are adopted"), is(adopted, "its NodeClaim", "their NodeClaims")))
	}
	return out
}

// permissions checks which permissions the controller's role lacks. It returns nil if they were not checked.
func permissions(in Installation) []Finding {
	if len(in.Permissions) == 0 {
		return nil
	}
	type source struct{ policy, statement string }                    // of Joiner's own policies
	missing, optional := map[source][]string{}, map[source][]string{} // actions that the role does not allow
	for _, p := range in.Permissions {
		at := source{p.Policy, p.Statement}
		switch {
		case p.Allowed:
		case p.Optional:
			optional[at] = append(optional[at], p.Action)
		default:
			missing[at] = append(missing[at], p.Action)
		}
	}
	var out []Finding
	report := func(all map[source][]string, finding func(subject, format string, args ...any) Finding, says string) {
		for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b source) int {
			return strings.Compare(a.policy+" "+a.statement, b.policy+" "+b.statement)
		}) {
			out = append(out, finding("statement "+at.statement, says, some(all[at])).
				run("attach Joiner's policy "+fix.Escape(at.policy)+" to the role: ",
					fix.Words("joiner render iam-policy --cluster-name NAME --account ID --region REGION"), one(fix.Flag(at.policy))))
		}
	}
	report(missing, stops, "the role does not allow %s")
	report(optional, differs, "the role does not allow %s, which is needed only by a setting that is off")
	if len(missing) == 0 {
		out = append(out, stays("the role has all permissions that Joiner needs"))
	}
	return out
}
