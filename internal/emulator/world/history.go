package world

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Why instances end, as codes of a Reason.
const (
	userShutdown = "Client.UserInitiatedShutdown"
	spotReclaim  = "Server.SpotInstanceTermination"
	hostLost     = "Server.InternalError"
	blockEnded   = "Server.CapacityBlockTermination" // the words are ours: EC2's documentation has none
	retired      = "Server.ScheduledStop"
	keyState     = "Client.InvalidKMSKey.InvalidState"
	keyDenied    = "Client.InternalError"
)

// reason returns a reason in EC2's words.
func reason(code string) Reason {
	words := map[string]string{
		userShutdown: "User initiated shutdown",
		spotReclaim:  "Spot instance termination",
		hostLost:     "Internal error",
		blockEnded:   "Capacity block ended",
		retired:      "Stopped due to a scheduled retirement",
		keyState:     "The KMS key provided is in an incorrect state",
		keyDenied:    "Client error on launch",
	}
	return Reason{Code: code, Message: code + ": " + words[code]}
}

// birth is what is decided about an instance before it is launched.
type birth struct {
	offering Offering
	stock    *Stock
	image    *Image
	subnet   *Subnet
	zone     Zone
	profile  *Profile
	groups   []string
	data     TemplateData
	tags     Tagging

	template    *Template
	fleetID     string
	token       string
	caller      string               // ARN of the role that launches; empty: a user
	reservation string               // of instances of one call
	target      *CapacityReservation // that the launch names; nil: none
	placement   *PlacementGroup      // that the launch names; nil: none
}

// start launches an instance that everything allows.
func (r *Region) start(now time.Time, b birth) Instance {
	w := r.world()
	address, _ := b.subnet.take()
	id := w.NewID("i")
	i := Instance{
		ID: id, ReservationID: b.reservation, Account: r.Account.ID, Region: r.Name,
		Zone: b.zone.Name, ZoneID: b.zone.ID, SubnetID: b.subnet.ID, VPCID: b.subnet.VPCID,
		Type: b.offering.Type, Architecture: b.image.Architecture, ImageID: b.image.ID, UserData: b.data.userData(),
		PrivateIP: address.String(), PrivateDNSName: PrivateName(r.Name, address.String()),
		SecurityGroupIDs: b.groups, Tags: maps.Clone(b.tags["instance"]),
		State: Pending, LaunchedAt: now, ChangedAt: now,
		Spot: b.offering.Spot, FleetID: b.fleetID, ClientToken: b.token, Metadata: b.data.metadata(),
	}
	if i.Tags == nil {
		i.Tags = map[string]string{}
	}
	if b.subnet.Public || b.data.publicAddress() {
		i.PublicIP = "54." + strings.Join(strings.Split(i.PrivateIP, ".")[1:], ".")
	}
	if b.offering.Spot {
		i.SpotRequestID = "sir-" + strings.ToLower(w.letters("spot", 8))
	}
	if b.profile != nil {
		i.ProfileARN = b.profile.ARN
		if role := r.Account.roles[b.profile.Role]; role != nil {
			i.RoleARN = role.ARN
		}
	}
	if b.template != nil {
		i.TemplateID, i.TemplateName = b.template.ID, b.template.Name
		i.Tags["aws:ec2launchtemplate:id"] = b.template.ID
		i.Tags["aws:ec2launchtemplate:version"] = b.template.latest()
	}
	if b.fleetID != "" {
		i.Tags["aws:ec2:fleet-id"] = b.fleetID
	}
	r.reserve(&i, b)
	r.place(&i, b)
	i.Interfaces = b.interfaces(w, i)
	if six := i.Interfaces[0].IPv6; len(six) > 0 {
		i.IPv6 = six[0]
	}
	i.Volumes = b.volumes(w)

	m := &history{region: r, now: i, subnet: b.subnet, stock: b.stock}
	r.machines[id] = m
	r.machineOrder = append(r.machineOrder, id)
	if i.CapacityReservationID == "" {
		r.occupy(b.offering, b.stock.Facts.Processor.VCPUs)
	}
	w.changes = append(w.changes, i)
	r.announceState(now, i)
	fate := w.Faults.boot(b.offering)
	if why := r.keyTrouble(b); fate == nil && why.Code != "" {
		fate = &Boot{Fail: why}
	}
	r.schedule(now, m, fate)
	return i
}

// schedule enters the end of pending on the timetable.
func (r *Region) schedule(now time.Time, m *history, b *Boot) {
	at := now.Add(r.world().Timing.Pending)
	if b == nil {
		b = &Boot{}
	}
	m.silent = b.Silent
	r.world().due.enter(at.Add(b.Delay), func(at time.Time) {
		if m.now.State != Pending {
			return
		}
		if b.Fail.Code != "" {
			r.end(at, m, b.Fail)
			return
		}
		m.change(at, func(i *Instance) { i.State = Running })
	})
}

