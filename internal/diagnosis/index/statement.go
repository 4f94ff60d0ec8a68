package index

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// StatementLines returns the first four statements that contain all substrings, as lines of evidence such as
// "NodeClaim x: …".
func (ix *Index) StatementLines(substrings ...string) []string {
	var out []string
	for _, s := range ix.StatementsWith(substrings...) {
		if line := s.String(); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out[:min(len(out), 4)]
}

// controllerEvents returns the events that the controller has written (see IsOfController) about existing NodeClaims,
// EC2NodeClasses and NodePools. An event must have the present UID of its object.
func (ix *Index) controllerEvents() []diagnosis.Event {
	uids := map[string]string{}
	for _, c := range ix.Evidence.Claims.Value {
		uids["NodeClaim "+c.Name] = c.UID
	}
	for _, c := range ix.Evidence.Classes.Value {
		uids["EC2NodeClass "+c.Name] = c.UID
	}
	for _, p := range ix.Evidence.Pools.Value {
		uids["NodePool "+p.Name] = p.UID
	}
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Events.Value), func(v diagnosis.Event) bool {
		return !v.IsOfController() || v.UID == "" || v.UID != uids[v.Kind+" "+v.Name]
	})
}

// ControllerStatements returns the statements of controllerEvents whose problem is not over (see isEventOver). A
// statement must contain all substrings of at least one alternative, ignoring case.
func (ix *Index) ControllerStatements(alternatives ...[]string) []Statement {
	var out []Statement
	for _, v := range ix.controllerEvents() {
		text := strings.Join(strings.Fields(v.Reason+": "+v.Message), " ")
		matches := slices.ContainsFunc(alternatives, func(substrings []string) bool {
			lacks := func(sub string) bool { return !strings.Contains(strings.ToLower(text), strings.ToLower(sub)) }
			return !slices.ContainsFunc(substrings, lacks)
		})
		s := Statement{Subject: "event on " + v.Kind + " " + v.Name, Text: text, Class: ix.classOf(v)}
		if matches && !ix.isEventOver(v) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// PodMessages returns, as lines of evidence, the first four messages of pods that contain the text. Messages come from
// conditions, containers and events. Tenants control the messages of their pods.
func (ix *Index) PodMessages(text string) []string {
	const most = 4
	var out []string
	for _, p := range ix.Evidence.Pods.Value {
		for _, m := range slices.Concat(p.Messages, p.Events) {
			if len(out) < most && strings.Contains(m, text) {
				out = append(out, "pod "+p.String()+": "+diagnosis.Shorten(m))
			}
		}
	}
	return out
}

// EvidenceLines returns each statement as a line of evidence.
func EvidenceLines(statements []Statement) []string {
	var out []string
	for _, s := range statements {
		out = append(out, s.String())
	}
	return out
}

// Statement is the message of a condition or of an event, or the reason that EC2 gives for the end of an instance.
type Statement struct {
	Subject  string // "NodeClaim x", "event on NodeClaim x", "instance i-1"
	Text     string // on one line
	Class    string // the EC2NodeClass of the subject; empty: not known
	TagsOnly bool   // the subject is an instance that only its tags link to this cluster
}

// String returns the statement as a line of evidence, without the encoded part of a denial, which only AWS can read.
func (s Statement) String() string {
	text, _, _ := strings.Cut(s.Text, " Encoded authorization failure message:")
	return s.Subject + ": " + diagnosis.Shorten(text)
}

// StatementsWith returns the statements that contain all substrings, ignoring case. They come from two sources:
//   - conditions of NodeClaims and EC2NodeClasses that are not True and repeat an answer of AWS: see isAnswer.
//   - state reasons of instances, which EC2 writes, unless their problem is over: see isInstanceProblemOver.
//
// Events are no source, because users can write them too.
func (ix *Index) StatementsWith(substrings ...string) []Statement {
	var out []Statement
	add := func(s Statement) {
		s.Text = strings.Join(strings.Fields(s.Text), " ")
		lower := strings.ToLower(s.Text)
		lacks := slices.ContainsFunc(substrings, func(sub string) bool { return !strings.Contains(lower, strings.ToLower(sub)) })
		if !lacks && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	addConditions := func(subject, class string, all []diagnosis.Condition) {
		for _, c := range all {
			if c.Status != "True" && isAnswer(c, substrings) {
				add(Statement{Subject: subject, Text: c.Reason + ": " + c.Message, Class: class})
			}
		}
	}
	for _, c := range ix.Evidence.Classes.Value {
		addConditions("EC2NodeClass "+c.Name, c.Name, c.Conditions)
	}
	for _, c := range ix.Evidence.Claims.Value {
		addConditions("NodeClaim "+c.Name, c.Class, c.Conditions)
	}
	for _, i := range ix.Evidence.Instances.Value {
		tagsOnly := i.Claim == "" && ix.mayBeOurs(i)
		if (i.Claim != "" || tagsOnly) && !ix.isInstanceProblemOver(i) {
			class := i.Class
			if tagsOnly {
				class = ""
			}
			add(Statement{Subject: "instance " + i.ID, Text: i.StateReason, Class: class, TagsOnly: tagsOnly})
		}
	}
	return out
}

// mayBeOurs reports whether the instance is tagged with this cluster's UID. If only AWS was read, the UID is not known,
// and every instance may belong to this cluster.
func (ix *Index) mayBeOurs(i diagnosis.Instance) bool {
	onlyAWSRead := !ix.Evidence.Claims.Known() && !ix.Evidence.Classes.Known()
	return onlyAWSRead || ix.Evidence.Identity.Known() && i.UID == ix.Evidence.Identity.Value.UID
}

// isAnswer reports whether the message of a condition counts as an answer of EC2 or IAM in a search for the substrings.
// The messages of four reasons count only in the one search that is about them, for example BlockDeviceMappingInvalid
// in a search for InvalidBlockDeviceMapping. Messages with other reasons do not count: they repeat input of the author
// of an EC2NodeClass, such as user data, tags and names.
func isAnswer(c diagnosis.Condition, substrings []string) bool {
	switch c.Reason {
	case "BlockDeviceMappingInvalid":
		return slices.Equal(substrings, []string{"InvalidBlockDeviceMapping"})
	case "UserDataSizeLimitExceeded":
		return slices.Equal(substrings, []string{"user data is limited to"})
	case "InstanceProfileNotFound", "InstanceProfileNameInvalid":
		return substrings[0] == "instance profile"
	case "Unauthorized", "UnauthorizedOperation", "SpotSLRCreationFailed", "KMSKeyUnusable",
		"MarketplaceSubscriptionMissing", "RegionNotEnabled",
		"VCPULimitExceeded", "SpotQuotaExceeded", "InsufficientFreeAddressesInSubnet", "InsufficientCapacity",
		"InsufficientCapacityError", "LaunchFailed":
		return true
	}
	return strings.HasSuffix(c.Reason, "AuthCheckFailed")
}

// isInstanceProblemOver reports whether the problem that ended an instance is over. It is over if the instance's
// EC2NodeClass no longer exists, or if a later instance of the class worked: its Node is ready, or Joiner or a user
// terminated the instance. EC2 lists instances for an hour after their end.
func (ix *Index) isInstanceProblemOver(i diagnosis.Instance) bool {
	if _, exists := ix.Evidence.Class(i.Class); !exists && ix.Evidence.Classes.Known() && i.Class != "" {
		return true
	}
	return slices.ContainsFunc(ix.Evidence.Instances.Value, func(later diagnosis.Instance) bool {
		node, isNode := ix.NodeByInstance[later.ID]
		hasWorked := isNode && node.Ready || !later.Runs() && strings.Contains(later.StateReason, "User initiated")
		return later.Class == i.Class && later.Launched.After(i.Launched) && hasWorked
	})
}

// FindClaim returns the NodeClaim with this name; false if there is none.
func (ix *Index) FindClaim(name string) (diagnosis.Claim, bool) {
	i := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.Name == name })
	if i < 0 {
		return diagnosis.Claim{}, false
	}
	return ix.Evidence.Claims.Value[i], true
}

// classOf returns the name of the EC2NodeClass of an event's object, a NodeClaim or EC2NodeClass; empty if not known.
func (ix *Index) classOf(v diagnosis.Event) string {
	switch v.Kind {
	case "NodeClaim":
		c, _ := ix.FindClaim(v.Name)
		return c.Class
	case "EC2NodeClass":
		return v.Name
	}
	return ""
}
