package offerings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

type regionMarket interface {
	Market(ctx context.Context) (ec2.Market, error)
}

type priceBook interface {
	Book() pricing.Book
	Refresh(ctx context.Context) error
}

// Catalogs builds the catalog of offerings of each EC2NodeClass. The catalog of a class is cached, and rebuilt only
// when one of its inputs changes. Market and Catalog mark the offerings that are unavailable at the time of the call.
type Catalogs struct {
	Region    string           // AWS region
	EC2       regionMarket     // reads instance types and their zones
	Prices    priceBook        // prices by instance type
	Table     catalog.Table    // facts about instance types that EC2's API does not return
	Cache     client.Reader    // reads objects from the informers
	Shortages *ec2.Shortages   // offerings for which EC2 reported insufficient capacity
	Measured  *Measured        // capacity that Nodes reported; nil: predicted capacity is used
	Options   MarketOptions    // settings of the user
	Batch     *loop.Batch      // gets a request for a plan when the catalogs have changed
	Metrics   *metrics.Metrics // the metrics of this process
	Log       *slog.Logger     // the log of this process

	failures   loop.Backoff  // back-off after failures of Refresh
	reserved   ReservedBook  // free instances of capacity reservations
	Shifted    shiftBook     // zones with an active zonal shift
	Placements PlacementBook // placement groups of the classes

	dedicatedOf map[string]dedicatedTypes // types of pools with dedicated tenancy, by EC2NodeClass and NodePool; guarded by mu

	mu      sync.Mutex
	Offered ec2.Market               // instance types and zones of the region; empty until EC2 has answered
	Version int                      // increases with each refresh of types or prices, and when assumed changes
	built   map[string]builtCatalog  // cached catalogs by class
	assumed map[string]catalog.Price // by instance type: prices that NodeOverlays set for types without a price
	// OverlayResult is the result of the NodeOverlays; nil until they were evaluated.
	OverlayResult *overlayResult
}

// MarketOptions are the settings of the controller that change the capacity or the price of instance types.
type MarketOptions struct {
	ReservedENIs   int64   // network interfaces per instance that are not used for pods; 0: none
	MemoryOverhead float64 // share of the memory that the hypervisor takes, 0 to 1
	Overlays       bool    // NodeOverlays are evaluated
}

type builtCatalog struct {
	key     string // fingerprint of the inputs
	catalog catalog.Catalog
}

// Intervals between reads of instance types and prices.
const (
	MarketRefresh   = 12 * time.Hour  // after a success
	MarketRetry     = time.Minute     // after the first failure, and after each failure until EC2 has answered once
	MarketRetryMost = time.Hour       // the longest pause after failures once EC2 has answered
	marketTimeout   = 5 * time.Minute // timeout of each of the two reads; the previous data stays in use meanwhile
)

// Start refreshes the market until ctx ends.
func (m *Catalogs) Start(ctx context.Context) error {
	m.Measured.Load(ctx, time.Now())
	pause := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		err := m.Refresh(ctx)
		var isNews bool
		if pause, isNews = m.Pause(time.Now(), err); isNews && ctx.Err() == nil {
			_, hint := loop.ClassifyError(err)
			m.Log.Error("cannot refresh the market", "error", err.Error(), "hint", hint, "nextTry", pause.String())
		}
	}
}

// Pause returns how long to wait after a refresh that ended with err, and whether the error is new. A refresh costs
// dozens of calls, so retries are backed off. Without instance types to plan with, the pause does not grow.
func (m *Catalogs) Pause(now time.Time, err error) (time.Duration, bool) {
	if err == nil {
		m.failures.Clear("market")
		return MarketRefresh, false
	}
	m.mu.Lock()
	isKnown := len(m.Offered.Facts) > 0
	m.mu.Unlock()
	longest := MarketRetry
	if isKnown {
		longest = MarketRetryMost
	}
	until, isNews := m.failures.FailFor(now, "market", awserr.StableText(err), MarketRetry, longest)
	return until.Sub(now), isNews
}

