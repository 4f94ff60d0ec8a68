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

var rewrite = flag.Bool("rewrite", false, "rewrite the expected steps of Next")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// axis is one property of an observation, with all its values. The first value is the usual value.
type axis struct {
	name   string
	values []value
}

type value struct {
	name string
	set  func(*Observation)
}

func ago(d time.Duration) time.Time { return now.Add(-d) }

func axes() []axis {
	day, zero, minute := 24*time.Hour, time.Duration(0), time.Minute
	return []axis{
		{"claim", []value{
			{"created", func(s *Observation) {}},
			{"launched", func(s *Observation) { s.Claim.Launched = true }},
			{"launched-late", func(s *Observation) { s.Claim.Launched, s.Claim.LaunchedAt = true, ago(minute) }},
			{"registered", func(s *Observation) { s.Claim.Launched, s.Claim.Registered = true, true }},
			{"initialized", func(s *Observation) { s.Claim.Launched, s.Claim.Registered, s.Claim.Initialized = true, true, true }},
			{"unlabelled", func(s *Observation) {
				s.Claim.Launched, s.Claim.Registered, s.Claim.Initialized, s.Claim.Unlabelled = true, true, true, true
			}},
			{"outdated", func(s *Observation) { s.Claim.Launched, s.Claim.OutdatedAt = true, ago(time.Second) }},
			{"outdated-soon", func(s *Observation) { s.Claim.Launched, s.Claim.OutdatedAt = true, now.Add(10*time.Second) }},
			{"none", func(s *Observation) { s.Claim = Claim{} }},
		}},
		{"age", []value{
			{"1s", func(s *Observation) { s.Claim.Created = ago(time.Second) }},
			{"5m", func(s *Observation) { s.Claim.Created = ago(LaunchTimeout) }},
			{"15m", func(s *Observation) { s.Claim.Created = ago(RegistrationTimeout) }},
			{"1d", func(s *Observation) { s.Claim.Created = ago(day) }},
			// Expired, with a replacement:
			{"queued", expiredWith(ReplacementQueued, time.Minute)},
			{"queued-long", expiredWith(ReplacementQueued, MaxReplacementWait)},
			{"requested", expiredWith(ReplacementRequested, -1)}, // not recorded in the claim yet
			{"requested-noted", expiredWith(ReplacementRequested, time.Minute)},
			{"requested-long", expiredWith(ReplacementRequested, MaxReplacementWait)},
			{"requested-grace", func(s *Observation) { // for more than half of the grace period
				expiredWith(ReplacementRequested, 40*time.Second)(s)
				s.Claim.Grace = &minute
			}},
			{"requested-no-grace", func(s *Observation) {
				expiredWith(ReplacementRequested, -1)(s)
				s.Claim.Grace = &zero
			}},
			{"requested-apart", func(s *Observation) { // as in a static NodePool
				expiredWith(ReplacementRequested, time.Minute)(s)
				s.Claim.Replacement.NeedsNoPlan = true
			}},
			{"replaced", expiredWith(ReplacementReady, time.Minute)},
		}},
		{"expires", []value{
			{"1d", func(s *Observation) { s.Claim.ExpireAfter = &day }},
			{"never", func(s *Observation) { s.Claim.ExpireAfter = nil }},
		}},
		{"finalizer", []value{
			{"yes", func(s *Observation) { s.Claim.Finalizer = s.Claim.Exists }},
			{"no", func(s *Observation) { s.Claim.Finalizer = false }},
		}},
		{"deleted", []value{
			{"no", func(s *Observation) {}},
			{"yes", func(s *Observation) { s.Claim.Deleted = ago(time.Second) }},
			{"grace", func(s *Observation) { s.Claim.Deleted, s.Claim.Grace = ago(time.Second), &zero }},
			{"overdue", func(s *Observation) {
				s.Claim.Deleted, s.Claim.Grace, s.Claim.Deadline = ago(2*minute), &minute, ago(minute)
			}},
		}},
		{"launch", []value{
			{"free", func(s *Observation) { s.Claim.NodeClass = NodeClassReady }},
			{"class?", func(s *Observation) { s.Claim.NodeClass = NodeClassUnknown }},
			{"class-bad", func(s *Observation) { s.Claim.NodeClass = NodeClassNotReady }},
			{"class-gone", func(s *Observation) { s.Claim.NodeClass = NodeClassMissing }},
			{"shortage", func(s *Observation) { s.Claim.NodeClass, s.Claim.Shortage = NodeClassReady, true }},
			{"responded", func(s *Observation) { s.Claim.NodeClass, s.Claim.FirstResponse = NodeClassReady, ago(minute) }},
			{"backoff", func(s *Observation) { s.Claim.NodeClass, s.Claim.NotBefore = NodeClassReady, now.Add(10*time.Second) }},
			{"backoff-late", func(s *Observation) {
				s.Claim.NodeClass, s.Claim.FirstResponse, s.Claim.NotBefore = NodeClassReady, ago(minute), now.Add(10*time.Second)
			}},
			// In both, launchBy of a claim older than 6m is ago(minute). Only "waiting" could launch before it.
			{"waiting", func(s *Observation) {
				s.Claim.NodeClass, s.Claim.FirstResponse, s.Claim.NotBefore = NodeClassReady, ago(6*minute), ago(5*minute)
			}},
			{"too-late", func(s *Observation) {
				s.Claim.NodeClass, s.Claim.FirstResponse, s.Claim.NotBefore = NodeClassReady, ago(6*minute), ago(minute/2)
			}},
		}},
		{"instance", []value{
			{"unknown", func(s *Observation) { s.Instance.State = InstanceUnknown }},
			{"running", func(s *Observation) { s.Instance.State = InstanceRunning }},
			{"ending", func(s *Observation) { s.Instance.State = InstanceEnding }},
			{"absent", func(s *Observation) { s.Instance.State = InstanceAbsent }},
			{"foreign", func(s *Observation) { s.Instance = Instance{State: InstanceRunning, Foreign: true} }},
			{"untagged", func(s *Observation) { s.Instance = Instance{State: InstanceRunning, Untagged: true} }},
		}},
		{"node", []value{
			{"none", func(s *Observation) {}},
			{"mismatch", func(s *Observation) { s.Node = Node{Mismatch: "another name"} }},
			{"unconfirmed", func(s *Observation) { s.Node = Node{Mismatch: "another name", Unconfirmed: "no address"} }},
			{"young", func(s *Observation) { s.Node = Node{Count: 1} }},
			{"ready", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true} }},
			{"startup", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Startup: "cni"} }},
			// tainted: with the taint for nominations
			{"tainted", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, HasNominationTaint: true} }},
			{"tainted-ready", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: now}
			}},
			{"tainted-bind", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: now, BindAt: now}
			}},
			{"tainted-binding", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: ago(MaxNominationWait), IsBinding: true,
					OpenAt: now.Add(time.Millisecond)}
			}},
			{"tainted-blocked", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: now, ShouldCordon: true}
			}},
			{"cordoned", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: ago(MaxNominationWait), IsCordonedForPods: true,
					BindAt: now.Add(time.Millisecond), OpenAt: now.Add(time.Second)}
			}},
			{"cordoned-long", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: ago(MaxNominationWait + MaxCordon),
					IsCordonedForPods: true, OpenAt: now.Add(time.Second)}
			}},
			{"tainted-turn", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: now, OpenAt: now.Add(time.Millisecond)}
			}},
			{"tainted-ephemeral", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: now, Ephemeral: "not-ready"}
			}},
			{"tainted-long", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasNominationTaint: true, ReadySince: ago(MaxNominationWait), Ephemeral: "not-ready"}
			}},
			{"ephemeral", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Ephemeral: "not-ready"} }},
			{"lacks", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Lacks: "nvidia.com/gpu"} }},
			{"two", func(s *Observation) { s.Node = Node{Count: 2, Finalizer: true, Ready: true} }},
			{"deleted", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Deleted: ago(time.Second)} }},
			{"deleted-bare", func(s *Observation) { s.Node = Node{Count: 1, Deleted: ago(time.Second)} }},
			{"pods", func(s *Observation) { s.Node = deletedNode(time.Minute, 3, 1) }},
			{"settling", func(s *Observation) { s.Node = deletedNode(time.Second, 0, 1) }},
			{"volumes", func(s *Observation) { s.Node = deletedNode(time.Minute, 0, 1) }},
			{"empty", func(s *Observation) { s.Node = deletedNode(time.Minute, 0, 0) }},
			{"disrupted", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, HasDisruptedTaint: true} }},
			{"unwell", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ready: true, Ailment: HealthProblem{Condition: "KernelReady", Due: now.Add(minute)}}
			}},
			{"broken", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ailment: HealthProblem{Condition: "Ready", Due: ago(minute)}}
			}},
			{"broken-held", func(s *Observation) {
				s.Node = Node{Count: 1, Finalizer: true, Ailment: HealthProblem{Condition: "Ready", Due: ago(minute), IsRepairBlocked: true}}
			}},
			{"lost", func(s *Observation) { s.Node = Node{MissingSince: ago(LostTimeout)} }},
			{"lost-now", func(s *Observation) { s.Node = Node{MissingSince: ago(time.Second)} }},
			{"recreated", func(s *Observation) { s.Node = Node{Count: 1, Ready: true, Recreated: s.Claim.Registered} }},
			{"strays", func(s *Observation) { s.Node = Node{Count: 1, Finalizer: true, Ready: true, Strays: 1} }},
			{"recreated-strays", func(s *Observation) { s.Node = Node{Count: 1, Ready: true, Recreated: s.Claim.Registered, Strays: 1} }},
			// held: by another controller's finalizer
			{"deleted-held", func(s *Observation) { s.Node = deletedNode(time.Minute, 0, 0); s.Node.Finalizer = false }},
			{"empty-dead", func(s *Observation) { s.Node = deletedNode(time.Minute, 0, 0); s.Node.Ready = false }},
		}},
	}
}

