package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected answers of Next")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// axis is one property of the input, with all its values. The first value is the usual one.
type axis struct {
	name   string
	values []value
}

type value struct {
	name string
	set  func(*Seen)
}

func ago(d time.Duration) time.Time { return now.Add(-d) }

func axes() []axis {
	day, zero, minute := 24*time.Hour, time.Duration(0), time.Minute
	return []axis{
		{"claim", []value{
			{"wanted", func(s *Seen) {}},
			{"launched", func(s *Seen) { s.Claim.Launched = true }},
			{"launched-late", func(s *Seen) { s.Claim.Launched, s.Claim.LaunchedAt = true, ago(minute) }},
			{"registered", func(s *Seen) { s.Claim.Launched, s.Claim.Registered = true, true }},
			{"initialized", func(s *Seen) { s.Claim.Launched, s.Claim.Registered, s.Claim.Initialized = true, true, true }},
			{"unlabelled", func(s *Seen) {
				s.Claim.Launched, s.Claim.Registered, s.Claim.Initialized, s.Claim.Unlabelled = true, true, true, true
			}},
			{"outdated", func(s *Seen) { s.Claim.Launched, s.Claim.Outdated = true, ago(time.Second) }},
			{"outdated-soon", func(s *Seen) { s.Claim.Launched, s.Claim.Outdated = true, now.Add(10*time.Second) }},
			{"none", func(s *Seen) { s.Claim = Claim{} }},
		}},
		{"age", []value{
			{"1s", func(s *Seen) { s.Claim.Created = ago(time.Second) }},
			{"5m", func(s *Seen) { s.Claim.Created = ago(LaunchTimeout) }},
			{"15m", func(s *Seen) { s.Claim.Created = ago(RegistrationTimeout) }},
			{"1d", func(s *Seen) { s.Claim.Created = ago(day) }},
			{"queued", expiredWith(ReplacementQueued, time.Minute)},
			{"queued-long", expiredWith(ReplacementQueued, ReplaceWithin)},
			{"asked", expiredWith(ReplacementAsked, -1)},
			{"asked-noted", expiredWith(ReplacementAsked, time.Minute)},
			{"asked-long", expiredWith(ReplacementAsked, ReplaceWithin)},
			{"asked-grace", func(s *Seen) {
				expiredWith(ReplacementAsked, 40*time.Second)(s)
				s.Claim.Grace = &minute
			}},
			{"asked-no-grace", func(s *Seen) {
				expiredWith(ReplacementAsked, -1)(s)
				s.Claim.Grace = &zero
			}},
			{"asked-apart", func(s *Seen) {
				expiredWith(ReplacementAsked, time.Minute)(s)
				s.Claim.Replacement.Apart = true
			}},
			{"replaced", expiredWith(ReplacementReady, time.Minute)},
		}},
		{"expires", []value{
			{"1d", func(s *Seen) { s.Claim.ExpireAfter = &day }},
			{"never", func(s *Seen) { s.Claim.ExpireAfter = nil }},
		}},
		{"finalizer", []value{
			{"yes", func(s *Seen) { s.Claim.Finalizer = s.Claim.Exists }},
			{"no", func(s *Seen) { s.Claim.Finalizer = false }},
		}},
		{"deleted", []value{
			{"no", func(s *Seen) {}},
			{"yes", func(s *Seen) { s.Claim.Deleted = ago(time.Second) }},
			{"grace", func(s *Seen) { s.Claim.Deleted, s.Claim.Grace = ago(time.Second), &zero }},
			{"overdue", func(s *Seen) {
				s.Claim.Deleted, s.Claim.Grace, s.Claim.Deadline = ago(2*minute), &minute, ago(minute)
			}},
		}},
		{"launch", []value{
			{"free", func(s *Seen) { s.Claim.NodeClass = NodeClassReady }},
			{"class?", func(s *Seen) { s.Claim.NodeClass = NodeClassUnknown }},
			{"class-bad", func(s *Seen) { s.Claim.NodeClass = NodeClassNotReady }},
			{"class-gone", func(s *Seen) { s.Claim.NodeClass = NodeClassMissing }},
			{"shortage", func(s *Seen) { s.Claim.NodeClass, s.Claim.Shortage = NodeClassReady, true }},
			{"answered", func(s *Seen) { s.Claim.NodeClass, s.Claim.Answered = NodeClassReady, ago(minute) }},
			{"backoff", func(s *Seen) { s.Claim.NodeClass, s.Claim.NotBefore = NodeClassReady, now.Add(10*time.Second) }},
			{"backoff-late", func(s *Seen) {
				s.Claim.NodeClass, s.Claim.Answered, s.Claim.NotBefore = NodeClassReady, ago(minute), now.Add(10*time.Second)
			}},
			{"in-line", func(s *Seen) {
				s.Claim.NodeClass, s.Claim.Answered, s.Claim.NotBefore = NodeClassReady, ago(6*minute), ago(5*minute)
			}},
			{"too-late", func(s *Seen) {
				s.Claim.NodeClass, s.Claim.Answered, s.Claim.NotBefore = NodeClassReady, ago(6*minute), ago(minute/2)
			}},
		}},
		{"machine", []value{
			{"unknown", func(s *Seen) { s.Machine.State = MachineUnknown }},
			{"running", func(s *Seen) { s.Machine.State = MachineRunning }},
			{"ending", func(s *Seen) { s.Machine.State = MachineEnding }},
			{"absent", func(s *Seen) { s.Machine.State = MachineAbsent }},
			{"foreign", func(s *Seen) { s.Machine = Instance{State: MachineRunning, Foreign: true} }},
			{"unmarked", func(s *Seen) { s.Machine = Instance{State: MachineRunning, Unmarked: true} }},
		}},
		{"node", []value{
			{"none", func(s *Seen) {}},
			{"mismatch", func(s *Seen) { s.Node = Node{Mismatch: "another name"} }},
			{"unconfirmed", func(s *Seen) { s.Node = Node{Mismatch: "another name", Unconfirmed: "no address"} }},
			{"young", func(s *Seen) { s.Node = Node{Count: 1} }},
			{"ready", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true} }},
			{"startup", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Startup: "cni"} }},
			{"ephemeral", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Ephemeral: "not-ready"} }},
			{"lacks", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Lacks: "nvidia.com/gpu"} }},
			{"two", func(s *Seen) { s.Node = Node{Count: 2, Finalizer: true, Ready: true} }},
			{"leaving", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Deleted: ago(time.Second)} }},
			{"leaving-bare", func(s *Seen) { s.Node = Node{Count: 1, Deleted: ago(time.Second)} }},
			{"pods", func(s *Seen) { s.Node = leaving(time.Minute, 3, 1) }},
			{"settling", func(s *Seen) { s.Node = leaving(time.Second, 0, 1) }},
			{"volumes", func(s *Seen) { s.Node = leaving(time.Minute, 0, 1) }},
			{"empty", func(s *Seen) { s.Node = leaving(time.Minute, 0, 0) }},
			{"closed", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Closed: true} }},
			{"unwell", func(s *Seen) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, Ailment: Ailment{Condition: "KernelReady", Due: now.Add(minute)}}
			}},
			{"broken", func(s *Seen) {
				s.Node = Node{Count: 1, Finalizer: true, Ailment: Ailment{Condition: "Ready", Due: ago(minute)}}
			}},
			{"broken-held", func(s *Seen) {
				s.Node = Node{Count: 1, Finalizer: true, Ailment: Ailment{Condition: "Ready", Due: ago(minute), Held: true}}
			}},
			{"lost", func(s *Seen) { s.Node = Node{Lost: ago(LostTimeout)} }},
			{"lost-lately", func(s *Seen) { s.Node = Node{Lost: ago(time.Second)} }},
			{"reborn", func(s *Seen) { s.Node = Node{Count: 1, Ready: true, Reborn: s.Claim.Registered} }},
			{"strays", func(s *Seen) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Strays: 1} }},
			{"reborn-strays", func(s *Seen) { s.Node = Node{Count: 1, Ready: true, Reborn: s.Claim.Registered, Strays: 1} }},
			{"leaving-held", func(s *Seen) { s.Node = leaving(time.Minute, 0, 0); s.Node.Finalizer = false }},
			{"empty-dead", func(s *Seen) { s.Node = leaving(time.Minute, 0, 0); s.Node.Ready = false }},
		}},
	}
}

