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

// wire sends calls to an emulator without a network, so that the test's clock can stand still meanwhile. A call takes
// up to 400 ms, so calls do not arrive in the order in which they were sent.
type wire struct {
	server *emulator.Server

	mu            sync.Mutex
	made, refused map[string]int // by action
	sent          int
}

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
	underway := time.Duration(w.sent*7919%40) * 10 * time.Millisecond
	w.mu.Unlock()
	select {
	case <-time.After(underway):
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
		w.refused[form.Get("Action")]++
	}
	return out.Result(), nil
}

// config returns the configuration of a client with the budget (nil for none) that uses the wire.
func (w *wire) config(b *ratelimit.Budget) aws.Config {
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String("http://ec2.test"), HTTPClient: w,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	if b != nil {
		cfg.APIOptions = []func(*middleware.Stack) error{b.Keep}
	}
	return cfg
}

// newWire emulates a region that offers m5.large, with EC2's default throttling.
func newWire(t *testing.T) (*wire, world.Estate, ec2.Blueprint) {
	t.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	facts, _ := table.Facts("m5.large")
	w, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod",
		Stock: []world.Stock{{Facts: facts, OnDemand: catalog.Dollar / 10}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Faults.Throttle = world.EC2Throttle()
	image, err := estate.Region.SSM.Parameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id")
	if err != nil {
		t.Fatal(err)
	}
	return &wire{server: &emulator.Server{World: w}, made: map[string]int{}, refused: map[string]int{}}, estate,
		ec2.Blueprint{ImageID: image.Value, SecurityGroups: []string{estate.NodeGroup.ID},
			Metadata: ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"}}
}

// launches launches count instances for separate NodePools, reads and terminates each. It uses as many workers as the
// controller has for NodeClaims. It returns the number of launched instances and the duration.
func launches(t *testing.T, client *ec2.Client, estate world.Estate, blueprint ec2.Blueprint, count int) (int, time.Duration) {
	t.Helper()
	begun := time.Now()
	work := make(chan int)
	var bought sync.Map
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
				bought.Store(l.Instance.ID, true)
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
	bought.Range(func(any, any) bool { n++; return true })
	return n, time.Since(begun)
}

// TestThousandLaunches: with EC2's default throttling, a thousand instances are launched, read and terminated, and less than 1 % of
// each kind of call is throttled.
func TestThousandLaunches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		line, estate, blueprint := newWire(t)
		var mu sync.Mutex
		observed := map[string]int{}
		client, err := ec2.New(line.config(ratelimit.New(ratelimit.Published(), func(a ratelimit.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			observed[a.Action]++
		})), ec2.Cluster{Name: "prod", UID: "uid"})
		if err != nil {
			t.Fatal(err)
		}
		bought, took := launches(t, client, estate, blueprint, count)
		t.Logf("%d launched in %s; made %v, throttled %v", bought, took, line.made, line.refused)
		if bought != count || line.made["CreateFleet"] < count {
			t.Errorf("%d instances were launched by %d calls, want %d", bought, line.made["CreateFleet"], count)
		}
		for action, made := range line.made {
			if refused := line.refused[action]; 100*refused > made {
				t.Errorf("%s: %d of %d calls were refused", action, refused, made)
			}
			if observed[action] != made {
				t.Errorf("%s: observed %d calls of %d", action, observed[action], made)
			}
		}
		// EC2 allows 50 launches at once and 5 per second after that: 190 s. The budget leaves a small part of that to
		// other clients.
		if took > 220*time.Second {
			t.Errorf("the launches took %s: EC2's limits allow 190 s", took)
		}
	})
}

// TestWithoutBudget shows that the emulated EC2 throttles: without a budget and without retries, calls are rejected.
func TestWithoutBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep *ratelimit.Budget
		want int // throttled calls of 200 concurrent ones; EC2 allows 100, and 20 per second
	}{
		"without":             {nil, 80},
		"with":                {ratelimit.New(ratelimit.Published(), nil), 0},
		"with limits of ours": {ratelimit.New(ratelimit.Published().With(ratelimit.Limits{"DescribeVpcs": {300, 50}}), nil), 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				line, _, _ := newWire(t)
				client := awsec2.NewFromConfig(line.config(c.keep), func(o *awsec2.Options) { o.Retryer = aws.NopRetryer{} })
				var wait sync.WaitGroup
				for range 200 {
					wait.Go(func() {
						_, err := client.DescribeVpcs(t.Context(), &awsec2.DescribeVpcsInput{})
						if err != nil && !awserr.Is(awserr.Sort("DescribeVpcs", err), awserr.Throttled) {
							t.Error(err)
						}
					})
				}
				wait.Wait()
				if got := line.refused["DescribeVpcs"]; c.want == 0 && got > 0 || got < c.want {
					t.Errorf("%d of %d were refused, want %d", got, line.made["DescribeVpcs"], c.want)
				}
			})
		})
	}
}
