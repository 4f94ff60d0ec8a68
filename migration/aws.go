package migration

import (
	"maps"
	"slices"
	"strings"
)

// idOf is the id of the instance in a provider id: "aws:///us-east-1a/i-0123".
func idOf(providerID string) string { return providerID[strings.LastIndexByte(providerID, '/')+1:] }

// instances judges whether each claim's instance can be taken over, and what has none.
func instances(in Installation) []Finding {
	if in.Instances == nil {
		return nil
	}
	owner := map[string]Owner{}
	for _, i := range in.Instances {
		if !i.Ended {
			owner[i.ID] = i.Owner
		}
	}
	var out []Finding
	var gone, untagged, namesakes []string
	claimed := map[string]bool{}
	for _, c := range in.Claims {
		id := idOf(c.ProviderID)
		if id == "" {
			continue
		}
		claimed[id] = true
		switch whose, ok := owner[id]; {
		case !ok:
			gone = append(gone, c.Name)
		case whose == Stranger:
			untagged = append(untagged, id)
		case whose == Namesake:
			namesakes = append(namesakes, id)
		}
	}
	if n := len(gone); n > 0 {
		out = append(out, differs("NodeClaim "+some(gone), "no instance of the cluster's name belongs to %s: Joiner asks EC2 about each by its id, and deletes the claims of those that are gone", is(n, "it", "them")))
	}
	if len(untagged) > 0 {
		out = append(out, stops("instance "+some(untagged), "the tags of the cluster are missing, so Joiner would never terminate it").
			mend("aws ec2 create-tags --resources %s --tags Key=kubernetes.io/cluster/%s,Value=owned Key=eks:eks-cluster-name,Value=%s", strings.Join(untagged, " "), in.Cluster, in.Cluster))
	}
	if len(namesakes) > 0 {
		out = append(out, stops("instance "+some(namesakes), "it carries the UID of another cluster of this name: Joiner never touches it").
			mend("find out whose it is: aws ec2 describe-instances --instance-ids %s", strings.Join(namesakes, " ")))
	}
	return append(out, in.ownerless(claimed)...)
}

// ownerless tells of instances with the cluster's name and no claim.
func (in Installation) ownerless(claimed map[string]bool) []Finding {
	var out []Finding
	var left, namesakes []string
	taken := 0
	for _, i := range in.Instances {
		switch {
		case i.Ended:
		case claimed[i.ID]:
			if i.Owner == Legacy || i.Owner == OurOwn {
				taken++
			}
		case i.Owner == Legacy:
			left = append(left, i.ID)
		case i.Owner == Namesake:
			namesakes = append(namesakes, i.ID)
		}
	}
	if n := len(left); n > 0 {
		out = append(out, differs("instance "+some(left), "%s the cluster's name and no NodeClaim: Karpenter would remove %s, Joiner touches only what a NodeClaim names or itself has bought", is(n, "it has", "they have"), is(n, "it", "them")).
			mend("if nobody needs %s: aws ec2 terminate-instances --instance-ids %s", is(n, "it", "them"), strings.Join(slices.Sorted(slices.Values(left)), " ")))
	}
	if n := len(namesakes); n > 0 {
		out = append(out, differs("instance "+some(namesakes), "%s to another cluster of this name: never touched", is(n, "it belongs", "they belong")).
			mend("give each cluster of an account and region a name of its own"))
	}
	if taken > 0 {
		out = append(out, stays("%s in EC2 %s by %s: tags stay as they are", count(taken, "instance"), is(taken, "is adopted", "are adopted"), is(taken, "its NodeClaim", "their NodeClaims")))
	}
	return out
}

// permissions judges what the controller may not do with the role that it takes over.
func permissions(in Installation) []Finding {
	if len(in.Permissions) == 0 {
		return nil
	}
	type place struct{ policy, statement string }
	missing, optional := map[place][]string{}, map[place][]string{}
	for _, p := range in.Permissions {
		at := place{p.Policy, p.Statement}
		switch {
		case p.Allowed:
		case p.Optional:
			optional[at] = append(optional[at], p.Action)
		default:
			missing[at] = append(missing[at], p.Action)
		}
	}
	var out []Finding
	tell := func(all map[place][]string, as func(subject, format string, args ...any) Finding, says string) {
		for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b place) int {
			return strings.Compare(a.policy+" "+a.statement, b.policy+" "+b.statement)
		}) {
			out = append(out, as("statement "+at.statement, says, some(all[at])).
				mend("attach Joiner's policy %s to the role: joiner render iam-policy --cluster-name NAME --account ID --region REGION %s", at.policy, at.policy))
		}
	}
	tell(missing, stops, "the role does not allow %s")
	tell(optional, differs, "the role does not allow %s, which a setting needs that is off")
	if len(missing) == 0 {
		out = append(out, stays("the role allows all that Joiner does"))
	}
	return out
}