// deletedNode returns a cordoned Node that was deleted at ago(since).
func deletedNode(since time.Duration, pods, volumes int) Node {
	return Node{Count: 1, Finalizer: true, Ready: true, Deleted: ago(since), HasDisruptedTaint: true, Cordoned: true, Pods: pods, Volumes: volumes}
}

// expiredWith returns a change that makes the claim expired, and sets its replacement to the state for the time since.
// A negative since leaves Replacement.Since zero.
func expiredWith(state ReplacementState, since time.Duration) func(*Observation) {
	return func(s *Observation) {
		day := 24 * time.Hour
		s.Claim.Created, s.Claim.ExpireAfter = ago(day), &day
		s.Claim.Replacement = Replacement{State: state}
		if since >= 0 {
			s.Claim.Replacement.Since = ago(since)
		}
	}
}

// forEachCombination calls f with each combination of values. f must not keep names, which the next call overwrites.
func forEachCombination(f func(names []string, seen Observation)) {
	all := axes()
	names := make([]string, len(all))
	var walk func(i int, seen Observation)
	walk = func(i int, seen Observation) {
		if i == len(all) {
			f(names, seen)
			return
		}
		for _, v := range all[i].values {
			next := seen
			v.set(&next)
			names[i] = v.name
			walk(i+1, next)
		}
	}
	walk(0, Observation{Claim: Claim{Exists: true}})
}

