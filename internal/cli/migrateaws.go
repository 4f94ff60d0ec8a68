package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/cli/inputfile"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/migration"
	"github.com/joiner-sh/joiner/internal/permissions"
)

// migrationAWS reads AWS for joiner migrate check: instances, and the permissions of Karpenter's role.
type migrationAWS struct {
	*migrateFlags
	settings config.Settings         // of Karpenter's controller
	seen     *migration.Installation // read adds its results
	clients  collector.Clients       // each is nil if AWS is not read
}

// read adds the instances and permissions to seen. If isOffline is true, read calls no AWS API and reads only the
// policy files.
func (m *migrationAWS) read(ctx context.Context, isOffline bool) error {
	policies, err := m.readPolicies()
	if err != nil {
		return err
	}
	if isOffline {
		m.clients.NoAWS = "not read with -f"
	} else if err := m.open(ctx); err != nil {
		return err
	}
	m.addInstances(ctx)
	m.findRole(ctx)
	return m.addPermissions(ctx, policies)
}

func (m *migrationAWS) open(ctx context.Context) error {
	m.clients.Cluster = m.seen.Cluster
	d := doctorFlags{region: m.region}
	if err := d.openAWS(ctx, &m.clients, m.seen.UID); err != nil {
		return err
	}
	m.region = cmp.Or(m.clients.Region, m.region)
	return nil
}

// recordUnrequested records that data were not requested, and why.
func (m *migrationAWS) recordUnrequested(what, why string) {
	m.seen.Unseen = append(m.seen.Unseen, migration.Unseen{What: what, Why: message.OneLine(why)})
}

// recordFailed records that AWS did not return requested data, and the error.
func (m *migrationAWS) recordFailed(what string, err error) {
	m.seen.Unseen = append(m.seen.Unseen, migration.Unseen{What: what, Why: message.OneLine(err.Error()), Asked: true})
}