func leaving(since time.Duration, pods, volumes int) Node {
	return Node{Count: 1, Finalizer: true, Ready: true, Deleted: ago(since), Closed: true, Cordoned: true, Pods: pods, Volumes: volumes}
}

// expiredWith returns a change to a claim that has expired. Its replacement is in the state since a time; since below 0
// leaves the time unset.
func expiredWith(state ReplacementState, since time.Duration) func(*Seen) {
	return func(s *Seen) {
		day := 24 * time.Hour
		s.Claim.Created, s.Claim.ExpireAfter = ago(day), &day
		s.Claim.Replacement = Replacement{State: state}
		if since >= 0 {
			s.Claim.Replacement.Since = ago(since)
		}
	}
}

// everything calls f with each combination of the values of all axes.
func everything(f func(names []string, seen Seen)) {
	all := axes()
	names := make([]string, len(all))
	var walk func(i int, seen Seen)
	walk = func(i int, seen Seen) {
		if i == len(all) {
			f(names, seen)
			return
		}
		for _, w := range all[i].values {
			next := seen
			w.set(&next)
			names[i] = w.name
			walk(i+1, next)
		}
	}
	walk(0, Seen{Claim: Claim{Exists: true}})
}

// TestNextIsTotal checks every combination of inputs against the promises that hold for any answer.
func TestNextIsTotal(t *testing.T) {
	t.Parallel()
	count := 0
	everything(func(names []string, seen Seen) {
		count++
		step := Next(seen, now)
		if wrong := broken(seen, step); wrong != "" {
			t.Fatalf("%s: %s\nanswer: %+v", strings.Join(names, " "), wrong, step)
		}
	})
	if count < 100_000 {
		t.Errorf("only %d combinations were tried", count)
	}
}

