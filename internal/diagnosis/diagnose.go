package diagnosis

import (
	"cmp"
	"slices"
	"strings"
)

// Check is one check of the evidence.
type Check struct {
	ID    string // "AUTH-2"
	Title string // what it checks, for lists
	// Layer is the stage of a node's life that the check is about. A failure in an early layer keeps later layers from being reached.
	Layer Layer
	// Fallback marks a check that knows a symptom but not its cause. It reports nothing if another check knows the cause.
	Fallback bool

	judge func(*desk) []Finding
}

// Layer is a stage of a node's life.
type Layer int

// The layers, in the order in which a node goes through them.
const (
	LayerController Layer = iota // does the controller run, for this cluster?
	LayerPlan                    // does a NodePool admit the pod?
	LayerLaunch                  // does EC2 launch an instance?
	LayerBoot                    // does the instance boot, and does its user data start a kubelet?
	LayerNetwork                 // does the kubelet reach the API server?
	LayerAuth                    // does the API server authenticate the kubelet?
	LayerReady                   // does the node become ready?
	LayerFleet                   // is the node kept?
)

// Checks returns all checks, by layer and ID.
func Checks() []Check {
	all := slices.Concat(fargateChecks(), leaderChecks(), identityChecks(), architectureChecks(), launchChecks(), bootChecks(), taintChecks(),
		networkChecks(), authChecks(), readyChecks())
	slices.SortStableFunc(all, func(a, b Check) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), compareIDs(a.ID, b.ID))
	})
	return all
}

// compareIDs compares check IDs by prefix, then by number: "AUTH-2" is before "AUTH-10".
func compareIDs(a, b string) int {
	kind, number, _ := strings.Cut(a, "-")
	kind2, number2, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(kind, kind2), cmp.Compare(len(number), len(number2)), cmp.Compare(number, number2))
}

// Diagnose runs all checks on the evidence and returns their findings, fine ones included. Broken findings that explain observed symptoms come
// first. Findings that hold pods come before those that do not, and EC2NodeClasses that no NodePool uses come last. The result is
// deterministic.
func Diagnose(e Evidence) []Finding {
	d := newDesk(e)
	var out, fallbacks []Finding
	for _, c := range Checks() {
		found := c.judge(d)
		if len(found) == 0 {
			found = []Finding{fine("")}
		}
		for _, f := range found {
			f.Check, f.Title, f.layer = c.ID, c.Title, int(c.Layer)
			f = d.afresh(f)
			f.Page = "docs/checks/" + c.ID + ".md"
			f.seen = slices.ContainsFunc(f.Explains, d.has)
			f.Unused = f.Verdict.order() < Unknown.order() && d.isUnused(f.Subject)
			f.holds = d.holdsPods(f)
			if c.Fallback && f.Verdict.order() < Unknown.order() {
				fallbacks = append(fallbacks, f)
				continue
			}
			out = append(out, f)
		}
	}
	for _, f := range fallbacks {
		if d.explained(out, f) {
			f = Finding{Check: f.Check, Title: f.Title, Page: f.Page, layer: f.layer, Verdict: Fine, Certainty: Certain}
		}
		out = append(out, f)
	}
	rank(out)
	return slices.CompactFunc(out, same)
}

// explained reports whether something broken accounts for all signs of a fallback's finding. What is broken in one EC2NodeClass accounts for
// no sign of another.
func (d *desk) explained(findings []Finding, fallback Finding) bool {
	class := d.classOfSubject(fallback.Subject)
	for _, s := range fallback.Explains {
		if !slices.ContainsFunc(findings, func(f Finding) bool {
			of := d.classOfSubject(f.Subject)
			return f.Verdict == Broken && !f.Unused && slices.Contains(f.Explains, s) && (class == "" || of == "" || class == of)
		}) {
			return false
		}
	}
	return len(fallback.Explains) > 0
}

// classOfSubject is the EC2NodeClass that a finding with the subject is about; empty if it may be about several.
func (d *desk) classOfSubject(subject string) string {
	kind, name, _ := strings.Cut(subject, " ")
	switch kind {
	case "EC2NodeClass":
		if !strings.Contains(name, " ") {
			return name
		}
	case "instance":
		for _, i := range d.Instances.Value {
			if i.ID == name {
				return i.Class
			}
		}
	}
	return ""
}

