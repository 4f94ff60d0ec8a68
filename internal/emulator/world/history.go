package world

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// The codes of EC2's reasons for the end of an instance.
const (
	userShutdown = "Client.UserInitiatedShutdown"
	spotReclaim  = "Server.SpotInstanceTermination"
	hostLost     = "Server.InternalError"
	blockEnded   = "Server.CapacityBlockTermination" // made up: EC2's code is not documented
	retired      = "Server.ScheduledStop"
	keyDisabled  = "Client.InvalidKMSKey.InvalidState"
	keyDenied    = "Client.InternalError"
)

// reason returns the reason with this code and EC2's message for it.
func reason(code string) Reason {
	messages := map[string]string{
		userShutdown: "User initiated shutdown",
		spotReclaim:  "Spot instance termination",
		hostLost:     "Internal error",
		blockEnded:   "Capacity block ended",
		retired:      "Stopped due to a scheduled retirement",
		keyDisabled:  "The KMS key provided is in an incorrect state",
		keyDenied:    "Client error on launch",
	}
	return Reason{Code: code, Message: code + ": " + messages[code]}
}

// resolvedLaunch has the validated parameters of a launch, and the objects that the parameters refer to.
type resolvedLaunch struct {
	offering Offering
	stock    *OfferedType // the instance type
	image    *Image
	subnet   *network.Subnet
	zone     site.Zone
	profile  *identity.Profile
	groups   []string
	data     TemplateData
	tags     Tagging

	template  *Template
	fleetID   string
	token     string
	caller    string               // ARN of the caller's role; empty: a user
	callID    string               // "r-0…", for Instance.ReservationID; the same for all instances of one RunInstances call
	target    *CapacityReservation // capacity reservation of the request; nil: none
	placement *PlacementGroup      // placement group of the request; nil: none
}

// start launches an instance in the state pending. The caller has checked that the launch is possible.
func (s *Instances) start(now time.Time, launch resolvedLaunch) Instance {
	w := s.region.world()
	address, _ := launch.subnet.TakeAddress() // Launches.admit has checked that one is free
	id := w.idGenerator().New("i")
	instance := Instance{
		ID: id, ReservationID: launch.callID, Account: s.region.Account.ID, Region: s.region.Name,
		Zone: launch.zone.Name, ZoneID: launch.zone.ID, SubnetID: launch.subnet.ID, VPCID: launch.subnet.VPCID,
		Type: launch.offering.Type, Architecture: launch.image.Architecture, ImageID: launch.image.ID, UserData: launch.data.userData(),
		PrivateIP: address.String(), PrivateDNSName: network.PrivateName(s.region.Name, address.String()),
		SecurityGroupIDs: launch.groups, Tags: maps.Clone(launch.tags["instance"]),
		State: Pending, LaunchedAt: now, ChangedAt: now,
		Spot: launch.offering.Spot, FleetID: launch.fleetID, ClientToken: launch.token, Metadata: launch.data.metadata(),
	}
	if instance.Tags == nil {
		instance.Tags = map[string]string{}
	}
	if launch.subnet.Public || launch.data.requestsPublicIP() {
		// A made-up public address: the private one with another first number.
		instance.PublicIP = "54." + strings.Join(strings.Split(instance.PrivateIP, ".")[1:], ".")
	}
	if launch.offering.Spot {
		instance.SpotRequestID = "sir-" + strings.ToLower(w.idGenerator().Letters("spot", 8))
	}
	if launch.profile != nil {
		instance.ProfileARN = launch.profile.ARN
		if role, err := s.region.Account.Role(launch.profile.Role); err == nil {
			instance.RoleARN = role.ARN
		}
	}
	if launch.template != nil {
		instance.TemplateID, instance.TemplateName = launch.template.ID, launch.template.Name
		instance.Tags["aws:ec2launchtemplate:id"] = launch.template.ID
		instance.Tags["aws:ec2launchtemplate:version"] = launch.template.latestNumber()
	}
	if launch.fleetID != "" {
		instance.Tags["aws:ec2:fleet-id"] = launch.fleetID
	}
	s.region.CapacityReservations.assign(&instance, launch)
	s.region.PlacementGroups.assign(&instance, launch)
	instance.Interfaces = launch.newInterfaces(w, instance)
	if ipv6 := instance.Interfaces[0].IPv6; len(ipv6) > 0 {
		instance.IPv6 = ipv6[0]
	}
	instance.Volumes = launch.newVolumes(w)

	m := &history{region: s.region, current: instance, subnet: launch.subnet, stock: launch.stock}
	s.byID[id] = m
	s.order = append(s.order, id)
	if instance.CapacityReservationID == "" {
		s.region.Capacity.occupy(launch.offering, launch.stock.Facts.Processor.VCPUs)
	}
	w.changes = append(w.changes, instance)
	s.region.announceState(now, instance)
	boot := w.Faults.bootFault(launch.offering)
	if keyFailure := s.region.KMS.launchFailure(launch); boot == nil && keyFailure.Code != "" {
		boot = &BootFault{Fail: keyFailure}
	}
	s.scheduleBoot(now, m, boot)
	return instance
}

