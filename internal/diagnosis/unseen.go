package diagnosis

import (
	"slices"
	"strings"
)

// UnreadableSystem is a system that could not be read at all. It may have problems although there are no findings about
// it.
type UnreadableSystem struct {
	System string `json:"system"` // "Kubernetes" or "AWS"
	Why    string `json:"why"`    // one line
	// Answered is true if the system answered but permitted none of the requests. The Unknown finding of each check
	// names the missing permission.
	Answered bool `json:"answered,omitempty"`

	all    []absent // all items of System
	others []absent // all items of the other system
}

// UnreadableSystems returns the systems that could not be read at all. A system that returned any item, or reported
// that an item does not exist, is not among them.
func (e Evidence) UnreadableSystems() []UnreadableSystem {
	var out []UnreadableSystem
	for _, s := range []struct {
		system      string
		all, others []absent
	}{
		{"Kubernetes", e.ofKubernetes(), slices.Concat(e.ofAWS(), e.restOfAWS())},
		{"AWS", e.ofAWS(), e.ofKubernetes()},
	} {
		if slices.ContainsFunc(s.all, func(a absent) bool { return a.known || a.Is(Missing) }) {
			continue
		}
		denied := slices.IndexFunc(s.all, func(a absent) bool { return a.Is(Denied) })
		u := UnreadableSystem{System: s.system, Why: s.all[0].why(), Answered: denied >= 0, all: s.all, others: s.others}
		if u.Answered {
			u.Why = "every request was denied, for instance the permission " + s.all[denied].Why + " is missing"
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
	isReason := func(a absent) bool { return !a.Is(Denied) && a.Why != "" && strings.HasSuffix(f.Cause, ": "+a.Why) }
	return f.Verdict == Unknown && slices.ContainsFunc(u.all, isReason) && !slices.ContainsFunc(u.others, isReason)
}

// absent is an Item without its value.
type absent struct {
	Item[struct{}]
	known bool // the original item has a value
}

func withoutValue[T any](i Item[T]) absent {
	return absent{Item: Item[struct{}]{Source: i.Source, Absent: i.Absent, Why: i.Why}, known: i.Known()}
}

// why returns the reason why the item is absent. Without a reason, it returns a text for a failed call or for no call.
func (a absent) why() string {
	switch {
	case a.Why != "":
		return a.Why
	case a.Absent == Failed:
		return "the call failed without a reason"
	}
	return "no call was made"
}

// ofKubernetes returns the items that are read from Kubernetes. UnreadableSystems reports the first item's reason for
// all.
func (e Evidence) ofKubernetes() []absent {
	return []absent{withoutValue(e.Home), withoutValue(e.AuthMap), withoutValue(e.Controller), withoutValue(e.Lease), withoutValue(e.Classes),
		withoutValue(e.Pools), withoutValue(e.Claims), withoutValue(e.Nodes),
		withoutValue(e.Pods), withoutValue(e.Daemons), withoutValue(e.Events)}
}

// ofAWS returns the items that show whether AWS answers; UnreadableSystems reports the reason of the first item for
// all. The caller identity is not among them, because reading the identity needs no permission. The other items in
// restOfAWS are requested only for known objects, for example images of EC2NodeClasses.
func (e Evidence) ofAWS() []absent {
	return []absent{withoutValue(e.Cluster), withoutValue(e.Entries), withoutValue(e.NodeGroups), withoutValue(e.Fargate), withoutValue(e.VPC),
		withoutValue(e.Subnets), withoutValue(e.Routes),
		withoutValue(e.Endpoints), withoutValue(e.ACLs), withoutValue(e.Groups), withoutValue(e.NATAddresses),
		withoutValue(e.Instances), withoutValue(e.Impaired)}
}

// restOfAWS returns the items of AWS that are not in ofAWS. Explains compares their reasons too.
func (e Evidence) restOfAWS() []absent {
	out := []absent{withoutValue(e.Caller), withoutValue(e.Images)}
	for _, r := range e.Roles {
		out = append(out, withoutValue(r))
	}
	for _, p := range e.Profiles {
		out = append(out, withoutValue(p))
	}
	for _, p := range e.PassRole {
		out = append(out, withoutValue(p))
	}
	for _, i := range e.Instances.Value {
		out = append(out, withoutValue(i.Console))
	}
	return out
}