// broken returns the promise that an answer breaks, or nothing.
func broken(seen Seen, step Step) string {
	c, n, m := seen.Claim, seen.Node, seen.Machine
	ours := m.State == MachineRunning && !m.Foreign
	mayRun := m.State == MachineRunning || m.State == MachineUnknown
	for _, promise := range []struct {
		text string
		kept bool
	}{
		{"there is a phase and an action", step.Phase != "" && step.Action != ""},
		{"a wait has a reason", step.Action != Wait || step.Reason != ""},
		{"a wait ends in the future", step.Until.IsZero() || step.Until.After(now)},
		{"a deletion has a reason", step.Action != Delete || step.Reason != ""},
		{"a deleted claim is not deleted again", step.Action != Delete || c.Exists && c.Deleted.IsZero()},
		{"a deleted claim drains or is gone", c.Deleted.IsZero() || step.Phase == Draining || step.Phase == Gone},
		{"only a deleted claim drains", step.Phase != Draining || !c.Deleted.IsZero() || !c.Exists},
		{"an initialized node expires at its age",
			step.Reason != ReasonExpired || !n.Ready || n.Count != 1 || !c.Initialized ||
				c.Replacement.State == ReplacementNone || c.Replacement.State == ReplacementReady || c.Grace != nil ||
				isPast(c.Replacement.Since, ago(ReplaceWithin))},
		{"an expired node does not wait forever",
			step.Reason != WaitTurn && step.Reason != WaitReplacement || !isPast(c.Replacement.Since, ago(ReplaceWithin)) && !step.Until.IsZero()},
		{"a node that is repaired is due and registered",
			step.Reason != ReasonUnhealthy || c.Registered && !n.Ailment.Held && isPast(n.Ailment.Due, now)},
		{"an unhealthy node is checked again",
			step.Action != Wait || step.Phase != Ready && step.Phase != Joined || n.Ailment.Condition == "" || !step.Until.IsZero()},
		{"only an expired claim is replaced", step.Action != Replace || c.Expired(now)},
		{"no launch without a finalizer", step.Action != Launch || c.Finalizer},
		{"no second launch", step.Action != Launch || !c.Launched && !ours},
		{"no launch for a deleted claim", step.Action != Launch || c.Deleted.IsZero() && c.Exists},
		{"no launch after the timeout unless it was due before", step.Action != Launch || now.Sub(c.Created) < LaunchTimeout ||
			now.Sub(c.Answered) < LaunchTimeout || c.NotBefore.Before(latest(c.Created, c.Answered).Add(LaunchTimeout))},
		{"a claim without an instance is deleted after the timeout",
			step.Phase != Wanted || step.Action != Wait || !isPast(latest(c.Created, c.Answered).Add(LaunchTimeout), now)},
		{"no launch with a bad class", step.Action != Launch || c.NodeClass == NodeClassReady},
		{"only our running instance is terminated", step.Action != Terminate || ours},
		{"the instance of a claim that is not deleted stays", step.Action != Terminate || !c.Exists || !c.Deleted.IsZero()},
		{"the instance ends before its claim", step.Action != Release || !mayRun || m.Foreign},
		{"the instance ends before its Node", step.Action != ReleaseNode || !mayRun || m.Foreign},
		{"the Node is removed before the claim", step.Action != Release || n.Count == 0},
		{"pods leave before the instance ends", step.Action != Terminate || n.Pods == 0 || !c.Registered && !n.Finalizer},
		{"a Node is cordoned before its pods are evicted", step.Action != Evict || n.Cordoned},
		{"volumes keep the instance", step.Action != Terminate || n.Volumes == 0 || n.Deleted.IsZero() || !c.Deadline.IsZero()},
		{"an instance has the full time to join",
			step.Reason != ReasonRegistrationTimeout || now.Sub(latest(c.Created, c.LaunchedAt)) >= RegistrationTimeout},
		{"a joined node is not deleted by the registration timeout", step.Reason != ReasonRegistrationTimeout || n.Count != 1},
		{"a ready node is not treated as gone", step.Reason != ReasonMachineGone || !n.Ready},
		{"one node registers", step.Action != Register || n.Count == 1 && (!c.Registered || n.Reborn)},
		{"a foreign finalizer does not keep the instance", step.Reason != WaitNodeGone || !mayRun || m.Foreign},
		{"a claim follows its Node",
			!c.Registered || !isPast(n.Lost, ago(LostTimeout)) || step.Action == Delete || step.Action == Hold ||
				step.Action == Label || !c.Deleted.IsZero()},
		{"a deleted claim is not labelled", step.Action != Label || c.Unlabelled && c.Deleted.IsZero()},
		{"only strays are deleted, and last",
			step.Action != DropStrays || n.Strays > 0 && n.Ready && c.Registered && !n.Reborn && c.Deleted.IsZero()},
		{"only a node ready for pods is initialized", step.Action != Initialize || n.Ready && n.Startup == "" && n.Ephemeral == "" && n.Lacks == ""},
		{"Gone is the end", step.Phase != Gone || step.Action == Wait && step.Until.IsZero()},
	} {
		if !promise.kept {
			return "broken promise: " + promise.text
		}
	}
	return ""
}

