package world

import (
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// sessionLife is how long the keys of an instance are good for, as in life.
const sessionLife = 6 * time.Hour

// Publish has an issuer show the keys that its tokens are signed with: see STS.Publish.
func (w *World) Publish(issuer string, document []byte) error { return w.sts.Publish(issuer, document) }

// SessionByKey finds the session that an access key belongs to.
func (w *World) SessionByKey(accessKey string) (identity.Session, bool) {
	return w.sts.SessionByKey(accessKey)
}

// IsValid reports whether the role that a session is of still exists; the keys of a
// user always stand.
func (w *World) IsValid(s identity.Session) bool {
	if s.Identity.Role == "" {
		return true
	}
	_, err := w.Account(s.Identity.Account).Role(s.Identity.Role)
	return err == nil
}

// InstanceSession returns the keys that the metadata service hands an instance
// for its role, the same ones until half of their life is over. The error says
// what is missing.
func (w *World) InstanceSession(now time.Time, instanceID string) (identity.Session, error) {
	m := w.historyOf(instanceID)
	if m == nil {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: no such instance", instanceID)
	}
	if !m.now.Alive() {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: it is %s", instanceID, m.now.State)
	}
	if m.now.ProfileARN == "" {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: it has no instance profile", instanceID)
	}
	a := m.region.Account
	p, err := a.ProfileByARN(m.now.ProfileARN)
	if err != nil {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance profile %s does not exist", instanceID, m.now.ProfileARN)
	}
	if p.Role == "" {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: instance profile %s holds no role", instanceID, p.Name)
	}
	if r, err := a.Role(p.Role); err == nil && !r.ForInstances() {
		return identity.Session{},
			fmt.Errorf("read credentials of instance %s: EC2 may not assume role %s, by its trust policy", instanceID, p.Role)
	}
	if s := m.session; s != nil && s.Identity.Role == p.Role && now.Before(s.Expires.Add(-sessionLife/2)) {
		return *s, nil
	}
	s, err := a.AssumeRole(now, p.Role, instanceID, sessionLife)
	if err != nil {
		return identity.Session{}, fmt.Errorf("read credentials of instance %s: role %s does not exist", instanceID, p.Role)
	}
	w.sts.Forget(&w.due, m.session)
	m.session = &s
	return s, nil
}
