package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/cli"
	"github.com/joiner-sh/joiner/internal/config"
)

// TestControllerRefusesToStart: an error before the first call to Kubernetes or AWS is one line with exit status 2.
func TestControllerRefusesToStart(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no cluster name": {want: "CLUSTER_NAME"},
		"invalid setting": {args: []string{"--cluster-name=c", "--batch-max-duration=10"}, want: "want a duration with its unit"},
		"unknown flag":    {args: []string{"--cluster-name=c", "--colour=red"}, want: "--colour"},
		"misspelled variable": {
			args: []string{"--cluster-name=c"}, env: map[string]string{"INTERUPTION_QUEUE": "q"},
			want: "there is no variable INTERUPTION_QUEUE: did you mean INTERRUPTION_QUEUE (--interruption-queue)?",
		},
		"missing kubeconfig": {
			args: []string{"--cluster-name=c"}, env: map[string]string{"KUBECONFIG": "/nowhere/at/all"},
			want: "find the API server: there is no kubeconfig at /nowhere/at/all; set --kubeconfig (KUBECONFIG), ",
		},
		"file that is no kubeconfig": {
			args: []string{"--cluster-name=c", "--kubeconfig=start_test.go"}, want: "start_test.go is no kubeconfig: it ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"CLUSTER_NAME", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "INTERUPTION_QUEUE"} {
				t.Setenv(variable, c.env[variable])
			}
			var out, errs bytes.Buffer
			root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, newController())
			code := cli.Run(t.Context(), root, append([]string{"controller"}, c.args...))
			text := strings.TrimSpace(errs.String())
			if code != cli.ExitFailed || !strings.Contains(text, c.want) || strings.Contains(text, "\n") || strings.Contains(text, "goroutine") {
				t.Errorf("exit %d, %q; want %d and one line with %q", code, text, cli.ExitFailed, c.want)
			}
		})
	}
}

// TestNoCredentials: the error about missing credentials is one line with a hint, without the SDK's internals.
func TestNoCredentials(t *testing.T) {
	for variable, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(variable, value)
	}
	_, err := (&awsSide{calls: &callMetrics{}}).configure(t.Context(), config.Settings{Region: "us-east-1"}, slog.New(slog.DiscardHandler))
	want := "find AWS credentials: there are none in the environment, the AWS configuration or the instance; give the controller's service account a role "
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "IMDS") {
		t.Errorf("%v, want %s…", err, want)
	}
}

// TestInvalidEndpoint: the error before the first call names the variable with an invalid endpoint.
func TestInvalidEndpoint(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_SQS", "garbage")
	_, err := (&awsSide{calls: &callMetrics{}}).configure(t.Context(), config.Settings{Region: "us-east-1"}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), `reach AWS: AWS_ENDPOINT_URL_SQS is "garbage", which is not an address; `) {
		t.Errorf("%v, want an error about AWS_ENDPOINT_URL_SQS", err)
	}
}

func TestControllerHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}, newController())
	if code := cli.Run(t.Context(), root, []string{"controller", "--help"}); code != cli.ExitOK ||
		!strings.Contains(out.String(), "--batch-max-duration") {
		t.Errorf("exit %d, %q; want 0 and the flags", code, out.String())
	}
}

// TestRetry: retry repeats only transient errors, after pauses of 1, 2, 4 and 8 seconds.
func TestRetry(t *testing.T) {
	t.Parallel()
	transient := &awserr.Error{Op: "X", Kind: awserr.Transient, Message: "try later"}
	denied := &awserr.Error{Op: "X", Kind: awserr.Denied, Message: "no", Hint: "ask for it"}
	for name, c := range map[string]struct {
		errs      []error
		wantTries int
		wantTook  time.Duration
		want      string // the error; empty: none
	}{
		"first attempt succeeds": {nil, 1, 0, ""},
		"third attempt succeeds": {[]error{transient, transient}, 3, 3 * time.Second, ""},
		"all attempts fail": {[]error{transient, transient, transient, transient, transient, transient}, maxAttempts,
			15 * time.Second, "do it: X: try later"},
		"permanent error":                 {[]error{denied}, 1, 0, "do it: X: no (ask for it)"},
		"transient, then permanent error": {[]error{transient, denied}, 2, time.Second, "do it: X: no (ask for it)"},
		"unclassified error":              {[]error{errors.New("odd")}, 1, 0, "do it: odd"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, tried := time.Now(), 0
			err := retry(t.Context(), slog.New(slog.DiscardHandler), "do it", judgeAWS, func(context.Context) error {
				tried++
				if tried <= len(c.errs) {
					return c.errs[tried-1]
				}
				return nil
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if tried != c.wantTries || time.Since(start) != c.wantTook || text != c.want {
				t.Errorf("%s: %d tries in %s, %q; want %d in %s, %q", name, tried, time.Since(start), text, c.wantTries, c.wantTook, c.want)
			}
		})
	}
}

// TestSameAuthority: two known certificate authorities must share a certificate. If one is unknown, the check passes.
func TestSameAuthority(t *testing.T) {
	t.Parallel()
	certificate := func(names ...string) []byte {
		var out []byte
		for _, n := range names {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(n)})...)
		}
		return out
	}
	encoded := func(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
	for name, c := range map[string]struct {
		fromEKS string
		ours    []byte // from the kubeconfig
		want    bool
	}{
		"the same":           {encoded(certificate("a")), certificate("a"), true},
		"one of several":     {encoded(certificate("a", "b")), certificate("b", "c"), true},
		"another cluster's":  {encoded(certificate("a")), certificate("b"), false},
		"none from EKS":      {"", certificate("b"), true},
		"none in kubeconfig": {encoded(certificate("a")), nil, true},
		"EKS: not base64":    {"%%", certificate("b"), true},
		"EKS: not PEM":       {encoded([]byte("hello")), certificate("b"), true},
	} {
		if got := sameAuthority(c.fromEKS, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.ours}}); got != c.want {
			t.Errorf("%s: sameAuthority is %t, want %t", name, got, c.want)
		}
	}
}

// TestQuiet: libraries log warnings and errors, at level debug everything, and never stack traces.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "warn error",
		slog.LevelError: "error",
		slog.LevelDebug: "debug info warn error",
	} {
		var out bytes.Buffer
		log := slog.New(libraryLogHandler{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})})
		log.Debug("debug")
		log.Info("info")
		log.With("a", 1).WithGroup("g").Warn("warn", "stacktrace", "long")
		log.Error("error", "stack", "long")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Fields(message)[0])
		}
		if strings.Join(got, " ") != want || strings.Contains(out.String(), "long") {
			t.Errorf("at %s: %q, want %q", level, out.String(), want)
		}
	}
}
