package migration

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// definitions checks whether Joiner's CRDs can replace the cluster's.
func definitions(in Installation) []Finding {
	var out []Finding
	for _, d := range in.Definitions {
		if d.Held {
			out = append(out, stops("CustomResourceDefinition "+d.Name, "%s", d.Says))
		}
	}
	if len(out) == 0 && len(in.Definitions) > 0 {
		out = append(out, stays("%s can be updated; this changes no object", count(len(in.Definitions), "definition")))
	}
	return out
}

func pools(in Installation) []Finding {
	var out []Finding
	served := 0
	for _, p := range in.Pools {
		if p.Foreign {
			out = append(out, stays("NodePool %s uses a node class that is no EC2NodeClass: neither Karpenter nor Joiner serves it", p.Name))
			continue
		}
		served++
		out = append(out, p.checkObject("NodePool "+p.Name)...)
	}
	if served > 0 {
		out = append(out, stays("%s %s as %s", count(served, "NodePool"), form(served, "stays", "stay"), form(served, "it is", "they are")))
	}
	return out
}

func classes(in Installation) []Finding {
	var out []Finding
	for _, c := range in.Classes {
		out = append(out, c.checkObject("EC2NodeClass "+c.Name)...)
	}
	if n := len(in.Classes); n > 0 {
		out = append(out, stays("%d %s as %s", n, form(n, "EC2NodeClass stays", "EC2NodeClasses stay"), form(n, "it is", "they are")))
	}
	return out
}

func (o Object) checkObject(subject string) []Finding {
	var out []Finding
	if len(o.Refused) > 0 {
		out = append(out, stops(subject, "the CRDs reject it: %s", strings.Join(o.Refused, "; ")).
			withFix("correct it while Karpenter still runs, so that Karpenter still applies the change to its nodes"))
	}
	if len(o.Unknown) > 0 {
		out = append(out, differs(subject, "Joiner does not know %s", firstNames(o.Unknown)).
			withFix("take %s out, or stay with Karpenter until Joiner knows %s",
				form(len(o.Unknown), "it", "them"), form(len(o.Unknown), "it", "them")))
	}
	if o.NotReady != "" {
		out = append(out, differs(subject, "it is not ready now: %s", o.NotReady))
	}
	return out
}

// claims checks whether NodeClaims can be adopted, and whether they are about to be replaced.
func claims(in Installation) []Finding {
	var out []Finding
	var launching, deleting, expired, foreign []string
	for _, c := range in.Claims {
		switch {
		case c.UID != "" && in.UID != "" && c.UID != in.UID:
			foreign = append(foreign, c.Name)
		case c.Deleting:
			deleting = append(deleting, c.Name)
		case c.ProviderID == "":
			launching = append(launching, c.Name)
		case !c.Expires.IsZero() && c.Expires.Before(in.At):
			expired = append(expired, c.Name)
		}
	}
	if len(foreign) > 0 {
		out = append(out, stops("NodeClaim "+firstNames(foreign), "the annotation joiner.sh/cluster-uid is that of another cluster").
			withCommand("if the NodeClaim was restored from a backup of another cluster, remove the annotation: ",
				fix.SplitWords("kubectl annotate nodeclaim"), joinedWord(fix.Name(foreign[0])), fix.SplitWords("joiner.sh/cluster-uid-")))
	}
	if n := len(launching); n > 0 {
		out = append(out, stops("NodeClaim "+firstNames(launching),
			"%s in flight: Karpenter is still launching, and Joiner would launch another instance for %s", form(n, "it is", "they are"), form(n, "it", "each")).
			withCommand("", fix.SplitWords("kubectl wait --for=condition=Launched"),
				identifiers(slices.Sorted(slices.Values(launching)),
					func(name string) fix.Value { return fix.Join(fix.Text("nodeclaim/"), fix.Name(name)) }), fix.SplitWords("--timeout=5m")))
	}
	if n := len(deleting); n > 0 {
		out = append(out, differs("NodeClaim "+firstNames(deleting), "%s being deleted: Joiner continues the deletion, and terminates the %s",
			form(n, "it is", "they are"), form(n, "instance", "instances")))
	}
	if n := len(expired); n > 0 {
		out = append(out, differs("NodeClaim "+firstNames(expired), "%s past expireAfter: Joiner replaces %s, as Karpenter does",
			form(n, "it is", "they are"), form(n, "it", "them")))
	}
	if n := len(in.Claims) - len(foreign) - len(launching) - len(deleting) - len(expired); n > 0 {
		out = append(out, stays("%s %s over with %s: nothing is replaced", count(n, "NodeClaim"),
			form(n, "is taken", "are taken"), form(n, "its instance", "their instances")))
	}
	return out
}

