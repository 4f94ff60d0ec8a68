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

// writeGate is a proxy through which a controller connects to the API server and to AWS. After the gate has forwarded a
// write, it withholds the response and closes. While it is closed, it forwards no write. The test opens it for the next
// controller.
type writeGate struct {
	settings []string      // settings of a controller that connects through the gate
	closed   chan struct{} // receives a token when the gate closes: then the test kills the controller

	mu          sync.Mutex // held while a write is forwarded
	isClosed    bool
	neverCloses bool                       // set by stopClosing
	known       map[[sha256.Size]byte]bool // hashes of the writes after which the gate closed
	names       []string                   // names of these writes
}

func newWriteGate(t *testing.T, l *lab.Lab) *writeGate {
	t.Helper()
	g := &writeGate{closed: make(chan struct{}, 1), known: map[[sha256.Size]byte]bool{}}
	transport, err := rest.TransportFor(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	// serve starts a proxy to the server at a URL, and returns the proxy's URL.
	serve := func(serverURL string, transport http.RoundTripper, keepHost bool, writeName func(*http.Request, []byte) string) string {
		target, err := url.Parse(serverURL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite: func(q *httputil.ProxyRequest) {
				q.SetURL(target)
				if keepHost { // the host is part of the request's signature
					q.Out.Host = q.In.Host
				}
			},
			Transport: transport, FlushInterval: -1, // flush immediately, for watches
			ErrorLog: log.New(io.Discard, "", 0), // discard errors of killed clients
		}
		srv := httptest.NewServer(g.handler(proxy, writeName))
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

// handler returns a handler that forwards requests through the gate to a server. writeName returns the name of a write,
// and an empty name for a read.
func (g *writeGate) handler(server http.Handler, writeName func(*http.Request, []byte) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet {
			server.ServeHTTP(w, q)
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the controller was killed while it sent the request
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		name := writeName(q, body)
		if name == "" {
			server.ServeHTTP(w, q)
			return
		}
		response, hasClosed := g.forwardWrite(server, q, name, body)
		if hasClosed {
			g.closed <- struct{}{}
		}
		if response == nil {
			<-q.Context().Done() // until the controller is killed
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = w.Write(response.Body.Bytes())
	})
}

// forwardWrite forwards a write, unless the gate is closed. If the result is nil, the controller gets no response.
// hasClosed reports whether the write has closed the gate. Two kinds of writes do not close the gate: a write without
// effect, and an exact repetition of a write whose response was withheld, because every later controller repeats it.
func (g *writeGate) forwardWrite(server http.Handler, q *http.Request, name string, body []byte) (result *httptest.ResponseRecorder, hasClosed bool) {
	response := httptest.NewRecorder()
	isPoll := name == "sqs:ReceiveMessage" // can block for long, so mu is not held; a write only if it returns messages
	if isPoll {
		server.ServeHTTP(response, q)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed || q.Context().Err() != nil {
		return nil, false
	}
	if !isPoll {
		server.ServeHTTP(response, q)
	}
	write := sha256.Sum256(slices.Concat([]byte(q.Method+" "+q.URL.String()+" "+q.Header.Get("X-Amz-Target")+" "), body))
	isWithoutEffect := response.Code >= 300 || isPoll && !bytes.Contains(response.Body.Bytes(), []byte("MessageId"))
	if g.neverCloses || isWithoutEffect || g.known[write] {
		return response, false
	}
	g.isClosed, g.known[write] = true, true
	g.names = append(g.names, name)
	return nil, true
}

func (g *writeGate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isClosed = false
}

func (g *writeGate) stopClosing() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.neverCloses = true
}

func (g *writeGate) writes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

// kubernetesWrite returns the name of a write to the API server: "create nodeclaims", "patch nodeclaims/status". The
// name is empty for dry runs, for reviews, and for events, which do not affect decisions.
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
	if len(parts) > 2 { // RESOURCE/NAME/SUBRESOURCE
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}

// awsWrite returns the name of a call that can change AWS: "ec2:CreateFleet". The name is empty for other calls.
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
