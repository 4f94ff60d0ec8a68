package ratelimit_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// wire is an HTTP client that passes calls to an emulator without a network, as tests with the fake clock of package
// synctest require. A call takes up to 400 ms, so calls do not arrive in the order in which they were sent.
type wire struct {
	server *emulator.Server

	mu              sync.Mutex
	made, throttled map[string]int // numbers of calls that returned, by action
	sent            int            // number of calls, including those that have not returned
}

// Do carries out one call after a delay.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.sent++
	delay := time.Duration(w.sent*7919%40) * 10 * time.Millisecond // 0 to 390 ms, in mixed order
	w.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	in := r.Clone(r.Context())
	in.Body, in.Host, in.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.Host, r.URL.RequestURI()
	out := httptest.NewRecorder()
	w.server.ServeHTTP(out, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[form.Get("Action")]++
	if strings.Contains(out.Body.String(), "<Code>RequestLimitExceeded</Code>") {
		w.throttled[form.Get("Action")]++
	}
	return out.Result(), nil
}

// config returns the configuration of a client that uses w and the limiter, which may be nil.
func (w *wire) config(limiter *ratelimit.Limiter) aws.Config {
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String("http://ec2.test"), HTTPClient: w,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	if limiter != nil {
		cfg.APIOptions = []func(*middleware.Stack) error{limiter.AddTo}
	}
	return cfg
}

// newWire emulates a region that offers m5.large, with EC2's default throttling. The blueprint is for launches in the
// region.
func newWire(t *testing.T) (*wire, world.ClusterResources, ec2.Blueprint) {
	t.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	facts, _ := table.Facts("m5.large")
	emulated, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod",
		Stock: []world.OfferedType{{Facts: facts, OnDemand: catalog.Dollar / 10}}})
	if err != nil {
		t.Fatal(err)
	}
	emulated.Faults.Throttle = world.EC2Throttle()
	image, err := estate.Region.SSM.Parameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id")
	if err != nil {
		t.Fatal(err)
	}
	return &wire{server: &emulator.Server{World: emulated}, made: map[string]int{}, throttled: map[string]int{}}, estate,
		ec2.Blueprint{ImageID: image.Value, SecurityGroups: []string{estate.NodeSG.ID},
			Metadata: ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"}}
}

// launchAll launches, reads and terminates count instances, for 20 NodePools. It uses as many workers as the controller
// has for NodeClaims. It returns the number of launched instances and the duration.
func launchAll(t *testing.T, client *ec2.Client, estate world.ClusterResources, blueprint ec2.Blueprint, count int) (int, time.Duration) {
	t.Helper()
	start := time.Now()
	work := make(chan int)
	var launched sync.Map
	var wait sync.WaitGroup
	for range 200 {
		wait.Go(func() {
			for i := range work {
				subnet := estate.PrivateSubnets[i%len(estate.PrivateSubnets)]
				claim := fmt.Sprintf("apps-%d", i)
				l, err := client.Launch(t.Context(), ec2.LaunchRequest{Claim: claim, ClaimUID: "uid-" + claim, NodePool: fmt.Sprint("pool-", i%20),
					NodeClass: "default", CapacityType: catalog.OnDemand, Groups: []ec2.Group{{Blueprint: blueprint, Choices: []ec2.Choice{
						{InstanceType: "m5.large", Zone: subnet.Zone.Name, SubnetID: subnet.ID, Price: catalog.Dollar / 10}}}}})
				if err != nil {
					continue
				}
				launched.Store(l.Instance.ID, true)
				if _, err := client.Instance(t.Context(), l.Instance.ID); err != nil {
					t.Errorf("read %s: %v", l.Instance.ID, err)
				}
				if err := client.Terminate(t.Context(), l.Instance.ID, ec2.ByTags); err != nil {
					t.Errorf("terminate %s: %v", l.Instance.ID, err)
				}
			}
		})
	}
	for i := range count {
		work <- i
	}
	close(work)
	wait.Wait()
	n := 0
	launched.Range(func(any, any) bool { n++; return true })
	return n, time.Since(start)
}

// TestThousandLaunches: with EC2's default throttling, a thousand instances are launched, read and terminated, and at
// most 1 % of the calls of each action are throttled.
func TestThousandLaunches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		api, estate, blueprint := newWire(t)
		var mu sync.Mutex
		observed := map[string]int{}
		client, err := ec2.New(api.config(ratelimit.New(ratelimit.Published(), func(a ratelimit.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			observed[a.Action]++
		})), ec2.Cluster{Name: "prod", UID: "uid"})
		if err != nil {
			t.Fatal(err)
		}
		launched, took := launchAll(t, client, estate, blueprint, count)
		t.Logf("%d launched in %s; made %v, throttled %v", launched, took, api.made, api.throttled)
		if launched != count || api.made["CreateFleet"] < count {
			t.Errorf("%d instances were launched by %d calls of CreateFleet, want %d by at least as many", launched,
				api.made["CreateFleet"], count)
		}
		for action, made := range api.made {
			if throttled := api.throttled[action]; 100*throttled > made {
				t.Errorf("%s: %d of %d calls were throttled, want at most 1 %%", action, throttled, made)
			}
			if observed[action] != made {
				t.Errorf("%s: observed %d calls of %d, want all", action, observed[action], made)
			}
		}
		// EC2 allows 50 launches at once and 5 per second after that, so 1000 launches take at least 190 s. The limiter
		// leaves a small part of this rate to other clients.
		if took > 220*time.Second {
			t.Errorf("the launches took %s, want at most 220 s: EC2's limits allow 190 s", took)
		}
	})
}

// TestWithoutLimiter: the emulated EC2 throttles a burst of calls, unless a limiter with EC2's own limits delays them.
func TestWithoutLimiter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limiter      *ratelimit.Limiter
		minThrottled int // 0: none. EC2 allows 100 of the 200 calls at once, and 20 per second after that
	}{
		"no limiter":         {nil, 80},
		"EC2's limits":       {ratelimit.New(ratelimit.Published(), nil), 0},
		"limits above EC2's": {ratelimit.New(ratelimit.Published().With(ratelimit.Limits{"DescribeVpcs": {300, 50}}), nil), 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api, _, _ := newWire(t)
				client := awsec2.NewFromConfig(api.config(c.limiter), func(o *awsec2.Options) { o.Retryer = aws.NopRetryer{} })
				var wait sync.WaitGroup
				for range 200 {
					wait.Go(func() {
						_, err := client.DescribeVpcs(t.Context(), &awsec2.DescribeVpcsInput{})
						if err != nil && !awserr.Is(awserr.Classify("DescribeVpcs", err), awserr.Throttled) {
							t.Error(err)
						}
					})
				}
				wait.Wait()
				if got := api.throttled["DescribeVpcs"]; c.minThrottled == 0 && got > 0 || got < c.minThrottled {
					t.Errorf("%d of %d calls were throttled, want at least %d (0: none)", got, api.made["DescribeVpcs"],
						c.minThrottled)
				}
			})
		})
	}
}
