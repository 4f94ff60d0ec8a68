package site

import (
	"maps"
	"slices"
	"time"
)

// Site is where resources are: one region of one account.
type Site struct {
	Region  string // "us-east-1"
	Account string // 12 digits
	Zones   []Zone // by name

	// IDs, Due and Timing belong to the world, and are the same for all its regions.
	IDs    *IDs       // the source of new IDs
	Due    *Timetable // what will happen later
	Timing *Timing    // how long things take
}

// Timing is how long things take.
type Timing struct {
	Pending      time.Duration // from the launch of an instance until it runs
	ShuttingDown time.Duration // from the order to terminate until it is terminated
	Forget       time.Duration // from terminated until EC2 no longer lists it; 0 is one hour, as in life
	Profile      time.Duration // from the creation of a Fargate profile until it is active; 0 is at once
}

// OwnARN returns an ARN of this region and account: OwnARN("eks", "cluster/demo").
func (s *Site) OwnARN(service, resource string) string { return s.ARN(service, s.Account, resource) }

// ARN returns an ARN of this region; the account may be another one than the site's, and empty for what is AWS's own.
func (s *Site) ARN(service, account, resource string) string {
	return "arn:" + Partition(s.Region) + ":" + service + ":" + s.Region + ":" + account + ":" + resource
}

// Zone finds a zone by name.
func (s *Site) Zone(name string) (Zone, bool) {
	for _, z := range s.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}

// WithTags returns the tags with some added and some taken away, as a new map.
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