func same(a, b Finding) bool {
	return a.Check == b.Check && a.Subject == b.Subject && a.Verdict == b.Verdict && a.Cause == b.Cause
}

// Worst returns the findings that need action: broken and suspicious ones.
func Worst(findings []Finding) []Finding {
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Verdict.order() >= Unknown.order() })
	if i < 0 {
		return findings
	}
	return findings[:i]
}

// desk is the evidence, with what several checks look up in it.
type desk struct {
	Evidence
	sightings []sighting // by instance id, in the order of the console
	joined    map[string]Node
}

func newDesk(e Evidence) *desk {
	d := &desk{Evidence: e}
	if e.Claims.Known() {
		d.Instances.Value = Claimed(e.Instances.Value, e.Claims.Value)
	}
	d.joined = nodesByInstance(e, d.Instances.Value)
	for _, i := range d.Instances.Value {
		node, isNode := d.joined[i.ID]
		if !i.runs() || isNode && node.Ready || d.isOthers(i) {
			continue
		}
		for _, r := range Read(i.Console.Value) {
			d.sightings = append(d.sightings, sighting{r, i})
		}
	}
	return d
}

// isOthers reports whether what fails on the instance is not ours to judge: it carries another cluster's UID, or no NodeClaim here has its
// provider ID, whatever its tags say.
func (d *desk) isOthers(i Instance) bool {
	return i.UID != "" && d.Home.Known() && i.UID != d.Home.Value.UID || d.Claims.Known() && i.Claim == ""
}

// has reports whether any console shows the sign.
func (d *desk) has(s Sign) bool {
	return slices.ContainsFunc(d.sightings, func(g sighting) bool { return g.Sign == s })
}

// of returns the sightings of some signs, at most one for each instance and sign; class restricts them to one EC2NodeClass, and
// empty does not.
func (d *desk) of(class string, signs ...Sign) []sighting {
	var out []sighting
	for _, g := range d.sightings {
		if slices.Contains(signs, g.Sign) && (class == "" || g.instance.Class == class || g.instance.Class == "") {
			out = append(out, g)
		}
	}
	return out
}

// consoles is the gap in what instances have said that do not join.
func (d *desk) consoles() (Finding, bool) {
	if gap, ok := d.Instances.gap("the consoles of instances"); ok {
		return gap, true
	}
	for _, i := range d.Instances.Value {
		if _, isNode := d.joined[i.ID]; i.runs() && !isNode && !d.isOthers(i) && i.Console.Value == "" && (i.Console.Is(Denied) || i.Console.Is(Failed)) {
			return i.Console.gap("the console of instance " + i.ID)
		}
	}
	return Finding{}, false
}

// lines are sightings as evidence, the first few.
func lines(of []sighting) []string {
	var out []string
	for _, g := range of {
		out = append(out, g.String())
		if len(out) == 3 {
			break
		}
	}
	return out
}

// messages are the first of what is said with all of the words: "NodeClaim x: …".
func (d *desk) messages(words ...string) []string {
	var out []string
	for _, s := range d.said(words...) {
		if line := s.String(); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out[:min(len(out), 4)]
}

// isPast reports whether what an event tells of is over: Kubernetes keeps events for an hour, whatever has become of their objects since.
func (d *desk) isPast(v Event) bool {
	since := func(all []Condition, kind string) bool {
		c := condition(all, kind)
		return c.Status == "True" && !c.Since.Before(v.Last) && !v.Last.IsZero()
	}
	switch v.Kind {
	case "NodeClaim":
		i := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return c.Name == v.Name })
		isLaunch := v.Reason != "UnregisteredTaintMissing" // which comes after the launch, if only by less than a second
		return d.Claims.Known() && (i < 0 || isLaunch && since(d.Claims.Value[i].Conditions, "Launched"))
	case "EC2NodeClass":
		c, ok := d.class(v.Name)
		return d.Classes.Known() && (!ok || since(c.Conditions, "Ready"))
	case "NodePool":
		i := slices.IndexFunc(d.Pools.Value, func(p Pool) bool { return p.Name == v.Name })
		return d.Pools.Known() && (i < 0 || since(d.Pools.Value[i].Conditions, "Ready"))
	case "Pod":
		return d.Pods.Known() && !slices.ContainsFunc(d.Pods.Value, func(p Pod) bool { return p.String() == v.Name })
	}
	return false
}
