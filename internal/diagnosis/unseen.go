package diagnosis

import (
	"slices"
	"strings"
)

// UnreadableSystem is a system that could not be read at all. It may have problems that no finding is about.
type UnreadableSystem struct {
	System string `json:"system"` // "Kubernetes" or "AWS"
	Why    string `json:"why"`    // one line
	// Answered is true if the system answered but permitted none of the requests. The Unknown finding of each check
	// names the missing permission.
	Answered bool `json:"answered,omitempty"`

	own    []itemState // items that show whether System answers
	others []itemState // all items of the other system
}

// UnreadableSystems returns the systems that returned no item and did not report that an item does not exist.
func (e Evidence) UnreadableSystems() []UnreadableSystem {
	var out []UnreadableSystem
	for _, s := range []struct {
		system      string
		own, others []itemState
	}{
		{"Kubernetes", e.ofKubernetes(), slices.Concat(e.ofAWS(), e.restOfAWS())},
		{"AWS", e.ofAWS(), e.ofKubernetes()},
	} {
		if slices.ContainsFunc(s.own, func(i itemState) bool { return i.known || i.Is(Missing) }) {
			continue
		}
		denied := slices.IndexFunc(s.own, func(i itemState) bool { return i.Is(Denied) })
		u := UnreadableSystem{System: s.system, Why: s.own[0].why(), Answered: denied >= 0, own: s.own, others: s.others}
		if u.Answered {
			u.Why = "every request was denied, for instance the permission " + s.own[denied].Why + " is missing"
		}
		out = append(out, u)
	}
	return out
}

// String returns the system and the reason on one line.
func (u UnreadableSystem) String() string {
	if u.Answered {
		return u.System + " could not be read: " + u.Why
	}
	return u.System + " could not be reached: " + u.Why
}

// Explains reports whether the verdict of the finding is Unknown because the system did not answer. A finding contains
// only the reason, not the system, so Explains compares reasons. It returns false if an item of the other system is
// absent for the same reason.
func (u UnreadableSystem) Explains(f Finding) bool {
	isReason := func(i itemState) bool { return !i.Is(Denied) && i.Why != "" && strings.HasSuffix(f.Cause, ": "+i.Why) }
	return f.Verdict == Unknown && slices.ContainsFunc(u.own, isReason) && !slices.ContainsFunc(u.others, isReason)
}

type itemState struct {
	Item[struct{}]
	known bool // the original item has a value
}

func stateOf[T any](i Item[T]) itemState {
	return itemState{Item: Item[struct{}]{Source: i.Source, Absent: i.Absent, Why: i.Why}, known: i.Known()}
}

// why returns why the item is absent. If Why is empty, it returns a text for a failed call or for no call.
func (i itemState) why() string {
	switch {
	case i.Why != "":
		return i.Why
	case i.Absent == Failed:
		return "the call failed without a reason"
	}
	return "no call was made"
}

// ofKubernetes returns the items that are read from Kubernetes. UnreadableSystems reports the first item's reason for
// all.
func (e Evidence) ofKubernetes() []itemState {
	return []itemState{stateOf(e.Identity), stateOf(e.AuthMap), stateOf(e.Controller), stateOf(e.Lease), stateOf(e.Classes),
		stateOf(e.Pools), stateOf(e.Claims), stateOf(e.Nodes),
		stateOf(e.Pods), stateOf(e.Daemons), stateOf(e.Events)}
}

// ofAWS returns the items that show whether AWS answers. UnreadableSystems reports the first item's reason for all. The
// caller identity is missing, because it needs no permission. So are items that are requested only for known objects,
// such as images.
func (e Evidence) ofAWS() []itemState {
	return []itemState{stateOf(e.Cluster), stateOf(e.Entries), stateOf(e.NodeGroups), stateOf(e.Fargate), stateOf(e.VPC),
		stateOf(e.Subnets), stateOf(e.Routes),
		stateOf(e.Endpoints), stateOf(e.ACLs), stateOf(e.Groups), stateOf(e.NATAddresses),
		stateOf(e.Instances), stateOf(e.Impaired)}
}

// restOfAWS returns the items of AWS that are not in ofAWS. Explains compares their reasons too.
func (e Evidence) restOfAWS() []itemState {
	out := []itemState{stateOf(e.Caller), stateOf(e.Images)}
	for _, r := range e.Roles {
		out = append(out, stateOf(r))
	}
	for _, p := range e.Profiles {
		out = append(out, stateOf(p))
	}
	for _, p := range e.PassRole {
		out = append(out, stateOf(p))
	}
	for _, i := range e.Instances.Value {
		out = append(out, stateOf(i.Console))
	}
	return out
}
