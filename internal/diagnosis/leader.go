package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Lease is the leader election Lease of the controller.
type Lease struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Holder    string    `json:"holder,omitempty"` // empty: it was let go
	Renewed   time.Time `json:"renewed,omitzero"`
	Seconds   int       `json:"seconds,omitempty"` // that it holds after that
}

// End returns when the Lease expires if it is not renewed.
func (l Lease) End() time.Time { return l.Renewed.Add(time.Duration(l.Seconds) * time.Second) }

// IsAlone reports whether the controller runs without leader election.
func (c Controller) IsAlone() bool {
	is, err := strconv.ParseBool(c.Settings["DISABLE_LEADER_ELECTION"])
	return err == nil && is
}

// takeover is how long another controller may need to become active after the Lease ends: pods are recreated, images are pulled, and clocks
// differ.
const takeover = 2 * time.Minute

func leaderChecks() []Check {
	return []Check{{ID: "RUN-1", Title: "a controller acts", Layer: LayerController, judge: judgeLeader}}
}

// judgeLeader: a controller that was killed, or that nobody started again, leaves its lease behind, and work that nobody does. What is
// found is no finding yet for as long as another controller may be on its way.
func judgeLeader(d *desk) []Finding {
	found := d.leaderless()
	l := d.Lease.Value
	ago := d.At.Sub(l.End())
	if len(found) == 0 || !d.Lease.Known() || ago >= takeover {
		return found
	}
	ended := fmt.Sprintf("ended %d s ago", int(ago.Seconds()))
	if l.Holder == "" {
		ended = fmt.Sprintf("was let go %d s ago", int(d.At.Sub(l.Renewed).Seconds()))
	}
	return []Finding{{Verdict: Unknown, Certainty: Certain, Subject: found[0].Subject, Evidence: found[0].Evidence,
		Cause: "the lease of the controller " + ended + "; another may be about to take over"}}
}

// leaderless is what is wrong where the lease has ended, however short a while ago.
func (d *desk) leaderless() []Finding {
	if d.Lease.Is(Missing) {
		return d.neverActed()
	}
	if gap, ok := d.Lease.gap("the controller's lease"); ok {
		return []Finding{gap}
	}
	l, c := d.Lease.Value, d.Controller.Value
	ready := slices.IndexFunc(c.Pods, func(p ControllerPod) bool { return p.Ready })
	if !d.hasEnded(l) || ready >= 0 && c.IsAlone() {
		return nil
	}
	work := d.undone()
	subject := "Lease " + l.Namespace + "/" + l.Name
	told := fmt.Sprintf("%s held it until %s, and did not let it go: it was killed, or its machine is gone", l.Holder, stamp(l.End()))
	if l.Holder == "" {
		told = "it was let go at " + stamp(l.Renewed) + ", and nobody has taken it since"
	}
	switch {
	case ready >= 0 && (l.Holder != "" || len(work) > 0):
		return []Finding{suspicious(subject, Possible, "the controller's pod %s runs, and nobody renews the lease without which it does not act", c.Pods[ready].Name).
			with(d.Lease.Source + ": " + told).with(work...).mend(fix.Logs(fix.Pod(c.Namespace, c.Pods[ready].Name)).With("whether it gets the lease, and why not"))}
	case ready >= 0:
		return nil
	case len(work) > 0 && (d.Controller.Known() || d.Controller.Is(Missing)):
		return []Finding{broken(subject, Likely, "no controller acts since %s: pods get no nodes, and what was begun is not finished", stamp(l.End())).
			with(d.Lease.Source + ": " + told).with(work...).with(d.standing()...).mend(d.startController())}
	case len(work) > 0 || l.Holder != "":
		return []Finding{suspicious(subject, Likely, "no controller seems to act since %s: the next pods get no nodes", stamp(l.End())).
			with(d.Lease.Source + ": " + told).with(work...).with(d.standing()...).mend(d.startController())}
	}
	return nil // it was stopped, and there is no work for it
}

// hasEnded reports whether the lease has ended, there is something that a controller is for, and none has acted since.
func (d *desk) hasEnded(l Lease) bool {
	isServed := len(d.Pools.Value)+len(d.Claims.Value) > 0
	return isServed && !l.Renewed.IsZero() && !d.At.Before(l.End()) && !d.lastActed().After(l.End())
}

// Leaderless returns since when no controller is active, because its Lease has ended. It is zero if a controller is active or this is not
// known. A controller without leader election has no Lease that could end. If the installation could not be read, its Lease is not known.
func (e Evidence) Leaderless() time.Time {
	d := newDesk(e)
	isKnown := e.Lease.Known() && e.Claims.Known() && (e.Controller.Known() || e.Controller.Is(Missing))
	if !isKnown || e.Controller.Value.IsAlone() || !d.hasEnded(e.Lease.Value) {
		return time.Time{}
	}
	return e.Lease.Value.End()
}

