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
	i := Instance{
		ID: id, ReservationID: launch.callID, Account: s.region.Account.ID, Region: s.region.Name,
		Zone: launch.zone.Name, ZoneID: launch.zone.ID, SubnetID: launch.subnet.ID, VPCID: launch.subnet.VPCID,
		Type: launch.offering.Type, Architecture: launch.image.Architecture, ImageID: launch.image.ID, UserData: launch.data.userData(),
		PrivateIP: address.String(), PrivateDNSName: network.PrivateName(s.region.Name, address.String()),
		SecurityGroupIDs: launch.groups, Tags: maps.Clone(launch.tags["instance"]),
		State: Pending, LaunchedAt: now, ChangedAt: now,
		Spot: launch.offering.Spot, FleetID: launch.fleetID, ClientToken: launch.token, Metadata: launch.data.metadata(),
	}
	if i.Tags == nil {
		i.Tags = map[string]string{}
	}
	if launch.subnet.Public || launch.data.requestsPublicIP() {
		// A made-up public address: the private one with another first number.
		i.PublicIP = "54." + strings.Join(strings.Split(i.PrivateIP, ".")[1:], ".")
	}
	if launch.offering.Spot {
		i.SpotRequestID = "sir-" + strings.ToLower(w.idGenerator().Letters("spot", 8))
	}
	if launch.profile != nil {
		i.ProfileARN = launch.profile.ARN
		if role, err := s.region.Account.Role(launch.profile.Role); err == nil {
			i.RoleARN = role.ARN
		}
	}
	if launch.template != nil {
		i.TemplateID, i.TemplateName = launch.template.ID, launch.template.Name
		i.Tags["aws:ec2launchtemplate:id"] = launch.template.ID
		i.Tags["aws:ec2launchtemplate:version"] = launch.template.latestNumber()
	}
	if launch.fleetID != "" {
		i.Tags["aws:ec2:fleet-id"] = launch.fleetID
	}
	s.region.CapacityReservations.assign(&i, launch)
	s.region.PlacementGroups.assign(&i, launch)
	i.Interfaces = launch.newInterfaces(w, i)
	if ipv6 := i.Interfaces[0].IPv6; len(ipv6) > 0 {
		i.IPv6 = ipv6[0]
	}
	i.Volumes = launch.newVolumes(w)

	h := &history{region: s.region, current: i, subnet: launch.subnet, stock: launch.stock}
	s.byID[id] = h
	s.order = append(s.order, id)
	if i.CapacityReservationID == "" {
		s.region.Capacity.occupy(launch.offering, launch.stock.Facts.Processor.VCPUs)
	}
	w.changes = append(w.changes, i)
	s.region.announceState(now, i)
	boot := w.Faults.bootFault(launch.offering)
	if keyFailure := s.region.KMS.launchFailure(launch); boot == nil && keyFailure.Code != "" {
		boot = &BootFault{Fail: keyFailure}
	}
	s.scheduleBoot(now, h, boot)
	return i
}

// scheduleBoot schedules the end of the state pending: the instance is then running, or terminated if its boot fails.
// fault is the fault of the boot; nil: none.
func (s *Instances) scheduleBoot(now time.Time, h *history, fault *BootFault) {
	pendingUntil := now.Add(s.region.site.Timing.Pending)
	if fault == nil {
		fault = &BootFault{}
	}
	h.skipsUserData = fault.SkipsUserData
	s.region.site.Due.Schedule(pendingUntil.Add(fault.Delay), func(at time.Time) {
		if h.current.State != Pending {
			return
		}
		if fault.Fail.Code != "" {
			s.end(at, h, fault.Fail)
			return
		}
		h.change(at, func(i *Instance) { i.State = Running })
	})
}

// shutDown sets the state of an instance to shutting-down, and schedules its end.
func (s *Instances) shutDown(now time.Time, h *history, why Reason) {
	if !h.current.Alive() {
		return
	}
	h.change(now, func(i *Instance) { i.State, i.StateReason = ShuttingDown, why })
	s.region.CapacityReservations.release(h)
	s.region.site.Due.Schedule(now.Add(s.region.site.Timing.ShuttingDown), func(at time.Time) { s.end(at, h, why) })
}

// end sets the state of an instance to terminated, and schedules the time from which the API no longer shows the
// instance.
func (s *Instances) end(now time.Time, h *history, why Reason) {
	if h.current.State == Terminated {
		return
	}
	if h.current.Alive() {
		s.region.CapacityReservations.release(h)
	}
	for _, n := range h.current.Interfaces {
		h.subnet.ReleaseAddress(n.PrivateIP)
		for _, p := range n.Prefixes {
			h.subnet.ReleasePrefix(p)
		}
	}
	s.region.world().sts.ScheduleRemoval(s.region.site.Due, h.session)
	h.change(now, func(i *Instance) {
		i.State, i.StateReason = Terminated, why
		i.PrivateIP, i.PrivateDNSName, i.IPv6, i.PublicIP = "", "", "", ""
		i.Interfaces, i.Volumes, i.SecurityGroupIDs = nil, nil, nil
	})
	keep := s.region.site.Timing.Forget
	if keep == 0 {
		keep = time.Hour
	}
	s.region.site.Due.Schedule(now.Add(keep), func(time.Time) {
		delete(s.byID, h.current.ID)
		s.order = slices.DeleteFunc(s.order, func(id string) bool { return id == h.current.ID })
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
		h := s.byID[id]
		before = append(before, h.current)
		s.shutDown(now, h, reason(userShutdown))
		after = append(after, h.current)
	}
	return before, after, nil
}

// FailHost terminates an instance at once, as if its host had failed. It returns false if the instance does not exist.
func (w *World) FailHost(now time.Time, id string) bool {
	h := w.historyOf(id)
	if h == nil {
		return false
	}
	h.region.Instances.end(now, h, reason(hostLost))
	return true
}

// SkipsUserData reports whether a fault prevents the user data of the instance from running.
func (w *World) SkipsUserData(id string) bool {
	h := w.historyOf(id)
	return h != nil && h.skipsUserData
}

// Instance returns the current state of an instance of any account and region.
func (w *World) Instance(id string) (Instance, bool) {
	if h := w.historyOf(id); h != nil {
		return h.current, true
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
	if h := s.byID[id]; h != nil {
		return h.visibleAt(now, s.region.world().Faults.ReadLag)
	}
	return Instance{}, false
}

// historyOf returns nil for an unknown instance. Instance IDs are unique in the world.
func (w *World) historyOf(id string) *history {
	for _, a := range w.accounts {
		for _, r := range a.regions {
			if h := r.Instances.byID[id]; h != nil {
				return h
			}
		}
	}
	return nil
}

func (h *history) offering() Offering {
	return Offering{Type: h.current.Type, Zone: h.current.Zone, Spot: h.current.Spot}
}

// wellFormed reports whether an id has this prefix, and 8 (old format) or 17 hexadecimal digits.
func wellFormed(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}
