package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/cli/connection"
	"github.com/joiner-sh/joiner/internal/cli/inputfile"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// The values of --from.
const (
	fromAWS      = "aws"
	fromEmbedded = "embedded"
)

// defaultRegion is the region if neither flags nor the AWS configuration name one.
const defaultRegion = "us-east-1"

// defaultSpotShare is the default estimate of a spot price, as a share of the on-demand price. EC2 offers spot at up to
// 90 % below the on-demand price, and most types at 50 to 67 % below.
const defaultSpotShare = 0.4

// awsTimeout is the timeout for reading instance types and prices from AWS: about forty pages, and retries.
const awsTimeout = 30 * time.Second

// maxAWSAttempts is the maximum number of attempts of a call to AWS, unless AWS_MAX_ATTEMPTS is set.
const maxAWSAttempts = 4

// Hints for requests that AWS did not answer. withOneHint replaces some hints of package awserr by checkAWSHint.
const (
	checkAWSHint   = "check the network, AWS_ENDPOINT_URL and the credentials"
	withoutAWSHint = "--from embedded needs no AWS"
)

// marketFlags select the source of instance types and prices.
type marketFlags struct {
	region string // --region; empty: AWS_REGION, the AWS configuration, then defaultRegion
	from   string // fromAWS or fromEmbedded
	file   string // --catalog; empty: none

	spotShare float64 // estimate of unknown spot prices, as a share of the on-demand price

	prices *output.Prices // sources of the prices, set by open

	timeout time.Duration          // timeout for reading from AWS
	isSet   func(flag string) bool // reports whether the user set the flag
}

// flags adds the flags to a command; from is the default of --from.
func (m *marketFlags) flags(flags *pflag.FlagSet, from string) {
	m.timeout, m.isSet = awsTimeout, flags.Changed
	flags.StringVar(&m.region, "region", "", "AWS region; without it AWS_REGION, your AWS configuration, then "+defaultRegion)
	flags.StringVar(&m.from, "from", from, "where instance types and prices come from: aws, or embedded (the table in this program)")
	flags.Float64Var(&m.spotShare, "spot-estimate", defaultSpotShare,
		"with --from embedded: the `SHARE` of the on-demand price that spot is estimated to cost")
	flags.StringVar(&m.file, "catalog", "", "a `FILE` with the instance types to use, as written by joiner catalog -o json; instead of --region and --from")
}

// classInput is what the catalog of an EC2NodeClass depends on.
type classInput struct {
	settings catalog.Settings
	zones    []catalog.Zone             // zones with subnets; none: unknown, so all zones
	reserved []catalog.ReservedCapacity // reservations that the class selects
}

// catalogBuilder builds the catalog for the settings of an EC2NodeClass.
type catalogBuilder func(catalog.Settings) (catalog.Catalog, error)

// catalogs returns the catalog of each EC2NodeClass, by name. Notes for the user are written to notes.
func (m *marketFlags) catalogs(ctx context.Context, classes map[string]classInput, notes io.Writer) (catalog.Market, error) {
	build, err := m.open(ctx, notes)
	if err != nil {
		return nil, err
	}
	market := catalog.Market{}
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		c, err := build(classes[name].settings)
		if err != nil {
			return nil, err
		}
		market[name] = withReservations(inZones(c, classes[name].zones), classes[name])
	}
	return market, nil
}

// open opens the source that the flags select: a file, AWS or the embedded table. It sets m.prices. Notes for the
// user are written to notes.
func (m *marketFlags) open(ctx context.Context, notes io.Writer) (catalogBuilder, error) {
	switch {
	case m.file != "":
		return m.fromFile()
	case m.isSet("catalog"):
		return nil, errors.New("--catalog: the path is empty; name a file, as written by joiner catalog -o json")
	case m.from == fromAWS:
		return m.fromAWS(ctx, notes)
	case m.from == fromEmbedded && !(m.spotShare > 0 && m.spotShare <= 1):
		return nil, fmt.Errorf("--spot-estimate %g: want a share of the on-demand price, above 0 and at most 1", m.spotShare)
	case m.from == fromEmbedded:
		return m.fromTable()
	}
	return nil, fmt.Errorf("--from %s: want aws or embedded%s", m.from, suggest.Hint(m.from, []string{fromAWS, fromEmbedded}))
}

func (m *marketFlags) fromFile() (catalogBuilder, error) {
	for _, flag := range []string{"region", "from"} {
		if m.isSet(flag) {
			return nil, fmt.Errorf("--catalog and --%s exclude each other, because the file has offerings and region: omit one", flag)
		}
	}
	data, err := inputfile.Read(m.file)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", message.WithoutSyscall(err))
	}
	var types []output.Type
	if err := json.Unmarshal(data, &types); err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w; want what joiner catalog -o json writes", m.file, err)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("read the catalog %s: it lists no instance type; want what joiner catalog -o json writes", m.file)
	}
	c, err := output.CatalogFrom(cmp.Or(m.region, environmentRegion(), defaultRegion), types)
	if err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w", m.file, err)
	}
	m.prices = &output.Prices{OnDemand: "the file " + m.file, Spot: "the file " + m.file}
	// The file has the allocatable resources, so settings have no effect.
	return func(catalog.Settings) (catalog.Catalog, error) { return c, nil }, nil
}

