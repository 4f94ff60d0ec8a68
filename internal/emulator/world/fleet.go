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

// FleetRequest asks for a fleet of type instant: instances now, or errors.
type FleetRequest struct {
	Idempotency

	Configs  []FleetConfig // at least one
	OnDemand int           // number of on-demand instances
	Spot     int           // number of spot instances

	// Market is MarketBlock or MarketInterruptible where OnDemand is to be had of such reservations; empty: on demand.
	Market string

	OnDemandStrategy string // "lowest-price" (also for empty) or "prioritized"
	// "lowest-price" (also for empty), "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "diversified"
	SpotStrategy string

	Tags   Tagging // for what the fleet creates, by kind; nil: none
	Caller string  // ARN of the role that asks; empty: a user
}

// FleetConfig is a launch template and what to vary in it.
type FleetConfig struct {
	TemplateID   string          // "lt-0…"; empty: TemplateName is given
	TemplateName string          // empty: TemplateID is given
	Version      string          // number, "$Latest" or "$Default"; empty: the default one
	Overrides    []FleetOverride // none: the template as it is
}

// FleetOverride is one kind of instance that will do.
type FleetOverride struct {
	InstanceType string         // "m5.large"; empty: that of the template
	SubnetID     string         // "subnet-0…"; empty: that of the template, or a default one
	Zone         string         // "us-east-1a"; empty: any
	ImageID      string         // "ami-0…"; empty: that of the template
	MaxPrice     catalog.Price  // of spot; 0: no limit
	Priority     *float64       // lower goes first; nil last
	Weight       float64        // how much capacity one instance is; 0: 1
	Devices      []Device       // instead of the template's, if any
	Refused      *failure.Error // IAM does not let the caller launch this one; nil: it does
}

// Fleet is what came of a request.
type Fleet struct {
	ID       string        // "fleet-" and a UUID
	Launched []FleetLaunch // one for each choice with instances
	Errors   []FleetError  // one for each choice that had an error
}

// FleetChoice is a config and an override of it, as a fleet's answer repeats them.
type FleetChoice struct {
	TemplateID string        // "lt-0…"
	Version    string        // as in the answer: the template's version
	Override   FleetOverride // zero: the template as it is
	Spot       bool          // spot instances; false: on-demand ones
}

// FleetLaunch is the instances launched for one choice.
type FleetLaunch struct {
	Choice    FleetChoice // that the instances are launched from
	Instances []string    // ids
}

// FleetError is why a choice did not serve.
type FleetError struct {
	Choice  FleetChoice // that had the error
	Code    string      // in EC2's words: "InsufficientInstanceCapacity"
	Message string      // EC2's sentence for the code
}

// Asked is one call of CreateFleet that came as far as looking for what there is, the repetition of another one or not.
type Asked struct {
	At     time.Time         // when CreateFleet was called
	Tags   map[string]string // of the instances that it asked for
	Bought int               // instances
}

// maxAsked is how many calls a region remembers.
const maxAsked = 10_000

// Asked returns the calls for fleets, oldest first: the last 10,000.
func (l *Launches) Asked() []Asked { return slices.Clone(l.asked) }

// Limits of one request, as in life.
const (
	maxFleetCapacity = 10_000
	maxFleetChoices  = 300
	tokenLife        = 24 * time.Hour
)

// fleet is what an idempotency token stands for.
type fleet struct {
	fingerprint string
	result      Fleet
}

// choice is a candidate for the instances of a fleet.
type choice struct {
	FleetChoice
	request  launchRequest
	resolved resolvedLaunch
	price    catalog.Price
	left     int
	err      error
}

// CreateFleet launches instances: for each, the first choice with capacity, in the order of the strategy. Choices without capacity
// are reported once each.
func (l *Launches) CreateFleet(now time.Time, q FleetRequest) (Fleet, error) {
	f, err := l.createFleet(now, q)
	if err == nil {
		call := Asked{At: now, Tags: maps.Clone(q.Tags["instance"])}
		for _, launch := range f.Launched {
			call.Bought += len(launch.Instances)
		}
		l.asked = append(l.asked[max(0, len(l.asked)-maxAsked+1):], call)
	}
	return f, err
}

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
	l.launchAs(now, q, false, &f)
	l.launchAs(now, q, true, &f)
	if q.Token != "" {
		l.fleets[q.Token] = fleet{fingerprint: q.Fingerprint, result: f}
		l.region.site.Due.Enter(now.Add(tokenLife), func(time.Time) { delete(l.fleets, q.Token) })
	}
	return f, nil
}