// Refresh reads instance types and prices. If a read fails, the previous data stays in use.
func (m *Catalogs) Refresh(ctx context.Context) error {
	defer loop.Working(ctx, loop.LoopMarket, "").End()
	offered, err := m.readTypes(ctx)
	if err == nil {
		for i, f := range offered.Facts {
			offered.Facts[i] = m.Table.Complete(f)
		}
		m.mu.Lock()
		m.Offered = offered
		m.Version++
		m.mu.Unlock()
		m.Log.Info("refreshed instance types", "types", len(offered.Facts))
		m.rebuild()
	}
	// Reading prices takes longer than reading types. Until the new prices are read, the previous prices are used, or
	// the embedded prices after a start of the process.
	priceErr := m.refreshPrices(ctx)
	m.mu.Lock()
	m.Version++
	m.mu.Unlock()
	m.rebuild()
	if err != nil {
		return fmt.Errorf("read instance types from EC2: %w", err)
	}
	if priceErr != nil {
		return fmt.Errorf("refresh prices: %w", priceErr)
	}
	return nil
}

func (m *Catalogs) readTypes(ctx context.Context) (ec2.Market, error) {
	ctx, cancel := context.WithTimeout(ctx, marketTimeout)
	defer cancel()
	return m.EC2.Market(ctx)
}

// refreshPrices also reports the age of the prices in the log and the metrics.
func (m *Catalogs) refreshPrices(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, marketTimeout)
	defer cancel()
	err := m.Prices.Refresh(ctx)
	book := m.Prices.Book()
	onDemand, spot := book.Origins(time.Now())
	m.Log.Info("prices in use", "onDemand", onDemand, "onDemandTypes", len(book.Prices.OnDemand), "spot", spot,
		"spotTypes", len(book.Prices.Spot))
	for capacityType, at := range map[string]time.Time{catalog.OnDemand: book.OnDemandAt, catalog.Spot: book.SpotAt} {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.Unix())
		}
		m.Metrics.PricesAt.WithLabelValues(capacityType).Set(seconds)
	}
	return err
}

// rebuild builds the catalogs now, so that the next plan does not wait for them, and requests that plan.
func (m *Catalogs) rebuild() {
	m.Market(time.Now()) // fills the cache
	m.Batch.Ask("market")
}

// Market returns the catalogs of all EC2NodeClasses with the availability at now. It is nil until EC2 has returned
// instance types.
func (m *Catalogs) Market(now time.Time) catalog.Market {
	var classes awsv1.EC2NodeClassList
	if err := m.Cache.List(context.Background(), &classes, client.UnsafeDisableDeepCopy); err != nil {
		m.Log.Error("cannot list node classes", "error", err.Error())
		return nil
	}
	built := map[string]*builtCatalog{}
	for i := range classes.Items {
		c, ok := m.catalog(&classes.Items[i])
		if !ok {
			return nil
		}
		built[classes.Items[i].Name] = &c
	}
	m.updateOverlays(built)
	out := catalog.Market{}
	for i := range classes.Items {
		class := &classes.Items[i]
		out[class.Name] = m.withAvailability(class, m.withPoolTypes(class.Name, built[class.Name].catalog), now)
	}
	m.Metrics.Shortages.Set(float64(len(m.Shortages.List(now))))
	return out
}

// Catalog returns the catalog of one class with the availability at now. The second result is false until EC2 has
// returned instance types and the class's placement group.
func (m *Catalogs) Catalog(class *awsv1.EC2NodeClass, now time.Time) (catalog.Catalog, bool) {
	c, ok := m.catalog(class)
	if _, isGroupKnown := m.Placements.Of(class); !ok || !isGroupKnown {
		return c.catalog, false
	}
	return m.withAvailability(class, m.withPoolTypes(class.Name, c.catalog), now), true
}

