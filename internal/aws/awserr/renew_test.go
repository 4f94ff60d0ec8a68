package awserr_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// numberedKeys provides the access keys KEY1, KEY2 and so on, up to the number last, which it repeats. Each is valid
// for an hour by the local clock.
type numberedKeys struct {
	handed atomic.Int32 // number of calls of Retrieve
	last   atomic.Int32 // number of the last key
}

func (k *numberedKeys) Retrieve(context.Context) (aws.Credentials, error) {
	n := min(k.handed.Add(1), k.last.Load())
	return aws.Credentials{AccessKeyID: fmt.Sprintf("KEY%d", n), SecretAccessKey: "secret", CanExpire: true,
		Expires: time.Now().Add(time.Hour)}, nil
}

// keyRejecter rejects calls that are signed with key, with the error code and the HTTP status. It answers other calls
// with an empty list.
type keyRejecter struct {
	key, code string
	status    int

	refused, served atomic.Int32 // numbers of rejected and of other calls
}

func (k *keyRejecter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-Requestid", "req-1")
	if strings.Contains(r.Header.Get("Authorization"), "Credential="+k.key+"/") {
		k.refused.Add(1)
		w.WriteHeader(k.status)
		_, _ = w.Write([]byte(ec2Error(k.code, "expired")))
		return
	}
	k.served.Add(1)
	_, _ = w.Write([]byte("<DescribeImagesResponse><requestId>req-1</requestId></DescribeImagesResponse>"))
}

// TestExpiredCredentialsAreRenewed: credentials that AWS reports as expired are renewed, although they have not expired
// by the local clock.
func TestExpiredCredentialsAreRenewed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code            string
		last            int32  // number of the last key; 1: renewing gives the same key again
		refused, served int32  // wanted counts of keyRejecter
		handed          int32  // wanted number of calls of Retrieve
		reason          string // wanted reason; empty: no error
	}{
		"code of IAM, STS and SQS": {code: "ExpiredToken", last: 2, refused: 1, served: 1, handed: 2},
		"code of EKS and SSM":      {code: "ExpiredTokenException", last: 2, refused: 1, served: 1, handed: 2},
		"code of EC2":              {code: "RequestExpired", last: 2, refused: 1, served: 1, handed: 2},
		"no newer credentials":     {code: "ExpiredToken", last: 1, refused: 1, handed: 2, reason: "ExpiredCredentials"},
		"another error code":       {code: "UnauthorizedOperation", last: 2, refused: 1, handed: 1, reason: "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &keyRejecter{key: "KEY1", code: c.code, status: http.StatusForbidden}
			srv := httptest.NewServer(server)
			t.Cleanup(srv.Close)
			k := &numberedKeys{}
			k.last.Store(c.last)
			cfg := config(srv.URL)
			cfg.Credentials = aws.NewCredentialsCache(k)
			client := ec2.NewFromConfig(awserr.ClientConfig(awserr.ClientConfig(cfg))) // applying ClientConfig twice must have no further effect
			_, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
			if c.reason == "" && err != nil || c.reason != "" && (err == nil || awserr.Of(awserr.Classify("DescribeImages", err)).Reason != c.reason) {
				t.Errorf("got %v, want reason %q", err, c.reason)
			}
			if server.refused.Load() != c.refused || server.served.Load() != c.served || k.handed.Load() != c.handed {
				t.Errorf("%d calls refused, %d served, %d keys handed out; want %d, %d, %d",
					server.refused.Load(), server.served.Load(), k.handed.Load(), c.refused, c.served, c.handed)
			}
		})
	}
}

// TestManyRenewOnce: the first of many rejected calls renews the credentials for all.
func TestManyRenewOnce(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(&keyRejecter{key: "KEY1", code: "ExpiredToken", status: http.StatusForbidden})
	t.Cleanup(srv.Close)
	k := &numberedKeys{}
	k.last.Store(1 << 20) // each call of Retrieve returns a new key
	cfg := config(srv.URL)
	cfg.Credentials = aws.NewCredentialsCache(k)
	client := ec2.NewFromConfig(awserr.ClientConfig(cfg))
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := k.handed.Load(); n != 2 {
		t.Errorf("%d keys were handed out for 20 calls, want 2", n)
	}
}

// TestWrongSigningTime: EC2 rejects a request with a wrong signing time, with the same code as for expired credentials.
// The SDK corrects its clock with the Date header of this response, so the retry succeeds.
func TestWrongSigningTime(t *testing.T) {
	t.Parallel()
	const serverAhead = 20 * time.Minute // of the local clock
	var offsets []time.Duration          // each request's signing time minus the server's time
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now().Add(serverAhead)
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			t.Error(err)
		}
		offsets = append(offsets, signed.Sub(now))
		w.Header().Set("X-Amzn-Requestid", "req-1")
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		if signed.Before(now.Add(-serverAhead / 2)) { // signed with the local clock
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(ec2Error("RequestExpired", "Request has expired.")))
			return
		}
		_, _ = w.Write([]byte("<DescribeImagesResponse><requestId>req-1</requestId></DescribeImagesResponse>"))
	}))
	t.Cleanup(srv.Close)
	client := ec2.NewFromConfig(awserr.ClientConfig(config(srv.URL)))
	for range 2 {
		if _, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{}); err != nil {
			t.Error(err)
		}
	}
	if len(offsets) != 3 || offsets[1] < -time.Minute || offsets[2] < -time.Minute {
		t.Errorf("requests were signed at %v relative to the server's time, want 3 requests, of which only the first is too early", offsets)
	}
}