// TestNextIsTotal: for every combination of values, Next returns a step that violates no invariant.
func TestNextIsTotal(t *testing.T) {
	t.Parallel()
	count := 0
	forEachCombination(func(names []string, seen Observation) {
		count++
		step := Next(seen, now)
		if violated := violatedInvariant(seen, step); violated != "" {
			t.Fatalf("%s: violated invariant: %s\nstep: %+v", strings.Join(names, " "), violated, step)
		}
	})
	if count < 100_000 {
		t.Errorf("%d combinations were tried, want at least 100000", count)
	}
}

// violatedInvariant returns the first invariant that the step violates; empty if there is none. Most invariants are
// implications: `step.Action != Launch || c.Finalizer` requires the finalizer for a launch.
func violatedInvariant(seen Observation, step Step) string {
	c, n, i := seen.Claim, seen.Node, seen.Instance
	isOurs := i.State == InstanceRunning && !i.Foreign
	mayRun := i.State == InstanceRunning || i.State == InstanceUnknown
	for _, invariant := range []struct {
		text  string
		holds bool
	}{
		{"there is a phase and an action", step.Phase != "" && step.Action != ""},
		{"a wait has a reason", step.Action != Wait || step.Reason != ""},
		{"a wait ends in the future", step.Until.IsZero() || step.Until.After(now)},
		{"a deletion has a reason", step.Action != Delete || step.Reason != ""},
		{"a deleted claim is not deleted again", step.Action != Delete || c.Exists && c.Deleted.IsZero()},
		{"a deleted claim drains or is gone", c.Deleted.IsZero() || step.Phase == Draining || step.Phase == Gone},
		{"only a deleted claim drains", step.Phase != Draining || !c.Deleted.IsZero() || !c.Exists},
		{"an expired, ready node without a grace period stays until its replacement is ready, or for MaxReplacementWait",
			step.Reason != ReasonExpired || !n.Ready || n.Count != 1 || !c.Initialized ||
				c.Replacement.State == ReplacementNone || c.Replacement.State == ReplacementReady || c.Grace != nil ||
				isPast(c.Replacement.Since, ago(MaxReplacementWait))},
		{"an expired node does not wait forever for its replacement",
			step.Reason != WaitTurn && step.Reason != WaitReplacement || !isPast(c.Replacement.Since, ago(MaxReplacementWait)) && !step.Until.IsZero()},
		{"only a registered node whose repair is due is deleted as unhealthy",
			step.Reason != ReasonUnhealthy || c.Registered && !n.Ailment.IsRepairBlocked && isPast(n.Ailment.Due, now)},
		{"an unhealthy node is checked again",
			step.Action != Wait || step.Phase != Ready && step.Phase != Registered || n.Ailment.Condition == "" || !step.Until.IsZero()},
		{"only an expired claim is replaced", step.Action != Replace || c.Expired(now)},
		{"no launch without a finalizer", step.Action != Launch || c.Finalizer},
		{"no second launch", step.Action != Launch || !c.Launched && !isOurs},
		{"no launch for a deleted claim", step.Action != Launch || c.Deleted.IsZero() && c.Exists},
		{"no launch after the timeout, unless it was allowed before", step.Action != Launch || now.Sub(c.Created) < LaunchTimeout ||
			now.Sub(c.FirstResponse) < LaunchTimeout || c.NotBefore.Before(latest(c.Created, c.FirstResponse).Add(LaunchTimeout))},
		{"a claim without an instance is deleted after the timeout",
			step.Phase != Created || step.Action != Wait || !isPast(latest(c.Created, c.FirstResponse).Add(LaunchTimeout), now)},
		{"no launch unless the node class is ready", step.Action != Launch || c.NodeClass == NodeClassReady},
		{"only our running instance is terminated", step.Action != Terminate || isOurs},
		{"the instance of a claim that is not deleted stays", step.Action != Terminate || !c.Exists || !c.Deleted.IsZero()},
		{"the instance ends before its claim", step.Action != RemoveFinalizer || !mayRun || i.Foreign},
		{"the instance ends before its Node", step.Action != RemoveNodeFinalizer || !mayRun || i.Foreign},
		{"the Node is removed before the claim", step.Action != RemoveFinalizer || n.Count == 0},
		{"pods leave before the instance ends", step.Action != Terminate || n.Pods == 0 || !c.Registered && !n.Finalizer},
		{"a Node is cordoned before its pods are evicted", step.Action != Evict || n.Cordoned},
		{"attached volumes keep the instance until the deadline",
			step.Action != Terminate || n.Volumes == 0 || n.Deleted.IsZero() || !c.Deadline.IsZero()},
		{"an instance has the full time to join",
			step.Reason != ReasonRegistrationTimeout || now.Sub(latest(c.Created, c.LaunchedAt)) >= RegistrationTimeout},
		{"a joined node is not deleted by the registration timeout", step.Reason != ReasonRegistrationTimeout || n.Count != 1},
		{"a ready node is not treated as gone", step.Reason != ReasonInstanceGone || !n.Ready},
		{"only a single Node that is not registered, or was recreated, is registered",
			step.Action != Register || n.Count == 1 && (!c.Registered || n.Recreated)},
		{"the finalizer of another controller does not keep the instance", step.Reason != WaitNodeGone || !mayRun || i.Foreign},
		{"a claim whose Node is lost is deleted",
			!c.Registered || !isPast(n.MissingSince, ago(LostTimeout)) || step.Action == Delete || step.Action == AddFinalizer ||
				step.Action == AddLabels || !c.Deleted.IsZero()},
		{"only an unlabelled claim that is not deleted gets labels", step.Action != AddLabels || c.Unlabelled && c.Deleted.IsZero()},
		{"strays are deleted only beside a ready, registered Node",
			step.Action != DropStrays || n.Strays > 0 && n.Ready && c.Registered && !n.Recreated && c.Deleted.IsZero()},
		{"only a node ready for pods is initialized",
			step.Action != Initialize || n.Ready && n.Startup == "" && n.Ephemeral == "" && n.Lacks == ""},
		{"the taint for nominations, or a cordon in its place, stays until the Node's turn, at most until openingLimit",
			step.Action != RemoveNominationTaint || !n.OpenAt.After(now) || isPast(n.openingLimit(), now)},
		{"a Node opens after its pods are bound", step.Action != RemoveNominationTaint || !n.IsBinding && !n.canBind(now)},
		{"pods are bound only behind the taint",
			step.Action != BindPods || n.HasNominationTaint && n.Ready && n.Startup == "" && n.Ephemeral == ""},
		{"Gone is the last phase", step.Phase != Gone || step.Action == Wait && step.Until.IsZero()},
	} {
		if !invariant.holds {
			return invariant.text
		}
	}
	return ""
}