// fromTable opens the embedded table, in which spot prices are estimated.
func (m *marketFlags) fromTable() (catalogBuilder, error) {
	table, err := catalog.Embedded()
	if err != nil {
		return nil, err
	}
	region := cmp.Or(m.region, environmentRegion(), defaultRegion)
	m.prices = pricesOf(pricing.Embedded(table, region))
	m.prices.Spot = fmt.Sprintf("estimated as %g %% of on demand (--spot-estimate, or --from aws for real prices)",
		100*m.spotShare)
	return func(s catalog.Settings) (catalog.Catalog, error) {
		c, err := table.Catalog(region, s)
		if err != nil {
			return c, fmt.Errorf("%w%s; choose one with --region, or ask AWS with --from aws", err, suggest.Hint(region, table.Regions()))
		}
		for i, t := range c.Types {
			for o := range t.Offerings {
				if t.Offerings[o].CapacityType == catalog.Spot {
					t.Offerings[o].Price = max(catalog.Price(float64(t.Offerings[o].Price)*m.spotShare), 1) // never free
				}
			}
			c.Types[i] = t.WithOfferings(t.Offerings)
		}
		return c, nil
	}, nil
}

func environmentRegion() string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
}

func (m *marketFlags) fromAWS(ctx context.Context, notes io.Writer) (catalogBuilder, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	cfg, err := m.configure(ctx)
	if err != nil {
		return nil, err
	}
	table, err := catalog.Embedded()
	if err != nil {
		return nil, err
	}
	offered, err := ec2.ReadMarket(ctx, cfg)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("read the offerings of %s from AWS: no complete answer within %s; %s; %s", cfg.Region,
			m.timeout, checkAWSHint, withoutAWSHint)
	case err != nil:
		return nil, fmt.Errorf("read the offerings of %s from AWS: %w; %s", cfg.Region,
			withOneHint(err, aws.ToString(cfg.BaseEndpoint)), withoutAWSHint)
	}
	priceClient := pricing.New(pricing.Config{AWS: cfg, Table: table})
	if err := priceClient.Refresh(ctx); err != nil {
		fmt.Fprintf(notes, "note: some prices are old, because AWS did not return them: %s\n", message.OneLine(err.Error()))
	}
	m.prices = pricesOf(priceClient.Book())
	return func(s catalog.Settings) (catalog.Catalog, error) {
		return assemble(cfg.Region, offered, table, priceClient.Book(), s), nil
	}, nil
}

func pricesOf(book pricing.Book) *output.Prices {
	onDemand, spot := book.Origins(time.Now())
	return &output.Prices{OnDemand: onDemand, Spot: spot}
}

// withOneHint returns err with one hint: the hint of err, or checkAWSHint if err has no hint. If the user has set an
// endpoint, checkAWSHint also replaces the hint of a network error.
func withOneHint(err error, endpoint string) error {
	failure := *awserr.Of(err)
	if failure.Hint == "" || failure.Reason == "Unreachable" && endpoint != "" {
		failure.Hint = checkAWSHint
	}
	return &failure
}

// configure loads the AWS configuration, with region and credentials.
func (m *marketFlags) configure(ctx context.Context) (aws.Config, error) {
	// The SDK must not log: errors are printed once, by the command.
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithLogger(logging.Nop{})}
	if os.Getenv("AWS_MAX_ATTEMPTS") == "" {
		options = append(options, awsconfig.WithRetryMaxAttempts(maxAWSAttempts))
	}
	if m.region != "" {
		options = append(options, awsconfig.WithRegion(m.region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, fmt.Errorf("read the AWS configuration: %w; correct it, set AWS_PROFILE to an existing profile, "+
			"or use --from embedded", err)
	}
	if err := connection.EndpointProblem(cfg); err != nil {
		return cfg, err
	}
	cfg.Region = cmp.Or(cfg.Region, defaultRegion)
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, fmt.Errorf("find AWS credentials: %s; log in, set AWS_PROFILE, or use --from embedded", connection.CredentialsProblem(err))
	}
	return cfg, nil
}

// assemble builds the catalog from the instance types of AWS and their prices.
func assemble(region string, offered ec2.Market, table catalog.Table, book pricing.Book, s catalog.Settings) catalog.Catalog {
	c := catalog.Catalog{Region: region, PodVolume: catalog.PodVolume(s)}
	for _, f := range offered.Facts {
		if catalog.Incompatible(f, s) != "" {
			continue
		}
		var zones []catalog.Zone
		for _, name := range offered.Zones[f.Name] {
			zones = append(zones, catalog.Zone{Name: name})
		}
		if offerings := book.Prices.Offerings(f, zones); len(offerings) > 0 {
			c.Types = append(c.Types, catalog.Build(table.Complete(f), s, region).WithOfferings(offerings))
		}
	}
	return c
}

// inZones returns c with only the offerings in these zones, and with their zone IDs. If zones is empty, it returns c
// unchanged.
func inZones(c catalog.Catalog, zones []catalog.Zone) catalog.Catalog {
	if len(zones) == 0 {
		return c
	}
	types := c.Types
	c.Types = nil
	for _, t := range types {
		var kept []catalog.Offering
		for _, o := range t.Offerings {
			i := slices.IndexFunc(zones, func(z catalog.Zone) bool { return z.Name == o.Zone })
			if i < 0 {
				continue
			}
			o.ZoneID = cmp.Or(zones[i].ID, o.ZoneID)
			kept = append(kept, o)
		}
		if len(kept) > 0 {
			c.Types = append(c.Types, t.WithOfferings(kept))
		}
	}
	return c
}

// withReservations returns c with the offerings of the capacity reservations that the EC2NodeClass selects.
func withReservations(c catalog.Catalog, class classInput) catalog.Catalog {
	types := make([]catalog.Type, 0, len(c.Types))
	for _, t := range c.Types {
		types = append(types, t.WithReserved(class.zones, class.reserved))
	}
	c.Types = types
	return c
}
