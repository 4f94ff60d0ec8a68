package world

import (
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// sessionLife is how long the credentials of an instance are valid, as in AWS.
const sessionLife = 6 * time.Hour

// SetIssuerKeys sets the public keys of a token issuer: see STS.SetIssuerKeys.
func (w *World) SetIssuerKeys(issuer string, document []byte) error {
	return w.sts.SetIssuerKeys(issuer, document)
}

// SessionByKey returns the session with an access key; false if the key is unknown.
func (w *World) SessionByKey(accessKey string) (identity.Session, bool) {
	return w.sts.SessionByKey(accessKey)
}

// IsValid reports whether the role of a session still exists. A user's session is always valid. IsValid does not
// check the expiration.
func (w *World) IsValid(s identity.Session) bool {
	if s.Identity.Role == "" {
		return true
	}
	_, err := w.Account(s.Identity.Account).Role(s.Identity.Role)
	return err == nil
}

// InstanceSession returns the credentials that the metadata service returns to an instance. It renews the credentials
// after half of sessionLife. The error describes why the instance has no credentials.
func (w *World) InstanceSession(now time.Time, instanceID string) (identity.Session, error) {
	h := w.historyOf(instanceID)
	if h == nil {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance does not exist", instanceID)
	}
	if !h.current.Alive() {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance is %s", instanceID, h.current.State)
	}
	if h.current.ProfileARN == "" {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance has no instance profile", instanceID)
	}
	a := h.region.Account
	p, err := a.ProfileByARN(h.current.ProfileARN)
	if err != nil {
		return identity.Session{},
			fmt.Errorf("read credentials of instance %s: instance profile %s does not exist", instanceID, h.current.ProfileARN)
	}
	if p.Role == "" {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance profile %s has no role", instanceID, p.Name)
	}
	if r, err := a.Role(p.Role); err == nil && !r.TrustsEC2() { // AssumeRole reports an unknown role
		return identity.Session{},
			fmt.Errorf("read credentials of instance %s: the trust policy of role %s does not allow EC2", instanceID, p.Role)
	}
	if s := h.session; s != nil && s.Identity.Role == p.Role && now.Before(s.Expires.Add(-sessionLife/2)) {
		return *s, nil
	}
	s, err := a.AssumeRole(now, p.Role, instanceID, sessionLife)
	if err != nil {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: role %s does not exist", instanceID, p.Role)
	}
	w.sts.ScheduleRemoval(&w.due, h.session)
	h.session = &s
	return s, nil
}