// TestEveryDeletedClaimEnds applies the effect of each step and asserts that Gone is reached.
func TestEveryDeletedClaimEnds(t *testing.T) {
	t.Parallel()
	forEachCombination(func(names []string, seen Observation) {
		if seen.Claim.Deleted.IsZero() || t.Failed() {
			return
		}
		at := now
		for range 20 {
			step := Next(seen, at)
			if step.Phase == Gone {
				return
			}
			seen, at = afterStep(seen, step, at)
		}
		t.Errorf("%s: not gone after 20 steps: observation %+v, next step %+v", strings.Join(names, " "), seen, Next(seen, at))
	})
}

// afterStep returns the observation and the time after a step of a deletion, if the step succeeds.
func afterStep(seen Observation, step Step, at time.Time) (Observation, time.Time) {
	switch step.Action {
	case SetDeadline:
		seen.Claim.Deadline = seen.Claim.LastMoment()
	case DeleteNode:
		seen.Node.Deleted = at
		if !seen.Node.Finalizer {
			seen.Node = Node{}
		}
	case Cordon:
		seen.Node.HasDisruptedTaint, seen.Node.Cordoned = true, true
	case Evict:
		seen.Node.Pods = 0
	case Terminate:
		seen.Instance.State = InstanceEnding
	case RemoveNodeFinalizer:
		seen.Node = Node{}
	case RemoveFinalizer:
		seen.Claim = Claim{}
	case Wait:
		at = at.Add(Poll)
		switch step.Reason {
		case WaitInstanceAnswer:
			seen.Instance.State = InstanceRunning
		case WaitInstanceEnd, WaitUntagged: // for WaitUntagged the user terminates the instance
			seen.Instance.State = InstanceAbsent
		case WaitNodeGone:
			seen.Node = Node{}
		case WaitVolumes:
			seen.Node.Volumes = 0
		}
	default:
	}
	return seen, at
}

