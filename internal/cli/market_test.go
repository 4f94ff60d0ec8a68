package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCatalogTimeout: if AWS never answers, reading the catalog ends after the timeout with a one-line error and a
// hint.
func TestCatalogTimeout(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client closes the connection
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	for key, value := range map[string]string{
		"AWS_ENDPOINT_URL": hanging.URL, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_MAX_ATTEMPTS": "",
	} {
		t.Setenv(key, value)
	}
	m := marketFlags{from: fromAWS, region: "us-east-1", timeout: 200 * time.Millisecond, isSet: func(string) bool { return false }}
	start := time.Now()
	_, err := m.open(t.Context(), io.Discard)
	want := "read the offerings of us-east-1 from AWS: no complete answer within 200ms; check the network"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s…", err, want)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("reading took %s, want at most 10s", took)
	}
}
