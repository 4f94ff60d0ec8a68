package identity

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// Identity identifies a caller.
type Identity struct {
	Account string // 12 digits
	ARN     string // "arn:aws:sts::111122223333:assumed-role/node/i-0…"
	UserID  string // "AROA…:i-0…"
	Role    string // name of the assumed role; empty for a user
}

// Session is a set of access keys. The keys of a role have a session token and expire. The keys of a user have no token
// and do not expire.
type Session struct {
	AccessKey string    // "ASIA…" or "AKIA…"
	SecretKey string    // secret access key, which signs requests
	Token     string    // session token; empty for a user
	Expires   time.Time // zero: never
	Identity  Identity  // identity of the caller with these keys
}

// Root returns the identity of an account's root user, who has all permissions. The region determines the partition of
// the ARN.
func Root(account, region string) Identity {
	return Identity{Account: account, ARN: "arn:" + site.Partition(region) + ":iam::" + account + ":root", UserID: account}
}

// CreateUser creates a user with one access key.
func (a *IAM) CreateUser(name string) Session {
	id := "AIDA" + a.ids.Letters("user", 17)
	return a.sts.issue(Session{
		AccessKey: "AKIA" + a.ids.Letters("key", 16),
		SecretKey: a.ids.Hex("secret", 40),
		Identity:  Identity{Account: a.ID, ARN: a.arn("iam", "user/"+name), UserID: id},
	})
}

// AssumeRole opens a session of a role. It does not evaluate the trust policy.
func (a *IAM) AssumeRole(now time.Time, role, sessionName string, life time.Duration) (Session, error) {
	r := a.roles[role]
	if r == nil {
		return Session{}, failure.WithStatus(403, "AccessDenied", "not authorized to perform: sts:AssumeRole on resource: %s",
			a.arn("iam", "role/"+role))
	}
	return a.sts.issue(Session{
		AccessKey: "ASIA" + a.ids.Letters("key", 16),
		SecretKey: a.ids.Hex("secret", 40),
		Token:     "IQoJ" + a.ids.Hex("token", 60),
		Expires:   now.Add(life),
		Identity: Identity{
			Account: a.ID, Role: role,
			ARN:    a.arn("sts", "assumed-role/"+role+"/"+sessionName),
			UserID: r.ID + ":" + sessionName,
		},
	}), nil
}

// SessionByKey returns the session with an access key; false if the key is unknown.
func (s *STS) SessionByKey(accessKey string) (Session, bool) {
	if session := s.sessions[accessKey]; session != nil {
		return *session, true
	}
	return Session{}, false
}

func (s *STS) issue(issued Session) Session {
	if s.sessions == nil {
		s.sessions = map[string]*Session{}
	}
	s.sessions[issued.AccessKey] = &issued
	return issued
}

// ScheduleRemoval schedules the removal of a session at the time its keys expire. It does nothing for nil.
func (s *STS) ScheduleRemoval(due *site.Timetable, old *Session) {
	if old == nil {
		return
	}
	due.Schedule(old.Expires, func(time.Time) { delete(s.sessions, old.AccessKey) })
}

// RoleName returns the name of a role from its name or ARN: the text after the last slash.
func RoleName(nameOrARN string) string {
	return nameOrARN[strings.LastIndexByte(nameOrARN, '/')+1:]
}
