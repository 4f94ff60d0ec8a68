// Package authn authenticates bearer tokens for the API server, as EKS does.
//
// In: TokenReviews; the callers that STS returns; access entries and aws-auth.
// Out: Kubernetes users and groups, or a refusal.
// Never: a user without a mapping in a source that the cluster's authentication mode uses.
package authn

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// Options configure a Webhook.
type Options struct {
	Cluster  string     // name of the cluster; tokens for another cluster are rejected
	Region   string     // AWS region; tokens contain the STS host name of this region
	Endpoint string     // endpoint of AWS: "http://127.0.0.1:4566"
	AWS      aws.Config // credentials for the calls to EKS, EC2 and IAM

	// AWSAuth returns the data of the ConfigMap kube-system/aws-auth, and false if it does not exist.
	AWSAuth func() (map[string]string, bool)
	// Log receives a line per review; nil discards the lines.
	Log io.Writer
}

// Webhook reviews tokens over HTTP.
type Webhook struct {
	Options
	client aws.HTTPClient
	eks    *eks.Client
	ec2    *ec2.Client
	iam    *iam.Client
	names  sync.Map   // instance id → private DNS name
	logMu  sync.Mutex // held while a line is written to Log
}

// New makes a webhook.
func New(o Options) *Webhook {
	if o.Log == nil {
		o.Log = io.Discard
	}
	var client aws.HTTPClient = &http.Client{Timeout: 10 * time.Second}
	if o.AWS.HTTPClient != nil {
		client = o.AWS.HTTPClient
	}
	return &Webhook{
		Options: o,
		client:  client,
		eks:     eks.NewFromConfig(o.AWS),
		ec2:     ec2.NewFromConfig(o.AWS),
		iam:     iam.NewFromConfig(o.AWS),
	}
}

// ServeHTTP answers one TokenReview.
func (w *Webhook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, 4<<20)).Decode(&review); err != nil {
		http.Error(rw, fmt.Sprintf("read TokenReview: %v", err), http.StatusBadRequest)
		return
	}
	review.Status = w.Review(r.Context(), review.Spec.Token, time.Now())
	review.Spec = authenticationv1.TokenReviewSpec{}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}

// Review authenticates a token. now is the current time.
func (w *Webhook) Review(ctx context.Context, token string, now time.Time) authenticationv1.TokenReviewStatus {
	user, caller, err := w.identify(ctx, token, now)
	if err != nil {
		w.log("level=warning msg=\"access denied\" arn=%q error=%q", caller.RoleARN, err)
		return authenticationv1.TokenReviewStatus{Error: err.Error()}
	}
	w.log("level=info msg=\"access granted\" arn=%q groups=%q username=%q", caller.RoleARN, user.Groups, user.Username)
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: user}
}

// identify returns a token's user in the cluster and its caller in AWS. If the caller is known but has no valid
// mapping, identify returns the caller with the error.
func (w *Webhook) identify(ctx context.Context, token string, now time.Time) (authenticationv1.UserInfo, Caller, error) {
	var none authenticationv1.UserInfo
	signed, err := w.parse(token, now)
	if err != nil {
		return none, Caller{}, err
	}
	c, err := w.caller(ctx, signed)
	if err != nil {
		return none, c, err
	}
	m, err := w.findMapping(ctx, c)
	if err != nil {
		return none, c, err
	}
	user := authenticationv1.UserInfo{
		UID: "aws-iam-authenticator:" + c.Account + ":" + c.UserID,
		Extra: map[string]authenticationv1.ExtraValue{
			"arn": {c.ARN}, "canonicalArn": {c.RoleARN}, "sessionName": {c.Session}, "accessKeyId": {c.AccessKeyID},
		},
	}
	if user.Username, err = w.fillPlaceholders(ctx, m.username, c); err != nil {
		return none, c, err
	}
	for _, group := range m.groups {
		filled, err := w.fillPlaceholders(ctx, group, c)
		if err != nil {
			return none, c, err
		}
		user.Groups = append(user.Groups, filled)
	}
	return user, c, nil
}

// log writes a line to Log, with the time. format has the line's other fields.
func (w *Webhook) log(format string, args ...any) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	fmt.Fprintf(w.Log, "time=%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
}

func (w *Webhook) emulatorHost() string {
	u, err := url.Parse(w.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}
