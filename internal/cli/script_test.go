package cli_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/joiner-sh/joiner/internal/cli"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

func TestMain(m *testing.M) {
	joiner := func() {
		root := cli.Root("test", cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		os.Exit(cli.Run(context.Background(), root, cli.CalledAs(root, os.Args[0], os.Args[1:])))
	}
	testscript.Main(m, map[string]func(){"joiner": joiner, "kubectl-joiner": joiner, "kubectl_complete-joiner": joiner})
}

// TestScripts runs the command line as a user does. Each script has its own folder and environment, with the addresses
// of three servers: AWS is emulated, BROKEN is serveFailure, and STRANGER has an untrusted certificate.
func TestScripts(t *testing.T) {
	t.Parallel()
	aws := httptest.NewServer(newAWS(t))
	t.Cleanup(aws.Close)
	broken := httptest.NewServer(http.HandlerFunc(serveFailure))
	t.Cleanup(broken.Close)
	untrusted := httptest.NewTLSServer(http.HandlerFunc(serveFailure))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // the scripts cause TLS errors
	t.Cleanup(untrusted.Close)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits2": mustExitTwo},
		Setup: func(e *testscript.Env) error {
			for key, value := range map[string]string{
				"HOME": e.WorkDir, "AWS": aws.URL, "BROKEN": broken.URL, "STRANGER": untrusted.URL,
				"AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1",
				"AWS_CONFIG_FILE": e.WorkDir + "/none", "AWS_SHARED_CREDENTIALS_FILE": e.WorkDir + "/none",
			} {
				e.Setenv(key, value)
			}
			return nil
		},
	})
}

// mustExitTwo runs a command that must fail with status 2, print nothing on standard output, and print one line, not a
// stack trace, on standard error.
func mustExitTwo(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	switch stderr := ts.ReadFile("stderr"); {
	case neg:
		ts.Fatalf("exits2 cannot be negated")
	case !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed:
		ts.Fatalf("%q ended with %v, want exit code %d", args, err, cli.ExitFailed)
	case strings.Count(stderr, "\n") != 1:
		ts.Fatalf("%q prints more than one line of errors:\n%s", args, stderr)
	case ts.ReadFile("stdout") != "":
		ts.Fatalf("%q prints output although it failed", args)
	}
}

// newAWS returns an emulated AWS that offers three instance types in us-east-1.
func newAWS(t *testing.T) *emulator.Server {
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	region, err := table.Region("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	setup := world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"}
	for _, name := range []string{"m5.large", "c5.xlarge", "m7g.large"} {
		f, ok := table.Facts(name)
		if !ok {
			t.Fatalf("the embedded table lacks %s", name)
		}
		setup.Stock = append(setup.Stock, world.OfferedType{Facts: f, OnDemand: region.OnDemand[name]})
	}
	w, _, err := world.New(time.Now(), setup)
	if err != nil {
		t.Fatal(err)
	}
	return &emulator.Server{World: w}
}

// serveFailure is an HTTP server. The path of a request selects the failure. Below /names it is an API server that
// serves only the names of objects. Below /walled it denies discovery even to authenticated users. Below /slow it does
// not answer until the client disconnects. For other paths it is AWS with an outage.
func serveFailure(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/names/"):
		serveNames(w, strings.TrimPrefix(r.URL.Path, "/names"))
	case strings.HasPrefix(r.URL.Path, "/slow/"):
		<-r.Context().Done()
	case r.URL.Path == "/garbage/":
		_, _ = w.Write([]byte("<html>a proxy was here</html>"))
	case strings.HasPrefix(r.URL.Path, "/page/"):
		_, _ = w.Write([]byte("<html>log in here</html>"))
	case strings.HasPrefix(r.URL.Path, "/silent/"):
		w.WriteHeader(http.StatusForbidden)
	case strings.HasPrefix(r.URL.Path, "/unauthorized"):
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/nothing/"):
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(r.URL.Path, "/failing/"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
	case strings.HasPrefix(r.URL.Path, "/walled"):
		serveForbidden(w, "")
	case strings.HasPrefix(r.URL.Path, "/forbidden"):
		serveForbidden(w, strings.TrimPrefix(r.URL.Path, "/forbidden"))
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("<Response><Errors><Error><Code>Unavailable</Code><Message>down</Message></Error></Errors></Response>"))
	}
}

// serveForbidden is an API server that authenticates the user jane and allows only discovery.
func serveForbidden(w http.ResponseWriter, path string) {
	w.Header().Set("Content-Type", "application/json")
	answer, ok := map[string]string{
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "nodes", "kind": "Node", "verbs": ["list"]}]}`,
	}[path]
	if !ok {
		w.WriteHeader(http.StatusForbidden)
		answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
			"message": "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"}`
	}
	_, _ = w.Write([]byte(answer))
}

func serveNames(w http.ResponseWriter, path string) {
	names, ok := map[string]string{
		"/apis/karpenter.sh/v1/nodepools":           `{"metadata": {"name": "spot"}}, {"metadata": {"name": "general"}}, {"metadata": {"name": "gpu"}}`,
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": `{"metadata": {"name": "default"}}`,
	}[path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": [` + names + `]}`))
}