// shutDown begins the end of an instance.
func (r *Region) shutDown(now time.Time, m *history, why Reason) {
	if !m.now.Alive() {
		return
	}
	m.change(now, func(i *Instance) { i.State, i.StateReason = ShuttingDown, why })
	r.free(m)
	r.world().due.enter(now.Add(r.world().Timing.ShuttingDown), func(at time.Time) { r.end(at, m, why) })
}

// end makes an instance terminated, and forgotten some time later.
func (r *Region) end(now time.Time, m *history, why Reason) {
	if m.now.State == Terminated {
		return
	}
	if m.now.Alive() {
		r.free(m)
	}
	for _, n := range m.now.Interfaces {
		m.subnet.giveText(n.PrivateIP)
		for _, p := range n.Prefixes {
			m.subnet.givePrefix(p)
		}
	}
	r.world().forget(m.session)
	m.change(now, func(i *Instance) {
		i.State, i.StateReason = Terminated, why
		i.PrivateIP, i.PrivateDNSName, i.IPv6, i.PublicIP = "", "", "", ""
		i.Interfaces, i.Volumes, i.SecurityGroupIDs = nil, nil, nil
	})
	keep := r.world().Timing.Forget
	if keep == 0 {
		keep = time.Hour
	}
	r.world().due.enter(now.Add(keep), func(time.Time) {
		delete(r.machines, m.now.ID)
		r.machineOrder = slices.DeleteFunc(r.machineOrder, func(id string) bool { return id == m.now.ID })
	})
}

// Terminate ends instances, as the API call does, and returns them as they were
// and as they are. An unknown id refuses the whole call.
func (r *Region) Terminate(now time.Time, ids []string) (before, after []Instance, err error) {
	var missing []string
	for _, id := range ids {
		if !wellFormed(id, "i") {
			return nil, nil, refuse("InvalidInstanceID.Malformed", "Invalid id: %q", id)
		}
		if r.machines[id] == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 1 {
		return nil, nil, refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	if len(missing) > 1 {
		return nil, nil, refuse("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(missing, ", "))
	}
	for _, id := range ids {
		m := r.machines[id]
		before = append(before, m.now)
		r.shutDown(now, m, reason(userShutdown))
		after = append(after, m.now)
	}
	return before, after, nil
}

// Lose ends an instance at once, as when its host breaks.
func (w *World) Lose(now time.Time, id string) bool {
	m := w.historyOf(id)
	if m == nil {
		return false
	}
	m.region.end(now, m, reason(hostLost))
	return true
}

// Silent says whether a fault keeps the user data of the instance from running.
func (w *World) Silent(id string) bool {
	m := w.historyOf(id)
	return m != nil && m.silent
}

// Instance returns an instance as it is now, from whatever account and region.
func (w *World) Instance(id string) (Instance, bool) {
	if m := w.historyOf(id); m != nil {
		return m.now, true
	}
	return Instance{}, false
}

// Instances returns the instances of the region as they are now, oldest first.
func (r *Region) Instances() []Instance {
	out := make([]Instance, 0, len(r.machineOrder))
	for _, id := range r.machineOrder {
		out = append(out, r.machines[id].now)
	}
	return out
}

// Seen returns the instances of the region as the API shows them: behind by the
// world's ReadLag.
func (r *Region) Seen(now time.Time) []Instance {
	lag := r.world().Faults.ReadLag
	out := make([]Instance, 0, len(r.machineOrder))
	for _, id := range r.machineOrder {
		if i, ok := r.machines[id].seen(now, lag); ok {
			out = append(out, i)
		}
	}
	return out
}

// SeenInstance returns one instance as the API shows it.
func (r *Region) SeenInstance(now time.Time, id string) (Instance, bool) {
	if m := r.machines[id]; m != nil {
		return m.seen(now, r.world().Faults.ReadLag)
	}
	return Instance{}, false
}

// historyOf finds an instance by its ID, which is unique in the world.
func (w *World) historyOf(id string) *history {
	for _, a := range w.accounts {
		for _, r := range a.regions {
			if m := r.machines[id]; m != nil {
				return m
			}
		}
	}
	return nil
}

// offering returns the offering of the instance.
func (m *history) offering() Offering {
	return Offering{Type: m.now.Type, Zone: m.now.Zone, Spot: m.now.Spot}
}

// PrivateName returns the name that VPC DNS gives an address.
func PrivateName(region, address string) string {
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(address, ".", "-") + "." + domain
}

// wellFormed says whether an id could be one of this prefix.
func wellFormed(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}
