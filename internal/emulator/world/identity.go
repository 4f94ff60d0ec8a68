package world

import (
	"fmt"
	"strings"
	"time"
)

// Identity is who a caller is.
type Identity struct {
	Account string // 12 digits
	ARN     string // "arn:aws:sts::111122223333:assumed-role/node/i-0…"
	UserID  string // "AROA…:i-0…"
	Role    string // name of the role assumed; empty for a user
}

// Session is a set of access keys. Those of a role have a token and an end;
// those of a user have neither.
type Session struct {
	AccessKey string // "ASIA…" or "AKIA…"
	SecretKey string
	Token     string
	Expires   time.Time // zero: never
	Identity  Identity
}

// sessionLife is how long the keys of an instance are good for, as in life.
const sessionLife = 6 * time.Hour

// Root returns the identity of an account's owner, who may do everything, as it calls from a region.
func Root(account, region string) Identity {
	return Identity{Account: account, ARN: "arn:" + Partition(region) + ":iam::" + account + ":root", UserID: account}
}

// CreateUser makes a user with one access key, which signs requests.
func (a *Account) CreateUser(name string) Session {
	w := a.world
	id := "AIDA" + w.letters("user", 17)
	return w.issue(Session{
		AccessKey: "AKIA" + w.letters("key", 16),
		SecretKey: w.hex("secret", 40),
		Identity:  Identity{Account: a.ID, ARN: a.arn("iam", "user/"+name), UserID: id},
	})
}

// AssumeRole opens a session of a role. Its trust policy is not looked at.
func (a *Account) AssumeRole(now time.Time, role, session string, life time.Duration) (Session, error) {
	r := a.roles[role]
	if r == nil {
		return Session{}, refuseWith(403, "AccessDenied", "not authorized to perform: sts:AssumeRole on resource: %s", a.arn("iam", "role/"+role))
	}
	w := a.world
	return w.issue(Session{
		AccessKey: "ASIA" + w.letters("key", 16),
		SecretKey: w.hex("secret", 40),
		Token:     "IQoJ" + w.hex("token", 60),
		Expires:   now.Add(life),
		Identity: Identity{
			Account: a.ID, Role: role,
			ARN:    a.arn("sts", "assumed-role/"+role+"/"+session),
			UserID: r.ID + ":" + session,
		},
	}), nil
}

// SessionByKey finds the session that an access key belongs to.
func (w *World) SessionByKey(accessKey string) (Session, bool) {
	if s := w.sessions[accessKey]; s != nil {
		return *s, true
	}
	return Session{}, false
}

// Stands says whether the role that a session is of still exists; the keys of a
// user always stand.
func (w *World) Stands(s Session) bool {
	return s.Identity.Role == "" || w.Account(s.Identity.Account).roles[s.Identity.Role] != nil
}

// InstanceSession returns the keys that the metadata service hands an instance
// for its role, the same ones until half of their life is over. The error says
// what is missing.
func (w *World) InstanceSession(now time.Time, instanceID string) (Session, error) {
	m := w.historyOf(instanceID)
	if m == nil {
		return Session{}, fmt.Errorf("read credentials of instance %s: no such instance", instanceID)
	}
	if !m.now.Alive() {
		return Session{}, fmt.Errorf("read credentials of instance %s: it is %s", instanceID, m.now.State)
	}
	if m.now.ProfileARN == "" {
		return Session{}, fmt.Errorf("read credentials of instance %s: it has no instance profile", instanceID)
	}
	a := m.region.Account
	p, err := a.ProfileByARN(m.now.ProfileARN)
	if err != nil {
		return Session{}, fmt.Errorf("read credentials of instance %s: instance profile %s does not exist", instanceID, m.now.ProfileARN)
	}
	if p.Role == "" {
		return Session{}, fmt.Errorf("read credentials of instance %s: instance profile %s holds no role", instanceID, p.Name)
	}
	if r, err := a.Role(p.Role); err == nil && !r.forInstances() {
		return Session{}, fmt.Errorf("read credentials of instance %s: EC2 may not assume role %s, by its trust policy", instanceID, p.Role)
	}
	if s := m.session; s != nil && s.Identity.Role == p.Role && now.Before(s.Expires.Add(-sessionLife/2)) {
		return *s, nil
	}
	s, err := a.AssumeRole(now, p.Role, instanceID, sessionLife)
	if err != nil {
		return Session{}, fmt.Errorf("read credentials of instance %s: role %s does not exist", instanceID, p.Role)
	}
	w.forget(m.session)
	m.session = &s
	return s, nil
}

// issue registers a session, so that its signature can be verified.
func (w *World) issue(s Session) Session {
	if w.sessions == nil {
		w.sessions = map[string]*Session{}
	}
	w.sessions[s.AccessKey] = &s
	return s
}

// forget drops a session whose keys have been replaced, once they have expired.
func (w *World) forget(s *Session) {
	if s == nil {
		return
	}
	w.due.enter(s.Expires, func(time.Time) { delete(w.sessions, s.AccessKey) })
}

// roleName returns the name of a role from its name or ARN.
func roleName(nameOrARN string) string {
	return nameOrARN[strings.LastIndexByte(nameOrARN, '/')+1:]
}