// TestEveryDeletedClaimEnds applies the effect of each step and asserts that Gone is reached.
func TestEveryDeletedClaimEnds(t *testing.T) {
	t.Parallel()
	everything(func(names []string, seen Seen) {
		if seen.Claim.Deleted.IsZero() || t.Failed() {
			return
		}
		at := now
		for range 20 {
			step := Next(seen, at)
			if step.Phase == Gone {
				return
			}
			seen, at = after(seen, step, at)
		}
		t.Errorf("%s: not gone after 20 steps: %+v, %+v", strings.Join(names, " "), seen, Next(seen, at))
	})
}

// after returns the observation after a step of a deletion, if everything succeeds.
func after(seen Seen, step Step, at time.Time) (Seen, time.Time) {
	switch step.Action {
	case SetDeadline:
		seen.Claim.Deadline = seen.Claim.LastMoment()
	case DeleteNode:
		seen.Node.Deleted = at
		if !seen.Node.Finalizer {
			seen.Node = Node{}
		}
	case Cordon:
		seen.Node.Closed, seen.Node.Cordoned = true, true
	case Evict:
		seen.Node.Pods = 0
	case Terminate:
		seen.Machine.State = MachineEnding
	case ReleaseNode:
		seen.Node = Node{}
	case Release:
		seen.Claim = Claim{}
	case Wait:
		at = at.Add(Poll)
		switch step.Reason {
		case WaitMachineAnswer:
			seen.Machine.State = MachineRunning
		case WaitMachineEnd, WaitUnmarked: // for WaitUnmarked the user terminates the instance
			seen.Machine.State = MachineAbsent
		case WaitNodeGone:
			seen.Node = Node{}
		case WaitVolumes:
			seen.Node.Volumes = 0
		}
	default:
	}
	return seen, at
}

