package checks_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/doctor/remedy"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// calls is a client of Kubernetes and AWS that records calls that change something.
type calls struct {
	mu     sync.Mutex  // guards aws
	kube   []string    // calls to Kubernetes
	aws    []string    // calls to AWS
	claims []fix.Claim // NodeClaims that exist

	expected fix.Expected // state of the access entry that a step deletes
}

func (c *calls) DryRun(context.Context, kubeclient.Patch) (kubeclient.PatchDryRun, error) {
	return kubeclient.PatchDryRun{}, nil
}

func (c *calls) Apply(_ context.Context, p kubeclient.Patch, _ kubeclient.PatchDryRun) error {
	c.kube = append(c.kube, strings.Join([]string{"patch", p.Group, p.Kind, p.Namespace, p.Name, p.Type, p.Text}, "|"))
	return nil
}

func (c *calls) DryRunDelete(_ context.Context, kind, name string) (kubeclient.Deletion, bool, error) {
	i := slices.IndexFunc(c.claims, func(o fix.Claim) bool { return o.Name == name })
	if i < 0 {
		return kubeclient.Deletion{}, false, nil
	}
	return kubeclient.Deletion{Kind: kind, Name: name, ProviderID: "aws:///us-east-1a/" + c.claims[i].Instance,
		Joined: c.claims[i].Joined}, true, nil
}

func (c *calls) Delete(_ context.Context, d kubeclient.Deletion) error {
	c.kube = append(c.kube, "delete|"+d.Kind+"|"+d.Name)
	return nil
}

// RoundTrip answers AWS calls with success, and records those that change something.
func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	response, header := "{}", http.Header{"Content-Type": {"application/json"}}
	if e := c.expected; e.Type != "" && r.Method == http.MethodGet {
		response = fmt.Sprintf(`{"accessEntry":{"type":%q,"createdAt":%d}}`, e.Type, e.Created.Unix())
	}
	form, _ := url.ParseQuery(string(body))
	action := form.Get("Action") // empty for EKS, whose calls differ by method and path
	if action != "" {
		response, header = fmt.Sprintf("<%[1]sResponse><%[1]sResult></%[1]sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>", action), http.Header{"Content-Type": {"text/xml"}}
	}
	header.Set("X-Amzn-Requestid", "r")
	if !strings.HasPrefix(action, "Get") && r.Method != http.MethodGet {
		text := r.Method + " " + r.URL.Path + " " + string(body)
		if action != "" {
			text = "POST " + action
			for _, name := range slices.Sorted(maps.Keys(form)) {
				text += " " + strings.Join(form[name], " ")
			}
		}
		c.mu.Lock()
		c.aws = append(c.aws, text)
		c.mu.Unlock()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(response)), Request: r}, nil
}

// executedDifference carries out a fix with recording clients. It describes how the calls differ from the steps; empty
// if they do not.
func executedDifference(ctx context.Context, f fix.Fix) string {
	c := &calls{}
	var want []string
	for _, s := range f.Steps() {
		k, isKube := s.Kubernetes()
		if a, isAWS := s.AWS(); isAWS && a.Expected.Type != "" {
			c.expected = a.Expected
		}
		switch {
		case s.Kind() != fix.Change || !isKube:
		case k.Verb == "patch":
			text := k.Patch
			if len(k.Correct) > 0 {
				text = `{"asked":"` + strings.Join(k.Correct, " ") + `"}`
			}
			want = append(want, strings.Join([]string{"patch", k.Group, k.Resource, k.Namespace, k.Names[0], k.PatchType, text}, "|"))
		default:
			c.claims = append(c.claims, k.Claims...)
			for _, claim := range k.Claims {
				want = append(want, "delete|nodeclaim|"+claim.Name)
			}
		}
	}
	// The patch text of joiner correct is its arguments, as in want.
	clients := remedy.Clients{Kube: c, RunCorrect: func(_ context.Context, args []string) (string, error) {
		return `{"asked":"` + strings.Join(args, " ") + `"}`, nil
	},
		AWS: remedy.NewAWS(aws.Config{Region: "us-east-1", HTTPClient: &http.Client{Transport: c}, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider("111122223333", "x", "")}, "")}
	changes, err := remedy.Plan(ctx, f, clients)
	if len(c.kube)+len(c.aws) > 0 {
		return "changes something before it was shown"
	}
	if err != nil {
		return "" // joiner does not carry out the fix: the user does
	}
	n, err := remedy.Apply(ctx, changes)
	switch {
	case strings.Contains(strings.Join(c.aws, " "), marker):
		return "calls AWS with hostile text: " + strings.Join(c.aws, ", ")
	case err != nil:
		return fmt.Sprintf("fails after %d changes: %v", n, err)
	case !slices.Equal(c.kube, want):
		return fmt.Sprintf("makes the calls %q, want %q", c.kube, want)
	}
	return c.awsDifference(f)
}

// awsDifference describes how the recorded calls to AWS differ from those of the steps; empty if they do not.
func (c *calls) awsDifference(f fix.Fix) string {
	n := 0
	for _, s := range f.Steps() {
		call, isAWS := s.AWS()
		if !isAWS || s.Kind() != fix.Change {
			continue
		}
		if n == len(c.aws) {
			return fmt.Sprintf("makes %d calls to AWS, and has more steps that call AWS", n)
		}
		for _, p := range call.Params {
			for _, value := range p.Values {
				if p.Name != "--region" && !strings.Contains(c.aws[n], value) {
					return fmt.Sprintf("calls AWS with %q, want %s with the value %q", c.aws[n], p.Name, value)
				}
			}
		}
		n++
	}
	if n != len(c.aws) {
		return fmt.Sprintf("makes %d calls to AWS, and has %d steps that call AWS: %q", len(c.aws), n, c.aws)
	}
	return ""
}