// nodes checks the Nodes with the label of a NodePool: whether each has a NodeClaim, and whether Karpenter is about to
// replace the Node.
func nodes(in Installation) []Finding {
	claimed, deleting := map[string]bool{}, map[string]bool{} // by provider ID
	for _, c := range in.Claims {
		claimed[c.ProviderID], deleting[c.ProviderID] = true, c.Deleting
	}
	var out []Finding
	var unclaimed, tainted []string
	for _, n := range in.Nodes {
		switch {
		case !claimed[n.ProviderID]:
			unclaimed = append(unclaimed, n.Name)
		case n.Disrupted && !deleting[n.ProviderID]:
			tainted = append(tainted, n.Name)
		}
	}
	if n := len(unclaimed); n > 0 {
		out = append(out, differs("Node "+firstNames(unclaimed),
			"%s the label karpenter.sh/nodepool and no NodeClaim: Joiner leaves %s alone", form(n, "it has", "they have"), form(n, "it", "them")).
			withFix("terminate by hand the instances that are not needed"))
	}
	if n := len(tainted); n > 0 {
		out = append(out, stops("Node "+firstNames(tainted), "Karpenter is about to replace %s: %s karpenter.sh/disrupted",
			form(n, "it", "them"), form(n, "it has the taint", "they have the taint")).
			withCommand("wait until Karpenter is done; if it never is: ", fix.SplitWords("kubectl taint node"),
				identifiers(slices.Sorted(slices.Values(tainted)), fix.Name), fix.SplitWords("karpenter.sh/disrupted-")))
	}
	if n := len(in.Nodes) - len(unclaimed); n > 0 {
		out = append(out, stays("%s %s with labels, taints and pods", count(n, "Node"), form(n, "stays", "stay")))
	}
	return out
}

// drift finds the NodeClaims that are drifted. Joiner replaces the same NodeClaims as Karpenter, because both compute
// the same hashes.
func drift(in Installation) []Finding {
	poolOf, classOf := map[string]Pool{}, map[string]Class{}
	for _, p := range in.Pools {
		poolOf[p.Name] = p
	}
	for _, c := range in.Classes {
		classOf[c.Name] = c
	}
	marked := map[string][]string{} // names of the NodeClaims with the condition Drifted, by its reason
	outdated := []string{}          // names of the NodeClaims without this condition whose hash is outdated
	for _, c := range in.Claims {
		pool, class := poolOf[c.Pool], classOf[c.Class]
		switch {
		case c.Deleting:
		case c.Drifted != "":
			marked[c.Drifted] = append(marked[c.Drifted], c.Name)
		case hashesDiffer(pool.Hash, pool.HashVersion, c.PoolHash, c.PoolHashVersion),
			hashesDiffer(class.Hash, class.HashVersion, c.ClassHash, c.ClassHashVersion):
			outdated = append(outdated, c.Name)
		}
	}
	var out []Finding
	for _, reason := range slices.Sorted(maps.Keys(marked)) {
		names := marked[reason]
		out = append(out, differs("NodeClaim "+firstNames(names), "Karpenter found %s drifted (%s) and would replace %s; so does Joiner, within the same budgets and one node first", form(len(names), "it", "them"), reason, form(len(names), "it", "them")).
			withCommand("to postpone that: ", fix.SplitWords("kubectl annotate nodepool"), identifiers(poolsOf(in, names), fix.Name),
				fix.SplitWords("joiner.sh/drift=observe")))
	}
	if len(outdated) > 0 {
		out = append(out, differs("NodeClaim "+firstNames(outdated), "%s made before the last change of the NodePool or EC2NodeClass; Karpenter would replace %s, and so does Joiner", form(len(outdated), "it was", "they were"), form(len(outdated), "it", "them")).
			withCommand("to postpone that: ", fix.SplitWords("kubectl annotate nodepool"), identifiers(poolsOf(in, outdated), fix.Name),
				fix.SplitWords("joiner.sh/drift=observe")))
	}
	if len(in.Claims) > 0 && len(marked) == 0 && len(outdated) == 0 {
		out = append(out, stays("nothing is drifted: hashes and their versions match Karpenter's"))
	}
	return out
}

// poolsOf returns the names of the NodePools of the named NodeClaims, sorted.
func poolsOf(in Installation, claims []string) []string {
	var out []string
	for _, c := range in.Claims {
		if slices.Contains(claims, c.Name) && !slices.Contains(out, c.Pool) {
			out = append(out, c.Pool)
		}
	}
	slices.Sort(out)
	return out
}

// hashesDiffer reports whether two hashes of the same version differ. As in Karpenter, it is false if a hash is missing
// or if the versions differ.
func hashesDiffer(a, aVersion, b, bVersion string) bool {
	return a != "" && b != "" && aVersion == bVersion && a != b
}
