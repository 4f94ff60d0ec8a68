package lab_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/lab"
)

// gate is a controller's only way to the API server and to AWS. When a write has been carried out the gate keeps the
// answer back and closes: no other write passes until it is opened for the next controller.
type gate struct {
	settings []string      // of a controller that is to go through the gate
	closed   chan struct{} // holds a token when the gate has closed: it is time to kill the controller

	mu     sync.Mutex // held by a write that is under way
	isShut bool
	isOpen bool // it stays open
	known  map[[sha256.Size]byte]bool
	names  []string // the writes after which it closed
}

// newGate puts a gate before the lab's servers.
func newGate(t *testing.T, l *lab.Lab) *gate {
	t.Helper()
	g := &gate{closed: make(chan struct{}, 1), known: map[[sha256.Size]byte]bool{}}
	transport, err := rest.TransportFor(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(to string, transport http.RoundTripper, keepHost bool, nameOf func(*http.Request, []byte) string) string {
		target, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite: func(q *httputil.ProxyRequest) {
				q.SetURL(target)
				if keepHost { // it is signed
					q.Out.Host = q.In.Host
				}
			},
			Transport: transport, FlushInterval: -1, // watches
			ErrorLog: log.New(io.Discard, "", 0), // killed clients
		}
		srv := httptest.NewServer(g.before(proxy, nameOf))
		t.Cleanup(srv.Close)
		t.Cleanup(srv.CloseClientConnections)
		return srv.URL
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: gate, cluster: {server: %q}}]
users: [{name: gate, user: {}}]
contexts: [{name: gate, context: {cluster: gate, user: gate}}]
current-context: gate
`, serve(l.Config.Host, transport, false, kubernetesWrite))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.settings = []string{"KUBECONFIG=" + config, "AWS_ENDPOINT_URL=" + serve(l.Endpoint, http.DefaultTransport, true, awsWrite)}
	return g
}

// before puts the gate in front of a server. nameOf returns the name of a write; empty for a read.
func (g *gate) before(server http.Handler, nameOf func(*http.Request, []byte) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet {
			server.ServeHTTP(w, q)
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // it died while it wrote
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		name := nameOf(q, body)
		if name == "" {
			server.ServeHTTP(w, q)
			return
		}
		answer, isLast := g.pass(server, q, name, body)
		if isLast {
			g.closed <- struct{}{}
		}
		if answer == nil {
			<-q.Context().Done() // until the controller is dead
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// pass carries a write out, unless the gate is closed. Without an answer the caller gets none; the second result is true
// for the write that has closed the gate. What changes nothing, or repeats word by word what has closed the gate before,
// passes: the next controller asks again for what it could not learn.
func (g *gate) pass(server http.Handler, q *http.Request, name string, body []byte) (*httptest.ResponseRecorder, bool) {
	answer := httptest.NewRecorder()
	isPoll := name == "sqs:ReceiveMessage" // it may wait long, and writes only if it gets something
	if isPoll {
		server.ServeHTTP(answer, q)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isShut || q.Context().Err() != nil {
		return nil, false
	}
	if !isPoll {
		server.ServeHTTP(answer, q)
	}
	write := sha256.Sum256(slices.Concat([]byte(q.Method+" "+q.URL.String()+" "+q.Header.Get("X-Amz-Target")+" "), body))
	isVain := answer.Code >= 300 || isPoll && !bytes.Contains(answer.Body.Bytes(), []byte("MessageId"))
	if g.isOpen || isVain || g.known[write] {
		return answer, false
	}
	g.isShut, g.known[write] = true, true
	g.names = append(g.names, name)
	return nil, true
}

// open lets the next controller's first write through.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = false
}

// leaveOpen ends it: all writes pass.
func (g *gate) leaveOpen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOpen = true
}

// writes returns the names of those after which it has closed.
func (g *gate) writes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

// kubernetesWrite names a write to the API server: "create nodeclaims", "patch nodeclaims/status". Events are left out,
// nothing is decided by them, and so are questions that are asked with POST.
func kubernetesWrite(q *http.Request, _ []byte) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete"}[q.Method]
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/") // api/v1/… or apis/GROUP/v1/…
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if verb == "" || len(parts) == 0 || parts[0] == "events" || strings.HasSuffix(parts[0], "reviews") || q.URL.Query().Has("dryRun") {
		return ""
	}
	if len(parts) > 2 {
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}

// awsWrite names a call to AWS that may change something there: "ec2:CreateFleet".
func awsWrite(q *http.Request, body []byte) string {
	_, action, isJSON := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		form, err := url.ParseQuery(string(body))
		if err != nil || form.Get("DryRun") == "true" {
			return ""
		}
		action = form.Get("Action")
	}
	for _, verb := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, verb) {
			return ""
		}
	}
	// "AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …"
	scope := strings.Split(q.Header.Get("Authorization"), "/")
	if len(scope) < 4 {
		return action
	}
	return scope[3] + ":" + action
}