// neverActed: there are NodePools, pods wait, and no controller has left a trace in the cluster.
func (d *desk) neverActed() []Finding {
	isTouched := func(conditions []Condition) bool { return len(conditions) > 0 }
	switch work := d.undone(); {
	case len(d.Pools.Value) == 0 || len(work) == 0 || len(d.Claims.Value) > 0 || !d.Claims.Known() || !d.Classes.Known():
		return nil
	case slices.ContainsFunc(d.Pools.Value, func(p Pool) bool { return isTouched(p.Conditions) }), slices.ContainsFunc(d.Classes.Value, func(c Class) bool { return isTouched(c.Conditions) }):
		return nil
	default:
		return []Finding{suspicious("", Possible, "there are NodePools, and no controller has ever looked at them: none is installed, or it does not run").
			with(d.Lease.Source + ": there is none").with(work...).with(d.standing()...).mend(d.startController())}
	}
}

// lastActed is the newest of what only a controller writes.
func (d *desk) lastActed() time.Time {
	var last time.Time
	see := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, c := range d.Claims.Value {
		see(c.Created)
		for _, one := range c.Conditions {
			see(one.Since)
		}
	}
	for _, p := range d.Pools.Value {
		for _, one := range p.Conditions {
			see(one.Since)
		}
	}
	for _, c := range d.Classes.Value {
		for _, one := range c.Conditions {
			see(one.Since)
		}
	}
	return last
}

// undone is the work of a controller that is there and not done, as evidence; nil: none.
func (d *desk) undone() []string {
	var claims, ending, pods []string
	for _, c := range d.Claims.Value {
		switch {
		case c.Deleting:
			ending = append(ending, c.Name)
		case c.ProviderID == "":
			claims = append(claims, c.Name)
		}
	}
	for _, p := range d.Pods.Value {
		own := slices.ContainsFunc(d.Controller.Value.Pods, func(o ControllerPod) bool {
			return o.Name == p.Name && d.Controller.Value.Namespace == p.Namespace
		}) || slices.Contains(d.Controller.Value.Others, p.Namespace+"/"+strings.TrimPrefix(p.Owner, "Deployment/"))
		if p.Node == "" && !own && !p.isDaemons() && d.At.Sub(p.Created) >= takeover && len(d.Pools.Value) > 0 {
			pods = append(pods, p.String())
		}
	}
	var out []string
	if len(claims) > 0 {
		out = append(out, fmt.Sprintf("NodeClaims without an instance: %s", firstOf(claims)))
	}
	if len(ending) > 0 {
		out = append(out, fmt.Sprintf("NodeClaims that are to go, and whose instances stay until a controller ends them: %s", firstOf(ending)))
	}
	if len(pods) > 0 {
		out = append(out, fmt.Sprintf("pods without a node: %s", firstOf(pods)))
	}
	return out
}

// firstOf returns the first few names, and how many more there are.
func firstOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// standing says what there is of the controller.
func (d *desk) standing() []string {
	c := d.Controller.Value
	var out []string
	for _, p := range d.waiting() {
		out = append(out, strings.TrimSpace("pod "+c.Namespace+"/"+p.Name+" is "+p.Phase+" "+orElse(strings.Join(p.Messages[:min(1, len(p.Messages))], ""), "and not ready")))
	}
	switch {
	case len(out) > 0:
		return out[:1]
	case d.Controller.Is(Missing):
		return []string{"there are no " + d.Controller.Source}
	case d.Controller.Known() && c.Deployment != "":
		return []string{"deployment " + c.Namespace + "/" + c.Deployment + " has no pods"}
	}
	return nil
}

// startController is the step that has a controller act again.
func (d *desk) startController() fix.Step {
	c := d.Controller.Value
	switch waiting := d.waiting(); {
	case len(waiting) > 0:
		return fix.Show("describe", fix.Pod(c.Namespace, waiting[0].Name)).With("why it does not run")
	case c.Deployment != "" && len(c.Others) > 0: // which of them is to act, only the user knows
		return fix.Show("get", fix.Deployment(c.Namespace, c.Deployment)).With("and %s: exactly one of them must run", strings.Join(c.Others, ", "))
	case c.Deployment != "":
		return fix.Scale(fix.Deployment(c.Namespace, c.Deployment), 2)
	}
	return fix.Controller(fix.ClusterName(d.Name).Or("NAME"), fix.Region(d.Region).Or("REGION")).
		With("where it ran before, with its other settings; or install the chart: docs/installation.md")
}