// CheckFleet refuses a request that is wrong as a whole; a dry run ends here.
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

// launchAs launches the instances of one capacity type.
func (l *Launches) launchAs(now time.Time, q FleetRequest, spot bool, f *Fleet) {
	need, strategy := float64(q.OnDemand), q.OnDemandStrategy
	if spot {
		need, strategy = float64(q.Spot), q.SpotStrategy
	}
	if need == 0 {
		return
	}
	choices := l.choices(now, q, spot, f.ID)
	rank(choices, strategy, int(need))
	launched := make([][]string, len(choices))
	turn := 0
	for need > 0 {
		n := next(choices, turn)
		if n < 0 {
			break
		}
		c := &choices[n]
		if c.err = l.admit(c.resolved); c.err != nil {
			continue
		}
		c.resolved.reservation = l.region.site.IDs.New("r")
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

// choices lists the candidates in the order of the request, those that cannot serve with their error.
func (l *Launches) choices(now time.Time, q FleetRequest, spot bool, fleetID string) []choice {
	var out []choice
	for _, config := range q.Configs {
		t, err := l.region.LaunchTemplates.Find(config.TemplateID, config.TemplateName)
		if err != nil {
			continue // CheckFleet has refused it
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
				market: q.Market, data: o.applied(version.Data), subnetID: o.SubnetID, zone: o.Zone, spot: spot, maxPrice: o.MaxPrice,
				fleet: true, template: t, tags: merged(version.Data.Tags, q.Tags), fleetID: fleetID, token: q.Token, caller: q.Caller,
			}}
			c.TemplateID, c.Version, c.Override, c.Spot = t.ID, cmp.Or(config.Version, "$Default"), o, spot
			c.Override.InstanceType = c.request.data.InstanceType
			if o.Refused != nil {
				c.err = o.Refused
			} else if c.resolved, c.err = l.prepare(now, c.request); c.err == nil {
				c.price, _ = l.region.world().Market(l.region.Name).price(now, c.resolved.offering)
				c.left = l.region.Capacity.left(c.resolved.offering)
				c.Override.Zone = c.resolved.zone.Name
			}
			out = append(out, c)
		}
	}
	return out
}

// applied returns the template's data with what the override says instead.
func (o FleetOverride) applied(d TemplateData) TemplateData {
	d.InstanceType = cmp.Or(o.InstanceType, d.InstanceType)
	d.ImageID = cmp.Or(o.ImageID, d.ImageID)
	if len(o.Devices) > 0 {
		d.Devices = o.Devices
	}
	return d
}

// rank sorts choices by a strategy; equal ones stay in the order of the request.
func rank(choices []choice, strategy string, need int) {
	slices.SortStableFunc(choices, func(a, b choice) int {
		byPrice := cmp.Compare(a.price, b.price)
		switch strategy {
		case "prioritized":
			return cmp.Or(comparePriority(a, b), byPrice)
		case "capacity-optimized-prioritized":
			return cmp.Or(-cmp.Compare(min(a.left, need), min(b.left, need)), comparePriority(a, b), byPrice)
		case "price-capacity-optimized", "capacity-optimized":
			return cmp.Or(-cmp.Compare(min(a.left, need), min(b.left, need)), byPrice)
		case "diversified":
			return 0
		}
		return byPrice
	})
}

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

// next returns the first choice from a turn on, and around, that has not failed; -1 if all have.
func next(choices []choice, turn int) int {
	for i := range choices {
		n := (turn + i) % len(choices)
		if choices[n].err == nil {
			return n
		}
	}
	return -1
}

// merged returns the tags of a template with those of the request on top.
func merged(template []TagSpecification, request Tagging) Tagging {
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