// TestNextAnswers writes the answers in a readable form, with at most one unusual axis at a time. States of the Node
// with the same answer share a line; the answer with most states has "others". Cases with the same answers share a
// block.
func TestNextAnswers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# What Next answers. Claims are 1 s old with a finalizer and a ready node class unless the line says otherwise.\n")
	last := ""
	for _, seen := range readableCases() {
		block := answersByNode(seen.Seen)
		if block != last {
			out.WriteString(last + "\n")
		}
		out.WriteString(seen.name + "\n")
		last = block
	}
	golden(t, "next.txt", out.String()+last)
}

// answersByNode returns one line per answer, with the states of the Node that lead to it.
func answersByNode(seen Seen) string {
	var answers []string
	nodes := map[string][]string{}
	most := ""
	for _, value := range axes()[nodeAxis].values {
		next := seen
		value.set(&next)
		answer := formatStep(Next(next, now))
		if nodes[answer] == nil {
			answers = append(answers, answer)
		}
		nodes[answer] = append(nodes[answer], value.name)
		if len(nodes[answer]) > len(nodes[most]) {
			most = answer
		}
	}
	var out strings.Builder
	for _, answer := range answers {
		which := strings.Join(nodes[answer], " ")
		switch {
		case len(answers) == 1:
			which = "*"
		case answer == most && len(nodes[answer]) > 1:
			continue // the last line
		}
		fmt.Fprintf(&out, "  node %s: %s\n", which, answer)
	}
	if len(answers) > 1 && len(nodes[most]) > 1 {
		fmt.Fprintf(&out, "  others: %s\n", most)
	}
	return out.String()
}

const nodeAxis, machineAxis, deletedAxis = 7, 6, 4

type readableCase struct {
	name string
	Seen
}

// readableCases returns the combinations in which at most one axis other than claim, deleted and instance is unusual.
func readableCases() []readableCase {
	var out []readableCase
	everything(func(names []string, seen Seen) {
		if names[nodeAxis] != "none" {
			return
		}
		unusual := 0
		parts := []string{"claim " + names[0]}
		for i, a := range axes()[:nodeAxis] {
			if i == 0 || names[i] == a.values[0].name {
				continue
			}
			parts = append(parts, a.name+" "+names[i])
			if i != deletedAxis && i != machineAxis {
				unusual++
			}
		}
		if unusual == 0 || unusual == 1 && names[deletedAxis] == "no" && names[machineAxis] == "unknown" {
			out = append(out, readableCase{strings.Join(parts, ", "), seen})
		}
	})
	return out
}

func formatStep(step Step) string {
	parts := []string{string(step.Phase), string(step.Action), step.Reason, step.Detail}
	if !step.Until.IsZero() {
		parts = append(parts, "for", step.Until.Sub(now).String())
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s has changed (-want +got); review it and run with -rewrite:\n%s", file, diff)
	}
}

// TestLastMoment: the wait for a replacement reduces the termination grace period.
func TestLastMoment(t *testing.T) {
	t.Parallel()
	hour, none := time.Hour, time.Duration(0)
	asked := Replacement{State: ReplacementAsked, Since: ago(10 * time.Minute)}
	for name, c := range map[string]struct {
		claim Claim
		want  time.Time
	}{
		"no grace period": {Claim{Deleted: now, Replacement: asked}, time.Time{}},
		"not deleted":     {Claim{Grace: &hour}, time.Time{}},
		"deleted":         {Claim{Deleted: now, Grace: &hour}, now.Add(hour)},
		"replaced first":  {Claim{Deleted: now, Grace: &hour, Replacement: asked}, now.Add(50 * time.Minute)},
		"long wait for the replacement": {Claim{Deleted: now, Grace: &hour,
			Replacement: Replacement{State: ReplacementAsked, Since: ago(3 * hour)}}, now.Add(30 * time.Minute)},
		"grace period of zero": {Claim{Deleted: now, Grace: &none}, now},
		"queued replacement": {Claim{Deleted: now, Grace: &hour,
			Replacement: Replacement{State: ReplacementQueued, Since: ago(hour)}}, now.Add(hour)},
	} {
		if got := c.claim.LastMoment(); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