// updateOverlays applies the NodeOverlays to the catalogs. After an error the previous result stays in use.
func (m *Catalogs) updateOverlays(classes map[string]*builtCatalog) {
	if !m.Options.Overlays {
		return
	}
	result, err := m.applyOverlays(classes)
	if err != nil {
		m.Log.Error("cannot apply NodeOverlays to the catalogs", "error", err.Error())
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(result.assumed, m.assumed) {
		m.assumed = result.assumed // the next plan uses these prices
		m.Version++
	}
}

// withPoolTypes returns the catalog of a class with separate types for two kinds of NodePools: pools whose types
// NodeOverlays change, and pools that require dedicated tenancy.
func (m *Catalogs) withPoolTypes(class string, c catalog.Catalog) catalog.Catalog {
	m.mu.Lock()
	if m.OverlayResult != nil {
		c.Pools = m.OverlayResult.types[class]
	}
	m.mu.Unlock()
	c, err := m.dedicate(class, c)
	if err != nil {
		m.Log.Error("cannot read which pools need dedicated hardware", "error", err.Error())
	}
	return c
}

// verdicts returns the verdict on each NodeOverlay, by name; nil until EC2 has returned instance types.
func (m *Catalogs) verdicts(now time.Time) map[string]overlayVerdict {
	if m.Market(now) == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.OverlayResult == nil {
		return nil
	}
	return m.OverlayResult.verdicts
}

// withAvailability adds the capacity reservations of a class to its catalog, and marks the offerings that are
// unavailable at now.
func (m *Catalogs) withAvailability(class *awsv1.EC2NodeClass, c catalog.Catalog, now time.Time) catalog.Catalog {
	closedZones := exhaustedZones(class, func(subnet string) bool { return m.Shortages.IsExhausted(now, subnet) })
	closedZones = append(closedZones, m.Placements.Closed(now, c.PlacementGroup, ZonesOf(class))...)
	closedZones = append(closedZones, m.Shifted.Closed(now, ZonesOf(class))...)
	return m.Shortages.Apply(now, m.reserve(class, c), closedZones...)
}

// exhaustedZones returns the zones in which all subnets of the class have run out of free addresses.
func exhaustedZones(class *awsv1.EC2NodeClass, isExhausted func(subnet string) bool) []string {
	hasFree := map[string]bool{} // by zone: whether a subnet has free addresses
	for _, s := range class.Status.Subnets {
		hasFree[s.Zone] = hasFree[s.Zone] || !isExhausted(s.ID)
	}
	maps.DeleteFunc(hasFree, func(_ string, free bool) bool { return free })
	return slices.Sorted(maps.Keys(hasFree))
}

// Type returns an instance type with the properties that it has in the class and the NodePool, whether or not it is
// available.
func (m *Catalogs) Type(class, pool, name string) (catalog.Type, bool) {
	m.mu.Lock()
	built := m.built[class]
	m.mu.Unlock()
	types := m.withPoolTypes(class, built.catalog).Of(pool)
	i, ok := slices.BinarySearchFunc(types, name, func(t catalog.Type, name string) int {
		return cmp.Compare(t.Name, name)
	})
	if !ok {
		return catalog.Type{}, false
	}
	return types[i], true
}

// ListPrice returns the price of a type in a zone, even if no class has a subnet there; 0 until the price is known.
func (m *Catalogs) ListPrice(name, zone, capacityType string) catalog.Price {
	m.mu.Lock()
	assumed, offered := m.assumed, m.Offered
	m.mu.Unlock()
	i := slices.IndexFunc(offered.Facts, func(f catalog.Facts) bool { return f.Name == name })
	if i < 0 || !slices.Contains(offered.Zones[name], zone) {
		return 0
	}
	prices := m.Prices.Book().Prices
	prices.Assumed = assumed
	for _, o := range prices.Offerings(offered.Facts[i], []catalog.Zone{{Name: zone}}) {
		if o.CapacityType == capacityType {
			return o.Price
		}
	}
	return 0
}

// catalog returns the catalog of a class, before reservations and unavailable offerings are applied. The second result
// is false until EC2 has returned instance types.
func (m *Catalogs) catalog(class *awsv1.EC2NodeClass) (builtCatalog, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Version == 0 || len(m.Offered.Facts) == 0 {
		return builtCatalog{}, false
	}
	key := m.key(class)
	if built, ok := m.built[class.Name]; ok && built.key == key {
		return built, true
	}
	if m.built == nil {
		m.built = map[string]builtCatalog{}
	}
	built := builtCatalog{key, m.build(class)}
	m.built[class.Name] = built
	m.Metrics.MarketBuilds.Inc()
	return built, true
}

// key returns a fingerprint of the inputs of the class's catalog.
func (m *Catalogs) key(class *awsv1.EC2NodeClass) string {
	group, isGroupKnown := m.Placements.Of(class)
	group.Members = nil // members change with each launch, but the catalog does not depend on them
	fields, err := json.Marshal(struct {
		Zones        []catalog.Zone
		AMIs         []awsv1.AMI
		Group        ec2.PlacementGroup
		IsGroupKnown bool
	}{ZonesOf(class), class.Status.AMIs, group, isGroupKnown})
	if err != nil {
		return "" // cannot happen: all fields can be marshaled
	}
	return fmt.Sprintf("%d %d %s %d %s", m.Version, m.Measured.version(), class.UID, class.Generation, fields)
}

// build builds the catalog of a class. The caller must hold the lock.
func (m *Catalogs) build(class *awsv1.EC2NodeClass) catalog.Catalog {
	settings, err := conversion.Settings(class)
	if err != nil {
		m.Log.Error("cannot read all settings of a node class", "EC2NodeClass", class.Name, "error", err.Error())
	}
	settings.ReservedENIs = m.Options.ReservedENIs
	settings.MemoryOverhead = &m.Options.MemoryOverhead
	zones := ZonesOf(class)
	images := ImagesOf(class)
	prices := m.Prices.Book().Prices
	prices.Assumed = m.assumed
	group, isGroupKnown := m.Placements.Of(class)
	settings.PlacementGroup, settings.PlacementStrategy = group.ID, group.Strategy
	out := catalog.Catalog{Region: m.Region, PlacementGroup: group.ID, PodVolume: catalog.PodVolume(settings)}
	if !isGroupKnown {
		return out // the allowed types depend on the placement group, which EC2 has not returned yet
	}
	for _, facts := range m.Offered.Facts {
		if catalog.Incompatible(facts, settings) != "" {
			continue
		}
		t := catalog.Build(facts, settings, m.Region)
		image, ok := ami.For(images, t.Labels)
		if !ok {
			continue
		}
		if settings.Measured, ok = m.Measured.Of(image.ID, facts.Name); ok {
			// t is built a second time: the measurement depends on the image, and the image on the labels of t.
			t = catalog.Build(facts, settings, m.Region)
			settings.Measured = catalog.Measured{}
		}
		typeZones := slices.DeleteFunc(slices.Clone(zones), func(z catalog.Zone) bool {
			return !slices.Contains(m.Offered.Zones[facts.Name], z.Name)
		})
		out.Types = append(out.Types, t.WithOfferings(prices.Offerings(facts, typeZones)))
	}
	return out
}

// ZonesOf returns the zones of the class's subnets, each once, sorted by name.
func ZonesOf(class *awsv1.EC2NodeClass) []catalog.Zone {
	var out []catalog.Zone
	for _, s := range class.Status.Subnets {
		zone := catalog.Zone{Name: s.Zone, ID: s.ZoneID}
		if !slices.Contains(out, zone) {
			out = append(out, zone)
		}
	}
	slices.SortFunc(out, func(a, b catalog.Zone) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// ImagesOf returns the AMIs in the class's status, in the same order.
func ImagesOf(class *awsv1.EC2NodeClass) []ami.Image {
	var out []ami.Image
	for _, a := range class.Status.AMIs {
		image := ami.Image{ID: a.ID, Name: a.Name, Deprecated: a.Deprecated}
		for _, r := range a.Requirements {
			image.Requirements = append(image.Requirements, requirements.Requirement{
				Key: r.Key, Operator: requirements.Operator(r.Operator), Values: r.Values,
			})
			if r.Key == corev1.LabelArchStable && len(r.Values) == 1 {
				image.Arch = r.Values[0]
			}
		}
		out = append(out, image)
	}
	return out
}

// MarketPoll is the pause before a retry while EC2 has not returned the instance types.
const MarketPoll = 500 * time.Millisecond
