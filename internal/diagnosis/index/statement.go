package index

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// StatementLines returns the first four statements that contain all of the words, as lines of evidence: "NodeClaim x:
// …".
func (ix *Index) StatementLines(words ...string) []string {
	var out []string
	for _, s := range ix.StatementsWith(words...) {
		if line := s.String(); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out[:min(len(out), 4)]
}

// controllerEvents returns the events that the controller has written about existing objects: see IsOfController. An
// event must have the present UID of its object.
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

// ControllerStatements returns the statements of the controller's own events about existing objects. A statement must
// contain all words of at least one alternative.
func (ix *Index) ControllerStatements(alternatives ...[]string) []Statement {
	var out []Statement
	for _, v := range ix.controllerEvents() {
		text := strings.Join(strings.Fields(v.Reason+": "+v.Message), " ")
		hasWords := slices.ContainsFunc(alternatives, func(words []string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(text), strings.ToLower(w)) })
		})
		s := Statement{Subject: "event on " + v.Kind + " " + v.Name, Text: text, Class: ix.classOf(v)}
		if hasWords && !ix.isPast(v) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// PodMessages returns the first four messages of pods that contain the words, as lines of evidence. Messages come from
// conditions, containers and events. Tenants control the messages of their pods.
func (ix *Index) PodMessages(words string) []string {
	const most = 4
	var out []string
	for _, p := range ix.Evidence.Pods.Value {
		for _, m := range slices.Concat(p.Messages, p.Events) {
			if len(out) < most && strings.Contains(m, words) {
				out = append(out, "pod "+p.String()+": "+diagnosis.Quote(m))
			}
		}
	}
	return out
}

// Sentences returns the statements as lines of evidence.
func Sentences(all []Statement) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.String())
	}
	return out
}

// Statement is a message of a condition, of an event or of EC2.
type Statement struct {
	Subject string // "NodeClaim x", "event on NodeClaim x"
	Text    string // on one line
	Class   string // the EC2NodeClass of the subject; empty: not known
	Tagged  bool   // only the tags of an instance link it to this cluster
}

// String returns the statement as a line of evidence. The encoded part of a denial, which only AWS can read, is left
// out.
func (s Statement) String() string {
	text, _, _ := strings.Cut(s.Text, " Encoded authorization failure message:")
	return s.Subject + ": " + diagnosis.Quote(text)
}

// StatementsWith returns the statements that contain all of the words, ignoring case. Statements are the conditions of
// NodeClaims and EC2NodeClasses and the state reasons of instances, which repeat answers of EC2. Events are left out,
// because other users can write them. State reasons about problems that are over are left out too.
func (ix *Index) StatementsWith(words ...string) []Statement {
	var out []Statement
	add := func(s Statement) {
		s.Text = strings.Join(strings.Fields(s.Text), " ")
		lower := strings.ToLower(s.Text)
		lacks := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, strings.ToLower(w)) })
		if !lacks && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	conditions := func(subject, class string, all []diagnosis.Condition) {
		for _, c := range all {
			if c.Status != "True" && isAnswer(c, words) {
				add(Statement{Subject: subject, Text: c.Reason + ": " + c.Message, Class: class})
			}
		}
	}
	for _, c := range ix.Evidence.Classes.Value {
		conditions("EC2NodeClass "+c.Name, c.Name, c.Conditions)
	}
	for _, c := range ix.Evidence.Claims.Value {
		conditions("NodeClaim "+c.Name, c.Class, c.Conditions)
	}
	for _, i := range ix.Evidence.Instances.Value {
		isTagged := i.Claim == "" && ix.isTaggedOurs(i)
		if (i.Claim != "" || isTagged) && !ix.isOver(i) {
			class := i.Class
			if isTagged {
				class = ""
			}
			add(Statement{Subject: "instance " + i.ID, Text: i.StateReason, Class: class, Tagged: isTagged})
		}
	}
	return out
}

// isTaggedOurs reports whether the instance is tagged with this cluster's UID. If only AWS was read, the UID is not
// known, and isTaggedOurs is true for all instances.
func (ix *Index) isTaggedOurs(i diagnosis.Instance) bool {
	isAWSAlone := !ix.Evidence.Claims.Known() && !ix.Evidence.Classes.Known()
	return isAWSAlone || ix.Evidence.Home.Known() && i.UID == ix.Evidence.Home.Value.UID
}

// isAnswer reports whether the condition repeats an answer of EC2 or IAM about the words. Conditions with other reasons
// repeat input of the author of an EC2NodeClass: user data, tags, names.
func isAnswer(c diagnosis.Condition, words []string) bool {
	switch c.Reason {
	case "BlockDeviceMappingInvalid":
		return slices.Equal(words, []string{"InvalidBlockDeviceMapping"})
	case "UserDataSizeLimitExceeded":
		return slices.Equal(words, []string{"user data is limited to"})
	case "InstanceProfileNotFound", "InstanceProfileNameInvalid":
		return words[0] == "instance profile"
	case "Unauthorized", "UnauthorizedOperation", "SpotSLRCreationFailed", "KMSKeyUnusable",
		"MarketplaceSubscriptionMissing", "RegionNotEnabled",
		"VCPULimitExceeded", "SpotQuotaExceeded", "InsufficientFreeAddressesInSubnet", "InsufficientCapacity",
		"InsufficientCapacityError", "LaunchFailed":
		return true
	}
	return strings.HasSuffix(c.Reason, "AuthCheckFailed")
}

// isOver reports whether the problem that ended an instance is over: its class is gone, or a later instance of the
// class became a node or was terminated by a user. EC2 lists instances for an hour after their end.
func (ix *Index) isOver(i diagnosis.Instance) bool {
	if _, exists := ix.Evidence.Class(i.Class); !exists && ix.Evidence.Classes.Known() && i.Class != "" {
		return true
	}
	return slices.ContainsFunc(ix.Evidence.Instances.Value, func(later diagnosis.Instance) bool {
		node, isNode := ix.NodeByInstance[later.ID]
		hasWorked := isNode && node.Ready || !later.Runs() && strings.Contains(later.StateReason, "User initiated")
		return later.Class == i.Class && later.Launched.After(i.Launched) && hasWorked
	})
}

// FindClaim returns the NodeClaim with this name.
func (ix *Index) FindClaim(name string) (diagnosis.Claim, bool) {
	i := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.Name == name })
	if i < 0 {
		return diagnosis.Claim{}, false
	}
	return ix.Evidence.Claims.Value[i], true
}

// classOf returns the name of the EC2NodeClass that an event is about, itself or through a NodeClaim; empty if not
// known.
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
