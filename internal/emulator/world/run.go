package world

import (
	"cmp"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// RunRequest is a request for instances with equal launch parameters.
type RunRequest struct {
	Idempotency

	Data         TemplateData // launch parameters of the request; they override the parameters of the launch template
	TemplateID   string       // ID of the launch template; empty: TemplateName is set, or no template is used
	TemplateName string       // name of the launch template; empty: TemplateID is set, or no template is used
	Version      string       // number, "$Latest" or "$Default"; empty: $Default

	SubnetID string  // "subnet-0…"; empty: the subnet in Data, or else a subnet of the default VPC
	Min, Max int     // minimum and maximum number of instances
	Tags     Tagging // tags of the resources that the call creates; nil: none
	Caller   string  // ARN of the caller's role; empty: a user
}

type recordedRun struct {
	fingerprint string
	instances   []string // ids
}

// RunInstances launches as many instances as capacity, quota and free addresses allow, up to Max. It launches none and
// returns an error if capacity or free addresses do not suffice for Min instances, or if the quota does not suffice for
// one.
func (l *Launches) RunInstances(now time.Time, q RunRequest) ([]Instance, error) {
	if earlier, ok := l.runTokens[q.Token]; ok && q.Token != "" {
		if earlier.fingerprint != q.Fingerprint {
			return nil, failure.Mismatch()
		}
		return l.region.Instances.withIDs(earlier.instances), nil
	}
	launch, err := l.checkRun(now, q)
	if err != nil {
		return nil, err
	}
	if err := l.checkCapacity(launch, q.Min); err != nil {
		return nil, err
	}
	launch.callID = l.region.site.IDs.New("r")
	var ids []string
	for range q.Max {
		if l.admit(launch) != nil {
			break
		}
		ids = append(ids, l.region.Instances.start(now, launch).ID)
	}
	if q.Token != "" {
		l.runTokens[q.Token] = recordedRun{fingerprint: q.Fingerprint, instances: ids}
		l.region.site.Due.Schedule(now.Add(tokenLife), func(time.Time) { delete(l.runTokens, q.Token) })
	}
	return l.region.Instances.withIDs(ids), nil
}

// CheckRun returns the error of an invalid request. It does not check capacity, quotas and free addresses. A dry run
// checks nothing else.
func (l *Launches) CheckRun(now time.Time, q RunRequest) error {
	_, err := l.checkRun(now, q)
	return err
}

func (l *Launches) checkRun(now time.Time, q RunRequest) (resolvedLaunch, error) {
	if q.Min < 1 || q.Max < q.Min || q.Max > maxFleetCapacity {
		return resolvedLaunch{}, failure.New("InvalidParameterValue",
			"Value (%d) for parameter minCount is invalid. MinCount must be at least 1 and at most MaxCount.", q.Min)
	}
	req := launchRequest{data: q.Data, subnetID: q.SubnetID, tags: q.Tags, token: q.Token, caller: q.Caller}
	if q.TemplateID != "" || q.TemplateName != "" {
		t, err := l.region.LaunchTemplates.Find(q.TemplateID, q.TemplateName)
		if err != nil {
			return resolvedLaunch{}, err
		}
		v, err := t.Version(q.Version)
		if err != nil {
			return resolvedLaunch{}, err
		}
		req.template, req.data, req.tags = t, v.Data.withOverrides(q.Data), mergeTags(v.Data.Tags, q.Tags)
	}
	if err := req.data.checkUserData("InvalidParameterValue"); err != nil {
		return resolvedLaunch{}, err
	}
	req.spot = req.data.Market != nil && req.data.Market.Kind == "spot"
	return l.prepare(now, req)
}

// checkCapacity returns an error if the capacity or the free addresses do not suffice for n instances, or if the quota
// does not suffice for one.
func (l *Launches) checkCapacity(launch resolvedLaunch, n int) error {
	if err := l.admit(launch); err != nil {
		return err
	}
	if launch.subnet.Free < n*countIPv4(launch.data) {
		return failure.New("InsufficientFreeAddressesInSubnet",
			"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", launch.subnet.ID)
	}
	if l.region.CapacityReservations.availableFor(launch) < n {
		return failure.WithStatus(500, "InsufficientInstanceCapacity",
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", launch.offering.Type, launch.offering.Zone)
	}
	return nil
}

// withOverrides returns the template's data d with the overrides of the request q. It ignores all parameters of the
// request that do not appear below, such as CPU and Reservation.
func (d TemplateData) withOverrides(q TemplateData) TemplateData {
	d.ImageID, d.InstanceType, d.UserData = cmp.Or(q.ImageID, d.ImageID), cmp.Or(q.InstanceType, d.InstanceType),
		cmp.Or(q.UserData, d.UserData)
	if q.Profile != nil {
		d.Profile = q.Profile
	}
	if len(q.Devices) > 0 {
		d.Devices = q.Devices
	}
	if len(q.Interfaces) > 0 {
		d.Interfaces = slices.Clone(q.Interfaces)
	}
	if len(q.GroupIDs)+len(q.GroupNames) > 0 {
		d.GroupIDs, d.GroupNames = q.GroupIDs, q.GroupNames
	}
	if q.Market != nil {
		d.Market = q.Market
	}
	if q.Placement != nil {
		d.Placement = q.Placement
	}
	if q.MetadataOptions != nil {
		d.MetadataOptions = q.MetadataOptions
	}
	return d
}

// withIDs returns the current states of instances. Unknown ids are skipped.
func (s *Instances) withIDs(ids []string) []Instance {
	var out []Instance
	for _, id := range ids {
		if h := s.byID[id]; h != nil {
			out = append(out, h.current)
		}
	}
	return out
}
