package world

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// FleetRequest is a request for a fleet of type instant.
type FleetRequest struct {
	Idempotency

	Configs  []FleetConfig // at least one
	OnDemand int           // number of on-demand instances, or of units: see FleetOverride.Weight
	Spot     int           // number of spot instances, or of units

	// Market is MarketBlock if the OnDemand instances run in a capacity block, and MarketInterruptible if they run in
	// an interruptible capacity reservation; empty: on demand.
	Market string

	OnDemandStrategy string // "lowest-price" (also for empty) or "prioritized"
	// SpotStrategy is "lowest-price" (also for empty), "price-capacity-optimized", "capacity-optimized",
	// "capacity-optimized-prioritized" or "diversified".
	SpotStrategy string

	Tags   Tagging // tags of the resources that the fleet creates; nil: none
	Caller string  // ARN of the caller's role; empty: a user
}

// FleetConfig is a launch template with overrides.
type FleetConfig struct {
	TemplateID   string          // "lt-0…"; empty: TemplateName is set
	TemplateName string          // empty: TemplateID is set
	Version      string          // number, "$Latest" or "$Default"; empty: $Default
	Overrides    []FleetOverride // none: the template without changes
}

// FleetOverride has changes to a launch template for one kind of instance.
type FleetOverride struct {
	InstanceType string         // "m5.large"; empty: the type in the template
	SubnetID     string         // "subnet-0…"; empty: the subnet in the template, or else a subnet of the default VPC
	Zone         string         // "us-east-1a"; empty: any
	ImageID      string         // "ami-0…"; empty: the image in the template
	MaxPrice     catalog.Price  // maximum spot price per hour; 0: no limit
	Priority     *float64       // lower values first; nil: last
	Weight       float64        // number of units of FleetRequest.OnDemand or Spot that an instance counts as; 0: one
	Devices      []Device       // replace the template's devices; empty: the template's devices
	IAMError     *failure.Error // IAM's error if the caller is not allowed to launch the override; nil: allowed
}

// Fleet is the result of a request.
type Fleet struct {
	ID       string        // "fleet-" and a UUID
	Launched []FleetLaunch // one for each choice with instances
	Errors   []FleetError  // one for each choice that had an error
}

// FleetChoice is a config with one of its overrides, as CreateFleet returns it.
type FleetChoice struct {
	TemplateID string        // "lt-0…"
	Version    string        // version of the template, as in the request
	Override   FleetOverride // zero: the template without changes
	Spot       bool          // spot instances; false: on-demand ones
}

// FleetLaunch has the instances that were launched for one choice.
type FleetLaunch struct {
	Choice    FleetChoice
	Instances []string // ids
}

// FleetError is the error of a choice.
type FleetError struct {
	Choice  FleetChoice
	Code    string // EC2's code: "InsufficientInstanceCapacity"
	Message string // EC2's message
}

// FleetCall records one valid call of CreateFleet. A repetition with the same idempotency token is recorded again.
type FleetCall struct {
	At       time.Time         // when CreateFleet was called
	Tags     map[string]string // tags of the requested instances
	Launched int               // number of instances in the answer
}

const maxCalls = 10_000

// FleetCalls returns the last maxCalls calls of CreateFleet, oldest first.
func (l *Launches) FleetCalls() []FleetCall { return slices.Clone(l.calls) }

// EC2's limits of one request, and the lifetime of an idempotency token.
const (
	maxFleetCapacity = 10_000
	maxFleetChoices  = 300
	tokenLife        = 24 * time.Hour
)

type recordedFleet struct {
	fingerprint string
	result      Fleet
}

// choice is a FleetChoice with its launch parameters and its current price and capacity.
type choice struct {
	FleetChoice
	request   launchRequest
	resolved  resolvedLaunch
	price     catalog.Price // current price per hour
	remaining int           // number of instances that can be launched
	err       error         // why the choice cannot be launched; nil if it can
}

// CreateFleet launches instances. Each instance uses the first choice that has capacity, in the order of the allocation
// strategy; "diversified" takes the choices in turn. The result has one error for each choice that cannot be launched
// or has no capacity left.
func (l *Launches) CreateFleet(now time.Time, q FleetRequest) (Fleet, error) {
	f, err := l.createFleet(now, q)
	if err == nil {
		call := FleetCall{At: now, Tags: maps.Clone(q.Tags["instance"])}
		for _, launch := range f.Launched {
			call.Launched += len(launch.Instances)
		}
		l.calls = append(l.calls[max(0, len(l.calls)-maxCalls+1):], call)
	}
	return f, err
}