// TestNextAnswers compares the answers of Next with a golden file that people can review. All cases with the same
// answers share a block. States of the Node with the same answer share a line; "others" are the states with the most
// frequent answer.
func TestNextAnswers(t *testing.T) {
	t.Parallel()
	var blocks []string
	cases := map[string][]string{} // names of the cases by block
	for _, seen := range readableCases() {
		block := answersByNode(seen.Observation)
		if cases[block] == nil {
			blocks = append(blocks, block)
		}
		cases[block] = append(cases[block], seen.name)
	}
	var out strings.Builder
	out.WriteString("# What Next answers. Claims are 1 s old with a finalizer and a ready node class unless the line says otherwise.\n" +
		"# \"|\" separates values of the word before the first one.\n")
	for _, block := range blocks {
		fmt.Fprintf(&out, "\n%s\n%s", inLines(cases[block]), block)
	}
	golden(t, "next.txt", out.String())
}

// inLines returns the names of cases in lines. Names that differ only in their last word share a line.
func inLines(names []string) string {
	var out strings.Builder
	previous := ""
	for i, name := range names {
		cut := strings.LastIndexByte(name, ' ')
		switch {
		case name[:cut] == previous:
			out.WriteString(" |" + name[cut:])
			continue
		case i > 0:
			out.WriteByte('\n')
		}
		out.WriteString(name)
		previous = name[:cut]
	}
	return out.String()
}

