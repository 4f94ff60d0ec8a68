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
	owners := map[string]Owner{} // by ID, of the instances that have not ended
	for _, i := range in.Instances {
		if !i.Ended {
			owners[i.ID] = i.Owner
		}
	}
	var out []Finding
	var gone []string                 // NodeClaims whose instance is gone
	var sameName, otherOwner []string // instance IDs
	untagged := map[string][]string{} // IDs of untagged instances, by NodePool
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
		case owner == OtherOwner:
			otherOwner = append(otherOwner, id)
		case owner == SameName:
			sameName = append(sameName, id)
		}
	}
	if n := len(gone); n > 0 {
		out = append(out, differs("NodeClaim "+firstNames(gone), "no instance with the cluster's name belongs to %s: Joiner asks EC2 about each instance by its ID, and deletes the NodeClaims whose instance is gone", form(n, "it", "them")))
	}
	cluster := fix.ClusterName(in.Cluster).OrPlaceholder("NAME")
	for _, pool := range slices.Sorted(maps.Keys(untagged)) {
		out = append(out, stops("instance "+firstNames(untagged[pool]),
			"the tags of the cluster or of the NodePool are missing, so Joiner would never terminate it").
			withCommand("", fix.SplitWords("aws ec2 create-tags --resources"), identifiers(untagged[pool], fix.Instance), fix.SplitWords("--tags"),
				joinedWord(fix.Text("Key=kubernetes.io/cluster/"), cluster, fix.Text(",Value=owned")),
				joinedWord(fix.Text("Key=eks:eks-cluster-name,Value="), cluster),
				joinedWord(fix.Text("Key=karpenter.sh/nodepool,Value="), fix.Name(pool))))
	}
	describe := fix.SplitWords("aws ec2 describe-instances --instance-ids")
	if len(otherOwner) > 0 {
		out = append(out, stops("instance "+firstNames(otherOwner), "it carries the tags of another cluster, a node group or an Auto Scaling group: Joiner never terminates it").
			withCommand("find out why a NodeClaim has it: ", describe, identifiers(otherOwner, fix.Instance)))
	}
	if len(sameName) > 0 {
		out = append(out, stops("instance "+firstNames(sameName), "it has the UID tag of another cluster with the same name: Joiner never changes it").
			withCommand("find the owner of each instance: ", describe, identifiers(sameName, fix.Instance)))
	}
	return append(out, in.unclaimedInstances(claimed)...)
}

// unclaimedInstances checks the instances with the cluster's name tag: it finds those without a NodeClaim, and counts
// those that a NodeClaim adopts. claimed has the instance IDs of the NodeClaims.
func (in Installation) unclaimedInstances(claimed map[string]bool) []Finding {
	var out []Finding
	var unclaimed, sameName []string
	adopted := 0
	for _, i := range in.Instances {
		switch {
		case i.Ended:
		case claimed[i.ID]:
			if i.Owner == Legacy || i.Owner == Ours {
				adopted++
			}
		case i.Owner == Legacy:
			unclaimed = append(unclaimed, i.ID)
		case i.Owner == SameName:
			sameName = append(sameName, i.ID)
		}
	}
	if n := len(unclaimed); n > 0 {
		out = append(out, differs("instance "+firstNames(unclaimed), "%s the cluster's name and no NodeClaim: Karpenter would remove %s, Joiner removes only instances that a NodeClaim names or that Joiner launched", form(n, "it has", "they have"), form(n, "it", "them")).
			withCommand("if "+form(n, "it is", "they are")+" not needed: ", fix.SplitWords("aws ec2 terminate-instances --instance-ids"),
				identifiers(slices.Sorted(slices.Values(unclaimed)), fix.Instance)))
	}
	if n := len(sameName); n > 0 {
		out = append(out, differs("instance "+firstNames(sameName), "%s to another cluster with the same name: never changed",
			form(n, "it belongs", "they belong")).
			withFix("give each cluster of an account and region a different name"))
	}
	if adopted > 0 {
		out = append(out, stays("%s in EC2 %s by %s: tags stay as they are", count(adopted, "instance"),
			form(adopted, "is adopted", "are adopted"), form(adopted, "its NodeClaim", "their NodeClaims")))
	}
	return out
}

// permissions checks which permissions the controller's role lacks. It returns nil if they were not checked.
func permissions(in Installation) []Finding {
	if len(in.Permissions) == 0 {
		return nil
	}
	type source struct{ policy, statement string }                    // a statement of Joiner's policies
	missing, optional := map[source][]string{}, map[source][]string{} // actions that the role does not allow
	for _, p := range in.Permissions {
		from := source{p.Policy, p.Statement}
		switch {
		case p.Allowed:
		case p.Optional:
			optional[from] = append(optional[from], p.Action)
		default:
			missing[from] = append(missing[from], p.Action)
		}
	}
	var out []Finding
	report := func(all map[source][]string, finding func(subject, format string, args ...any) Finding, format string) {
		for _, from := range slices.SortedFunc(maps.Keys(all), func(a, b source) int {
			return strings.Compare(a.policy+" "+a.statement, b.policy+" "+b.statement)
		}) {
			out = append(out, finding("statement "+from.statement, format, firstNames(all[from])).
				withCommand("attach Joiner's policy "+fix.Escape(from.policy)+" to the role: ",
					fix.SplitWords("joiner render iam-policy --cluster-name NAME --account ID --region REGION"), joinedWord(fix.Flag(from.policy))))
		}
	}
	report(missing, stops, "the role does not allow %s")
	report(optional, differs, "the role does not allow %s, which is needed only by a setting that is off")
	if len(missing) == 0 {
		out = append(out, stays("the role has all permissions that Joiner needs"))
	}
	return out
}
