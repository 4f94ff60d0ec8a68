package site

import (
	"maps"
	"slices"
	"time"
)

// Site is one region of one account.
type Site struct {
	Region  string // "us-east-1"
	Account string // 12 digits
	Zones   []Zone // sorted by name

	// IDs, Due and Timing belong to the world: all its regions share them.
	IDs    *IDs       // generator of IDs
	Due    *Timetable // future events
	Timing *Timing    // durations of state changes
}

// Timing has the durations of state changes.
type Timing struct {
	Pending      time.Duration // from the launch of an instance until it runs
	ShuttingDown time.Duration // from the call of TerminateInstances until the instance is terminated
	Forget       time.Duration // from the end of an instance until EC2 no longer lists it; 0: one hour, as in AWS
	Profile      time.Duration // from the creation of a Fargate profile until it is active; 0: at once
}

// OwnARN returns an ARN of this region and account: OwnARN("eks", "cluster/demo").
func (s *Site) OwnARN(service, resource string) string { return s.ARN(service, s.Account, resource) }

// ARN returns an ARN of this region. The account may differ from the site's; it is empty for AWS's own resources.
func (s *Site) ARN(service, account, resource string) string {
	return "arn:" + Partition(s.Region) + ":" + service + ":" + s.Region + ":" + account + ":" + resource
}

// Zone returns a zone by name; false if it does not exist.
func (s *Site) Zone(name string) (Zone, bool) {
	for _, z := range s.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}

// WithTags returns a copy of tags with the tags add, and without the keys remove.
func WithTags(tags, add map[string]string, remove []string) map[string]string {
	out := maps.Clone(tags)
	if out == nil {
		out = make(map[string]string, len(add))
	}
	for _, k := range slices.Sorted(maps.Keys(add)) {
		out[k] = add[k]
	}
	for _, k := range remove {
		delete(out, k)
	}
	return out
}
