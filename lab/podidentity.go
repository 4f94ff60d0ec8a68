package lab

import (
	"cmp"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// PodIdentity serves credentials of a role, as the EKS Pod Identity agent does:
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html.
type PodIdentity struct {
	Lab      *Lab          // lab with the role
	Role     string        // name of the role; empty: ControllerRole
	Life     time.Duration // lifetime of the credentials, by AWS's clock
	Requests atomic.Int32  // number of requests for credentials
}

// Settings returns the settings of a controller that requests its credentials at url instead of using static
// credentials.
func (*PodIdentity) Settings(url string) []string {
	return []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + url}
}

// ServeHTTP returns credentials.
func (p *PodIdentity) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.Requests.Add(1)
	var session identity.Session
	var err error
	p.Lab.Emulator.Do(func(w *world.World, now time.Time) {
		session, err = w.Account(p.Lab.Account).AssumeRole(now, cmp.Or(p.Role, ControllerRole), "joiner", p.Life)
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{ // fails only if the controller has closed the connection
		"AccessKeyId": session.AccessKey, "SecretAccessKey": session.SecretKey, "Token": session.Token,
		"Expiration": session.Expires.UTC().Format(time.RFC3339),
	})
}
