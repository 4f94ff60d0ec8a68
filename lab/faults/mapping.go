package faults

import (
	"context"
	"errors"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// mappingFaults are faults of role mappings, in each authentication mode.
func mappingFaults() []Fault {
	const nodesGroup = "  - system:nodes\n"
	mapFault := func(f Fault) Fault {
		f.Check, f.AuthMode = "AUTH-3", ekscluster.AuthConfigMap
		return f
	}
	return append(entryFaults(),
		mapFault(Fault{Name: "row-missing", What: "CONFIG_MAP: aws-auth has no row for the node role", Cause: "aws-auth has no row for it",
			Break: func(_ context.Context, s *Scene) error { return s.addRole() }}),
		mapFault(Fault{
			Name:  "row-without-nodes-group",
			What:  "CONFIG_MAP: the row of the node role lacks the group system:nodes",
			Cause: "its groups lack system:nodes",
			Break: mapByRow(nodesGroup, "")}),
		mapFault(Fault{
			Name:  "row-with-masters",
			What:  "CONFIG_MAP: the row of the node role has the group system:masters instead of system:nodes",
			Cause: "its groups lack system:nodes",
			Break: mapByRow("system:bootstrappers", "system:masters", nodesGroup, "")}),
		mapFault(Fault{
			Name:  "row-with-misspelt-username",
			What:  "CONFIG_MAP: the row's username has an unknown placeholder",
			Cause: "which the authenticator does not fill in",
			Break: mapByRow("EC2PrivateDNSName", "EC2PrivateDnsName")}),
		mapFault(Fault{
			Name:  "row-with-fixed-username",
			What:  "CONFIG_MAP: the row's username is the same for all nodes",
			Cause: `its username is "node"`,
			Break: mapByRow("system:node:{{EC2PrivateDNSName}}", "node")}),
		mapFault(Fault{Name: "row-with-path", What: "CONFIG_MAP: the row's rolearn has the role's path", Cause: "has the role's path",
			Break: mapByRow(":role/", ":role/teams/a/")}),
		mapFault(Fault{Name: "row-of-other-account", What: "CONFIG_MAP: the row's rolearn is of another account",
			Cause: "of another account", Break: mapByRow(emulator.DefaultAccount, "999999999999")}),
		Fault{
			Name:     "row-names-nodes-by-session",
			What:     "CONFIG_MAP: the row's username is the session name, and hosts in the subnets are named by address",
			Check:    "AUTH-9",
			Cause:    "names nodes by session",
			AuthMode: ekscluster.AuthConfigMap, ExpectSuspicious: true, Break: mapByRow("EC2PrivateDNSName", "SessionName")},
		mapFault(Fault{
			Name:        "map-malformed",
			What:        "CONFIG_MAP: aws-auth's mapRoles is not valid YAML",
			Cause:       "aws-auth cannot be read",
			IsExclusive: true,
			Break: func(ctx context.Context, s *Scene) error {
				return s.changeAuthMap(ctx, func(text string) string { return strings.Replace(text, "- ", "-\t- [", 1) })
			}}),
		mapFault(Fault{
			Name:        "map-is-no-list",
			What:        "CONFIG_MAP: aws-auth's mapRoles is a table instead of a list",
			Cause:       "aws-auth cannot be read",
			IsExclusive: true,
			Break: func(ctx context.Context, s *Scene) error {
				return s.changeAuthMap(ctx, func(string) string { return "rolearn: " + s.Lab.Roles.ARN(lab.NodeRole) + "\n" })
			}}),
		mapFault(Fault{
			Name:  "entry-in-map-mode",
			What:  "CONFIG_MAP: the node role has an access entry, and the cluster ignores access entries",
			Cause: "the cluster reads nothing else",
			Break: func(_ context.Context, s *Scene) error {
				return errors.Join(s.addRole(), s.addEntry(s.arn(), ekscluster.EntryEC2Linux))
			}}),
		Fault{
			Name:     "controller-role-mapped",
			What:     "CONFIG_MAP: aws-auth maps the controller's role instead of the node role",
			Check:    "AUTH-5",
			Cause:    "is the controller's own",
			AuthMode: ekscluster.AuthConfigMap, IsExclusive: true, Break: mapControllerRole},
		Fault{
			Name:        "controller-role-mapped-both",
			What:        "API_AND_CONFIG_MAP: aws-auth maps the controller's role instead of the node role",
			Check:       "AUTH-5",
			Cause:       "is the controller's own",
			IsExclusive: true, Break: mapControllerRole},
	)
}

func entryFaults() []Fault {
	return []Fault{
		{
			Name:  "entry-of-wrong-type",
			What:  "the access entry of the node role is of type STANDARD",
			Check: "AUTH-2",
			Cause: "is of type STANDARD",
			Smoke: true,
			Break: mapByEntry(ekscluster.EntryStandard),
		},
		{
			Name:  "entry-for-fargate",
			What:  "the access entry of the node role is of type FARGATE_LINUX",
			Check: "AUTH-2",
			Cause: "is of type FARGATE_LINUX",
			Break: mapByEntry(ekscluster.EntryFargateLinux),
		},
		{
			Name:     "entry-of-wrong-type-api",
			What:     "API: the access entry of the node role is of type STANDARD",
			Check:    "AUTH-2",
			Cause:    "is of type STANDARD",
			AuthMode: ekscluster.AuthAPI,
			Break:    mapByEntry(ekscluster.EntryStandard),
		},
		{
			Name:  "role-not-mapped",
			What:  "API_AND_CONFIG_MAP: nothing maps the node role",
			Check: "AUTH-2",
			Cause: "the cluster has no access entry for it, and aws-auth has no row for it",
			Break: func(_ context.Context, s *Scene) error { return s.addRole() }},
		{
			Name:     "role-not-mapped-api",
			What:     "API: nothing maps the node role",
			Check:    "AUTH-2",
			Cause:    "the cluster has no access entry for it",
			AuthMode: ekscluster.AuthAPI,
			Break:    func(_ context.Context, s *Scene) error { return s.addRole() }},
		{
			Name:     "row-in-api-mode",
			What:     "API: the node role is mapped in aws-auth, and the cluster ignores aws-auth",
			Check:    "AUTH-1",
			Cause:    "is mapped in aws-auth only",
			AuthMode: ekscluster.AuthAPI,
			Break:    mapByRow()},
		{
			Name:  "role-made-again",
			What:  "the node role was deleted and created again, and its access entry belongs to the old role",
			Check: "AUTH-4",
			Cause: "belongs to a deleted role of the same name",
			Break: mapOldRole},
		{
			Name:     "role-made-again-api",
			What:     "API: the node role was deleted and created again, and its access entry belongs to the old role",
			Check:    "AUTH-4",
			Cause:    "belongs to a deleted role of the same name",
			AuthMode: ekscluster.AuthAPI,
			Break:    mapOldRole},
		{
			Name:        "controller-role-entry-api",
			What:        "API: the access entry for nodes is for the controller's role",
			Check:       "AUTH-5",
			Cause:       "is the controller's own",
			AuthMode:    ekscluster.AuthAPI,
			IsExclusive: true,
			Break: func(_ context.Context, s *Scene) error {
				controller := s.Lab.Roles.ARN(lab.ControllerRole)
				s.AddUndo(func(context.Context) error { return s.removeEntry(controller) })
				return errors.Join(s.addRole(), s.addEntry(controller, ekscluster.EntryEC2Linux))
			}},
	}
}

// mapByEntry returns a Break function that gives the scene its own role, with an access entry of the type kind.
func mapByEntry(kind string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error { return errors.Join(s.addRole(), s.addEntry(s.arn(), kind)) }
}

// mapByRow returns a Break function that gives the scene its own role, and adds a row for the role to aws-auth. replace
// has pairs of strings: in the row, the first string of a pair is replaced by the second. Without pairs, the row is
// correct.
func mapByRow(replace ...string) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error { return errors.Join(s.addRole(), s.addRow(ctx, replace...)) }
}

// mapControllerRole gives the scene its own role, but adds a row for the controller's role to aws-auth.
func mapControllerRole(ctx context.Context, s *Scene) error {
	return errors.Join(s.addRole(), s.addRow(ctx, s.arn(), s.Lab.Roles.ARN(lab.ControllerRole)))
}

// mapOldRole gives the scene its own role, with an access entry that is older than the role.
func mapOldRole(_ context.Context, s *Scene) error {
	return errors.Join(s.addRole(), s.addEntry(s.arn(), ekscluster.EntryEC2Linux), s.ageEntry(s.arn()), s.recreateRole())
}