// answersByNode returns one line per answer, with the states of the Node that lead to it.
func answersByNode(seen Observation) string {
	var answers []string
	nodes := map[string][]string{} // names of the states by answer
	most := ""                     // the most frequent answer
	for _, state := range axes()[nodeAxis].values {
		next := seen
		state.set(&next)
		answer := formatStep(Next(next, now))
		if nodes[answer] == nil {
			answers = append(answers, answer)
		}
		nodes[answer] = append(nodes[answer], state.name)
		if len(nodes[answer]) > len(nodes[most]) {
			most = answer
		}
	}
	var out strings.Builder
	for _, answer := range answers {
		states := strings.Join(nodes[answer], " ")
		switch {
		case len(answers) == 1:
			states = "*"
		case answer == most && len(nodes[answer]) > 1:
			continue // others: the last line
		}
		fmt.Fprintf(&out, "  node %s: %s\n", states, answer)
	}
	if len(answers) > 1 && len(nodes[most]) > 1 {
		fmt.Fprintf(&out, "  others: %s\n", most)
	}
	return out.String()
}

// The indices of some axes in axes.
const nodeAxis, instanceAxis, deletedAxis = 7, 6, 4

// readableCase is an observation without a Node, and the names of its values.
type readableCase struct {
	name string
	Observation
}

// readableCases returns, for each value of the axis claim: all combinations of deleted and instance, with the usual
// values of the remaining axes; and each unusual value of a remaining axis, with the usual deleted and instance.
func readableCases() []readableCase {
	var out []readableCase
	forEachCombination(func(names []string, seen Observation) {
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
			if i != deletedAxis && i != instanceAxis {
				unusual++
			}
		}
		if unusual == 0 || unusual == 1 && names[deletedAxis] == "no" && names[instanceAxis] == "unknown" {
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

// golden compares got with a file in testdata, or writes the file with -rewrite.
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

// TestLastMoment: the wait for a replacement is part of the termination grace period.
func TestLastMoment(t *testing.T) {
	t.Parallel()
	hour, zero := time.Hour, time.Duration(0)
	requested := Replacement{State: ReplacementRequested, Since: ago(10 * time.Minute)}
	for name, c := range map[string]struct {
		claim Claim
		want  time.Time
	}{
		"no grace period":             {Claim{Deleted: now, Replacement: requested}, time.Time{}},
		"not deleted":                 {Claim{Grace: &hour}, time.Time{}},
		"deleted":                     {Claim{Deleted: now, Grace: &hour}, now.Add(hour)},
		"requested 10 minutes before": {Claim{Deleted: now, Grace: &hour, Replacement: requested}, now.Add(50 * time.Minute)},
		"half of the period remains": {Claim{Deleted: now, Grace: &hour,
			Replacement: Replacement{State: ReplacementRequested, Since: ago(3 * hour)}}, now.Add(30 * time.Minute)},
		"grace period of zero": {Claim{Deleted: now, Grace: &zero}, now},
		"queued replacement": {Claim{Deleted: now, Grace: &hour,
			Replacement: Replacement{State: ReplacementQueued, Since: ago(hour)}}, now.Add(hour)},
	} {
		if got := c.claim.LastMoment(); !got.Equal(c.want) {
			t.Errorf("%s: LastMoment %v, want %v", name, got, c.want)
		}
	}
}