// createFleet launches the on-demand instances of a fleet, and then its spot instances. For a token that was used
// before, it returns the earlier result and launches nothing.
func (l *Launches) createFleet(now time.Time, q FleetRequest) (Fleet, error) {
	if f, ok := l.fleets[q.Token]; ok && q.Token != "" {
		if f.fingerprint != q.Fingerprint {
			return Fleet{}, failure.Mismatch()
		}
		return f.result, nil
	}
	if err := l.CheckFleet(q); err != nil {
		return Fleet{}, err
	}
	f := Fleet{ID: "fleet-" + l.region.site.IDs.UUID("fleet")}
	l.launchCapacityType(now, q, false, &f)
	l.launchCapacityType(now, q, true, &f)
	if q.Token != "" {
		l.fleets[q.Token] = recordedFleet{fingerprint: q.Fingerprint, result: f}
		l.region.site.Due.Schedule(now.Add(tokenLife), func(time.Time) { delete(l.fleets, q.Token) })
	}
	return f, nil
}

// CheckFleet returns the error of a request that is invalid as a whole. A dry run checks nothing else.
func (l *Launches) CheckFleet(q FleetRequest) error {
	if len(q.Configs) == 0 {
		return failure.New("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
	}
	if n := q.OnDemand + q.Spot; n < 1 || n > maxFleetCapacity || q.OnDemand < 0 || q.Spot < 0 {
		return failure.New("InvalidParameterValue", "Value (%d) for parameter TotalTargetCapacity is invalid.", n)
	}
	if !slices.Contains([]string{"", "lowest-price", "prioritized"}, q.OnDemandStrategy) {
		return failure.New("InvalidParameterValue", "Value (%s) for parameter OnDemandOptions.AllocationStrategy is invalid.", q.OnDemandStrategy)
	}
	spot := []string{"", "lowest-price", "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "diversified"}
	if !slices.Contains(spot, q.SpotStrategy) {
		return failure.New("InvalidParameterValue", "Value (%s) for parameter SpotOptions.AllocationStrategy is invalid.", q.SpotStrategy)
	}
	choices := 0
	for _, c := range q.Configs {
		choices += max(1, len(c.Overrides))
		t, err := l.region.LaunchTemplates.Find(c.TemplateID, c.TemplateName)
		if err != nil {
			return err
		}
		if _, err := t.Version(c.Version); err != nil {
			return err
		}
	}
	if choices > maxFleetChoices {
		return failure.New("InvalidParameterValue", "Number of launch specifications exceeds limit of %d.", maxFleetChoices)
	}
	return nil
}

// launchCapacityType launches the spot instances of a request if spot is true, or else its on-demand instances. It adds
// the instances and the errors to f.
func (l *Launches) launchCapacityType(now time.Time, q FleetRequest, spot bool, f *Fleet) {
	need, strategy := float64(q.OnDemand), q.OnDemandStrategy // need is a number of units: see FleetOverride.Weight
	if spot {
		need, strategy = float64(q.Spot), q.SpotStrategy
	}
	if need == 0 {
		return
	}
	choices := l.choices(now, q, spot, f.ID)
	rank(choices, strategy, int(need))
	launched := make([][]string, len(choices))
	turn := 0 // index of the choice to try first; only the strategy "diversified" changes it
	for need > 0 {
		n := nextChoice(choices, turn)
		if n < 0 {
			break
		}
		c := &choices[n]
		if c.err = l.admit(c.resolved); c.err != nil {
			continue
		}
		c.resolved.callID = l.region.site.IDs.New("r")
		launched[n] = append(launched[n], l.region.Instances.start(now, c.resolved).ID)
		need -= cmp.Or(c.Override.Weight, 1)
		if strategy == "diversified" {
			turn = n + 1
		}
	}
	for n, c := range choices {
		if len(launched[n]) > 0 {
			f.Launched = append(f.Launched, FleetLaunch{Choice: c.FleetChoice, Instances: launched[n]})
		}
		var e *failure.Error
		if errors.As(c.err, &e) {
			f.Errors = append(f.Errors, FleetError{Choice: c.FleetChoice, Code: e.Code, Message: e.Message})
		}
	}
}

// choices lists the choices of a request in its order, including those that cannot be launched.
func (l *Launches) choices(now time.Time, q FleetRequest, spot bool, fleetID string) []choice {
	var out []choice
	for _, config := range q.Configs {
		t, err := l.region.LaunchTemplates.Find(config.TemplateID, config.TemplateName)
		if err != nil {
			continue // cannot happen after CheckFleet
		}
		version, err := t.Version(config.Version)
		if err != nil {
			continue
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []FleetOverride{{}}
		}
		for _, o := range overrides {
			c := choice{request: launchRequest{
				market: q.Market, data: o.applyTo(version.Data), subnetID: o.SubnetID, zone: o.Zone, spot: spot, maxPrice: o.MaxPrice,
				fleet: true, template: t, tags: mergeTags(version.Data.Tags, q.Tags), fleetID: fleetID, token: q.Token, caller: q.Caller,
			}}
			c.TemplateID, c.Version, c.Override, c.Spot = t.ID, cmp.Or(config.Version, "$Default"), o, spot
			c.Override.InstanceType = c.request.data.InstanceType
			if o.IAMError != nil {
				c.err = o.IAMError
			} else if c.resolved, c.err = l.prepare(now, c.request); c.err == nil {
				c.price, _ = l.region.world().Market(l.region.Name).price(now, c.resolved.offering)
				c.remaining = l.region.Capacity.remaining(c.resolved.offering)
				c.Override.Zone = c.resolved.zone.Name
			}
			out = append(out, c)
		}
	}
	return out
}

func (o FleetOverride) applyTo(d TemplateData) TemplateData {
	d.InstanceType = cmp.Or(o.InstanceType, d.InstanceType)
	d.ImageID = cmp.Or(o.ImageID, d.ImageID)
	if len(o.Devices) > 0 {
		d.Devices = o.Devices
	}
	return d
}

// rank sorts choices by an allocation strategy. Capacity beyond need does not count. Equal choices keep their order.
// "price-capacity-optimized" is emulated like "capacity-optimized": capacity first, then price.
func rank(choices []choice, strategy string, need int) {
	slices.SortStableFunc(choices, func(a, b choice) int {
		byPrice := cmp.Compare(a.price, b.price)
		switch strategy {
		case "prioritized":
			return cmp.Or(comparePriority(a, b), byPrice)
		case "capacity-optimized-prioritized":
			return cmp.Or(-cmp.Compare(min(a.remaining, need), min(b.remaining, need)), comparePriority(a, b), byPrice)
		case "price-capacity-optimized", "capacity-optimized":
			return cmp.Or(-cmp.Compare(min(a.remaining, need), min(b.remaining, need)), byPrice)
		case "diversified":
			return 0
		}
		return byPrice
	})
}

// comparePriority sorts lower values first, and overrides without a priority last.
func comparePriority(a, b choice) int {
	pa, pb := a.Override.Priority, b.Override.Priority
	switch {
	case pa == nil && pb == nil:
		return 0
	case pa == nil:
		return 1
	case pb == nil:
		return -1
	}
	return cmp.Compare(*pa, *pb)
}

// nextChoice returns the index of the first choice without an error; -1 if all have errors. It begins at the index
// turn, and continues at 0 after the last choice.
func nextChoice(choices []choice, turn int) int {
	for i := range choices {
		n := (turn + i) % len(choices)
		if choices[n].err == nil {
			return n
		}
	}
	return -1
}

// mergeTags merges the tags of both. The tags of the request have precedence.
func mergeTags(template []TagSpecification, request Tagging) Tagging {
	out := Tagging{}
	for _, s := range template {
		for _, t := range s.Tags {
			if out[s.Resource] == nil {
				out[s.Resource] = map[string]string{}
			}
			out[s.Resource][t.Key] = t.Value
		}
	}
	for kind, tags := range request {
		if out[kind] == nil {
			out[kind] = map[string]string{}
		}
		maps.Copy(out[kind], tags)
	}
	return out
}