// scheduleBoot schedules the end of the state pending: the instance is then running, or terminated if its boot fails.
// fault is the fault of the boot; nil: none.
func (s *Instances) scheduleBoot(now time.Time, m *history, fault *BootFault) {
	pendingUntil := now.Add(s.region.site.Timing.Pending)
	if fault == nil {
		fault = &BootFault{}
	}
	m.skipsUserData = fault.SkipsUserData
	s.region.site.Due.Schedule(pendingUntil.Add(fault.Delay), func(at time.Time) {
		if m.current.State != Pending {
			return
		}
		if fault.Fail.Code != "" {
			s.end(at, m, fault.Fail)
			return
		}
		m.change(at, func(i *Instance) { i.State = Running })
	})
}

// shutDown sets the state of an instance to shutting-down, and schedules its end.
func (s *Instances) shutDown(now time.Time, m *history, why Reason) {
	if !m.current.Alive() {
		return
	}
	m.change(now, func(i *Instance) { i.State, i.StateReason = ShuttingDown, why })
	s.region.CapacityReservations.release(m)
	s.region.site.Due.Schedule(now.Add(s.region.site.Timing.ShuttingDown), func(at time.Time) { s.end(at, m, why) })
}

// end sets the state of an instance to terminated, and schedules the time from which the API no longer shows the
// instance.
func (s *Instances) end(now time.Time, m *history, why Reason) {
	if m.current.State == Terminated {
		return
	}
	if m.current.Alive() {
		s.region.CapacityReservations.release(m)
	}
	for _, n := range m.current.Interfaces {
		m.subnet.ReleaseAddress(n.PrivateIP)
		for _, p := range n.Prefixes {
			m.subnet.ReleasePrefix(p)
		}
	}
	s.region.world().sts.ScheduleRemoval(s.region.site.Due, m.session)
	m.change(now, func(i *Instance) {
		i.State, i.StateReason = Terminated, why
		i.PrivateIP, i.PrivateDNSName, i.IPv6, i.PublicIP = "", "", "", ""
		i.Interfaces, i.Volumes, i.SecurityGroupIDs = nil, nil, nil
	})
	keep := s.region.site.Timing.Forget
	if keep == 0 {
		keep = time.Hour
	}
	s.region.site.Due.Schedule(now.Add(keep), func(time.Time) {
		delete(s.byID, m.current.ID)
		s.order = slices.DeleteFunc(s.order, func(id string) bool { return id == m.current.ID })
	})
}

// Terminate terminates instances like the API call, and returns their previous and current states. If an id is unknown,
// no instance is terminated.
func (s *Instances) Terminate(now time.Time, ids []string) (before, after []Instance, err error) {
	var missing []string
	for _, id := range ids {
		if !wellFormed(id, "i") {
			return nil, nil, failure.New("InvalidInstanceID.Malformed", "Invalid id: %q", id)
		}
		if s.byID[id] == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 1 {
		return nil, nil, failure.New("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	if len(missing) > 1 {
		return nil, nil, failure.New("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(missing, ", "))
	}
	for _, id := range ids {
		m := s.byID[id]
		before = append(before, m.current)
		s.shutDown(now, m, reason(userShutdown))
		after = append(after, m.current)
	}
	return before, after, nil
}

// FailHost terminates an instance at once, as if its host had failed. It returns false if the instance does not exist.
func (w *World) FailHost(now time.Time, id string) bool {
	m := w.historyOf(id)
	if m == nil {
		return false
	}
	m.region.Instances.end(now, m, reason(hostLost))
	return true
}

// SkipsUserData reports whether a fault prevents the user data of the instance from running.
func (w *World) SkipsUserData(id string) bool {
	m := w.historyOf(id)
	return m != nil && m.skipsUserData
}

// Instance returns the current state of an instance of any account and region.
func (w *World) Instance(id string) (Instance, bool) {
	if m := w.historyOf(id); m != nil {
		return m.current, true
	}
	return Instance{}, false
}

// All returns the region's instances in their current states, oldest first.
func (s *Instances) All() []Instance {
	out := make([]Instance, 0, len(s.order))
	for _, id := range s.order {
		out = append(out, s.byID[id].current)
	}
	return out
}

// Visible returns the instances of the region in the state that the API shows, which is Faults.ReadLag old.
func (s *Instances) Visible(now time.Time) []Instance {
	lag := s.region.world().Faults.ReadLag
	out := make([]Instance, 0, len(s.order))
	for _, id := range s.order {
		if i, ok := s.byID[id].visibleAt(now, lag); ok {
			out = append(out, i)
		}
	}
	return out
}

// VisibleByID returns one instance in the state that the API shows; false if the API does not show the instance.
func (s *Instances) VisibleByID(now time.Time, id string) (Instance, bool) {
	if m := s.byID[id]; m != nil {
		return m.visibleAt(now, s.region.world().Faults.ReadLag)
	}
	return Instance{}, false
}

// historyOf returns the history of an instance by its ID, which is unique in the world; nil if no such instance exists.
func (w *World) historyOf(id string) *history {
	for _, a := range w.accounts {
		for _, r := range a.regions {
			if m := r.Instances.byID[id]; m != nil {
				return m
			}
		}
	}
	return nil
}

func (m *history) offering() Offering {
	return Offering{Type: m.current.Type, Zone: m.current.Zone, Spot: m.current.Spot}
}

// wellFormed reports whether an id has this prefix, and 8 (old format) or 17 hexadecimal digits.
func wellFormed(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}
