package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"sigs.k8s.io/yaml"
)

// errNotMapped means that no mapping names the caller. The text is the error text of aws-iam-authenticator.
var errNotMapped = errors.New("ARN is not mapped")

// mapping is the user name and the groups of a caller in the cluster. Placeholders {{…}} are not filled in yet.
type mapping struct {
	username string
	groups   []string
	source   string // "access entry" or "aws-auth"
}

// awsAuthRow is a row of mapRoles or mapUsers in kube-system/aws-auth.
type awsAuthRow struct {
	RoleARN  string   `json:"rolearn"`
	UserARN  string   `json:"userarn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// findMapping returns the caller's mapping from the sources that the cluster's authentication mode uses. An access
// entry takes precedence over aws-auth.
func (w *Webhook) findMapping(ctx context.Context, c Caller) (mapping, error) {
	cluster, err := w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &w.Cluster})
	if err != nil {
		return mapping{}, fmt.Errorf("describe cluster %s: %w", w.Cluster, err)
	}
	mode := ekstypes.AuthenticationModeConfigMap
	if access := cluster.Cluster.AccessConfig; access != nil && access.AuthenticationMode != "" {
		mode = access.AuthenticationMode
	}
	if mode != ekstypes.AuthenticationModeConfigMap {
		m, err := w.accessEntry(ctx, c)
		if err == nil || !errors.Is(err, errNotMapped) {
			return m, err
		}
	}
	if mode == ekstypes.AuthenticationModeApi {
		return mapping{}, errNotMapped
	}
	return w.awsAuth(c)
}

func (w *Webhook) accessEntry(ctx context.Context, c Caller) (mapping, error) {
	pages := eks.NewListAccessEntriesPaginator(w.eks, &eks.ListAccessEntriesInput{ClusterName: &w.Cluster})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return mapping{}, fmt.Errorf("list access entries: %w", err)
		}
		i := slices.IndexFunc(page.AccessEntries, func(arn string) bool { return samePrincipal(arn, c.RoleARN) })
		if i < 0 {
			continue
		}
		return w.readEntry(ctx, c, page.AccessEntries[i])
	}
	return mapping{}, errNotMapped
}

// readEntry returns the mapping of the access entry of a principal. If the entry is stale, or the role cannot be
// read, the error wraps errNotMapped.
func (w *Webhook) readEntry(ctx context.Context, c Caller, principal string) (mapping, error) {
	out, err := w.eks.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &w.Cluster, PrincipalArn: &principal})
	if err != nil {
		return mapping{}, fmt.Errorf("describe access entry of %s: %w", principal, err)
	}
	entry := out.AccessEntry
	if stale, err := w.isStale(ctx, c, aws.ToTime(entry.CreatedAt)); err != nil || stale {
		return mapping{}, errors.Join(errNotMapped, err)
	}
	switch kind := aws.ToString(entry.Type); kind {
	case "EC2_LINUX", "EC2_WINDOWS":
		groups := []string{"system:bootstrappers", "system:nodes"}
		if kind == "EC2_WINDOWS" {
			groups = append(groups, "eks:kube-proxy-windows")
		}
		return mapping{"system:node:{{EC2PrivateDNSName}}", groups, "access entry"}, nil
	default:
		return mapping{aws.ToString(entry.Username), entry.KubernetesGroups, "access entry"}, nil
	}
}

// isStale reports whether the role was created after its access entry. EKS stores the unique id of the role, so an
// entry does not match a role that was deleted and created again with the same name.
func (w *Webhook) isStale(ctx context.Context, c Caller, entryCreated time.Time) (bool, error) {
	_, name, ok := strings.Cut(c.RoleARN, ":role/")
	if !ok {
		return false, nil // not a role
	}
	out, err := w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return false, fmt.Errorf("look up role %s: %w", name, err)
	}
	// IAM and EKS return timestamps with a precision of seconds at best.
	return aws.ToTime(out.Role.CreateDate).Truncate(time.Second).After(entryCreated), nil
}

// samePrincipal reports whether an access entry is for a role. entry is the ARN of the access entry's principal, which
// can contain the role's path. role is the role's ARN without the path.
func samePrincipal(entry, role string) bool {
	entryPrefix, entryName, ok := strings.Cut(entry, ":role/")
	if !ok {
		return entry == role
	}
	return entryPrefix+":role/"+entryName[strings.LastIndexByte(entryName, '/')+1:] == role
}

// awsAuth returns the caller's mapping in the ConfigMap aws-auth. It ignores the case of ARNs. A role's ARN with a path
// matches no caller, because STS omits the path.
func (w *Webhook) awsAuth(c Caller) (mapping, error) {
	data, ok := w.AWSAuth()
	if !ok {
		return mapping{}, errNotMapped
	}
	var roles, users []awsAuthRow
	if err := yaml.Unmarshal([]byte(data["mapRoles"]), &roles); err != nil {
		return mapping{}, fmt.Errorf("read mapRoles of aws-auth: %w", err)
	}
	if err := yaml.Unmarshal([]byte(data["mapUsers"]), &users); err != nil {
		return mapping{}, fmt.Errorf("read mapUsers of aws-auth: %w", err)
	}
	for _, m := range roles {
		if strings.EqualFold(m.RoleARN, c.RoleARN) {
			return mapping{m.Username, m.Groups, "aws-auth"}, nil
		}
	}
	for _, m := range users {
		if strings.EqualFold(m.UserARN, c.RoleARN) {
			return mapping{m.Username, m.Groups, "aws-auth"}, nil
		}
	}
	if slices.Contains(accountsOf(data["mapAccounts"]), c.Account) {
		return mapping{c.RoleARN, nil, "aws-auth"}, nil
	}
	return mapping{}, errNotMapped
}

// accountsOf returns the account IDs in mapAccounts, or none if the text is not a list.
func accountsOf(mapAccounts string) []string {
	var accounts []string
	_ = yaml.Unmarshal([]byte(mapAccounts), &accounts)
	return accounts
}

// fillPlaceholders replaces the placeholders in a template with the caller's values. The template is the user name or a
// group of a mapping.
func (w *Webhook) fillPlaceholders(ctx context.Context, template string, c Caller) (string, error) {
	if strings.Contains(template, "{{EC2PrivateDNSName}}") {
		name, err := w.privateDNSName(ctx, c.Session)
		if err != nil {
			return "", err
		}
		template = strings.ReplaceAll(template, "{{EC2PrivateDNSName}}", name)
	}
	template = strings.ReplaceAll(template, "{{AccountID}}", c.Account)
	template = strings.ReplaceAll(template, "{{SessionNameRaw}}", c.Session)
	template = strings.ReplaceAll(template, "{{SessionName}}", strings.ReplaceAll(c.Session, "@", "-"))
	return strings.ReplaceAll(template, "{{AccessKeyID}}", c.AccessKeyID), nil
}

// privateDNSName returns the private DNS name of an instance, and caches the name. A node's session name is the
// instance ID.
func (w *Webhook) privateDNSName(ctx context.Context, instance string) (string, error) {
	if !strings.HasPrefix(instance, "i-") {
		return "", fmt.Errorf("failed querying private DNS from EC2 API for node %s: the session name is not an instance ID", instance)
	}
	if name, ok := w.names.Load(instance); ok {
		return name.(string), nil
	}
	out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return "", fmt.Errorf("failed querying private DNS from EC2 API for node %s: %w", instance, err)
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			name := aws.ToString(i.PrivateDnsName)
			w.names.Store(instance, name)
			return name, nil
		}
	}
	return "", fmt.Errorf("failed to find node %s", instance)
}