// addInstances adds the instances with the cluster's tags, and the instances of NodeClaims without these tags.
func (m *migrationAWS) addInstances(ctx context.Context) {
	if m.clients.EC2 == nil {
		m.recordUnrequested("instances", m.clients.NoAWS)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	all, err := m.clients.EC2.Instances(ctx)
	if err != nil {
		m.recordFailed("instances", err)
		return
	}
	m.seen.Instances = []migration.Instance{}
	for _, i := range all {
		m.seen.Instances = append(m.seen.Instances, migration.Instance{ID: i.ID, Owner: ownerOf(i.Owner), Ended: i.State.Ended()})
	}
	m.addUntaggedInstances(ctx)
}

func ownerOf(o ec2.Ownership) migration.Owner {
	switch o {
	case ec2.Ours:
		return migration.Ours
	case ec2.Legacy:
		return migration.Legacy
	case ec2.SameName:
		return migration.SameName
	case ec2.Untagged:
		return migration.Untagged
	case ec2.Foreign:
	}
	return migration.OtherOwner
}

// addUntaggedInstances adds the instances of NodeClaims that lack the tags by which Joiner finds instances.
// Instances that no longer exist are left out. Of failed requests only the first is recorded, because they usually have
// the same cause.
func (m *migrationAWS) addUntaggedInstances(ctx context.Context) {
	var firstErr error
	for _, c := range m.seen.Claims {
		id, ok := ec2.ParseProviderID(c.ProviderID)
		if !ok || slices.ContainsFunc(m.seen.Instances, func(i migration.Instance) bool { return i.ID == id }) {
			continue
		}
		i, err := m.clients.EC2.Instance(ctx, id)
		switch {
		case err == nil:
			m.seen.Instances = append(m.seen.Instances, migration.Instance{ID: id, Owner: ownerOf(i.Owner), Ended: i.State.Ended()})
		case !awserr.Is(err, awserr.Gone):
			firstErr = cmp.Or(firstErr, err)
		}
	}
	if firstErr != nil {
		m.recordFailed("instances without the cluster's tags", firstErr)
	}
}

// readPolicies reads the policies of --policy. A policy with an element that package iampolicy does not evaluate is an
// error.
func (m *migrationAWS) readPolicies() ([]iampolicy.Policy, error) {
	var out []iampolicy.Policy
	for _, file := range m.policies {
		text, err := inputfile.Read(file)
		if err != nil {
			return nil, fmt.Errorf("read policy: %w", message.WithoutSyscall(err))
		}
		p, err := iampolicy.Read(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// findRole sets m.role to the role of Karpenter's service account, unless --role has set it. The role comes from the
// annotation of the service account, or else from its EKS Pod Identity association.
func (m *migrationAWS) findRole(ctx context.Context) {
	for _, c := range m.seen.Controllers {
		if c.Product != migration.Karpenter || m.role != "" {
			continue
		}
		m.role = c.Role
		if m.role != "" || m.clients.EKS == nil || c.Account == "" { // Account is the service account
			continue
		}
		role, err := m.clients.EKS.PodRole(ctx, c.Namespace, c.Account)
		if err != nil {
			m.recordFailed("the role of Karpenter", err)
			return
		}
		m.role = role
	}
}

// scope returns the cluster, account and roles that the policies must cover. missing is an instruction
// to give the flag for the first unknown one of them; empty if all are known.
func (m *migrationAWS) scope() (s permissions.Scope, missing string) {
	s = permissions.Scope{Account: m.account, Region: m.region, Cluster: m.seen.Cluster, UID: m.seen.UID, Queue: m.settings.InterruptionQueue}
	if parts := strings.SplitN(m.role, ":", 6); len(parts) == 6 { // arn:aws:iam::ACCOUNT:role/NAME
		s.Account = cmp.Or(s.Account, parts[4])
	}
	for _, c := range m.seen.Classes {
		if c.Role != "" && !slices.Contains(s.NodeRoles, c.Role) {
			s.NodeRoles = append(s.NodeRoles, c.Role)
		}
	}
	switch {
	case s.Cluster == "":
		return s, "give --cluster-name NAME"
	case s.Account == "":
		return s, "give --account ID, or --role ARN"
	case s.Region == "":
		return s, "give --region REGION"
	}
	return s, ""
}

// addPermissions adds the permissions that Joiner needs, and whether the role has them: by the policies of --policy, or
// else by IAM's policy simulator.
func (m *migrationAWS) addPermissions(ctx context.Context, policies []iampolicy.Policy) error {
	s, missing := m.scope()
	switch {
	case len(policies) == 0 && m.clients.EKS == nil:
		m.recordUnrequested("permissions", "give the policies of Karpenter's role: --policy FILE")
		return nil
	case len(policies) == 0 && m.role == "":
		m.recordUnrequested("permissions", "the role of Karpenter is not known: give --role ARN, or its policies with --policy FILE")
		return nil
	case missing != "":
		m.recordUnrequested("permissions", missing)
		return nil
	}
	if problem := scopeProblem(s); problem != nil {
		return problem
	}
	needed, err := permissions.Policies(s)
	if err != nil {
		return err
	}
	examples, err := permissions.Examples(s, needed)
	if err != nil {
		return err
	}
	for _, example := range examples {
		denied := deniedActions(policies, example)
		if len(policies) == 0 { // ask the simulator
			if denied, err = m.clients.IAM.DeniedActions(ctx, m.role, example.Actions, example.Resources, example.Keys); err != nil {
				m.recordFailed("permissions", err)
				return nil
			}
		}
		for _, action := range example.Actions {
			m.seen.Permissions = append(m.seen.Permissions, migration.Permission{Statement: example.Sid, Policy: example.Policy, Action: action,
				Allowed: !slices.Contains(denied, action), Optional: m.isOptional(example)})
		}
	}
	return nil
}

// deniedActions returns the actions of the example requests that the policies do not allow. An action is repeated for
// each resource that it is denied for.
func deniedActions(policies []iampolicy.Policy, example permissions.ExampleRequests) []string {
	var out []string
	for _, action := range example.Actions {
		for _, resource := range example.Resources {
			if !iampolicy.Judge(policies, iampolicy.Request{Action: action, Resource: resource, Keys: example.Keys}).Allowed {
				out = append(out, action)
			}
		}
	}
	return out
}

// isOptional reports whether a permission is needed only with a setting that is off.
func (m *migrationAWS) isOptional(example permissions.ExampleRequests) bool {
	switch {
	case example.Policy == "interruption":
		return m.settings.InterruptionQueue == ""
	case strings.HasPrefix(example.Actions[0], "arc-zonal-shift:"):
		return !m.settings.ZonalShift
	}
	return false
}
