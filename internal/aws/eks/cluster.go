package eks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Facts are EKS's description of our cluster.
type Facts struct {
	Name, ARN      string            // of the EKS cluster
	Status         string            // "ACTIVE", …
	Version        string            // "1.33"
	Endpoint       string            // "https://…"
	CA             string            // base64 of PEM
	ServiceCIDR    string            // IPv4 if the cluster has one, else IPv6
	IPv6           bool              // pods and services have IPv6 addresses
	VPC            string            // ID of the cluster's VPC
	SecurityGroup  string            // ID of the security group that EKS created for control plane and nodes
	SecurityGroups []string          // additional security groups of the control plane, sorted
	Subnets        []string          // subnets of the control plane, sorted
	PublicAccess   bool              // the endpoint can be reached from the internet
	PrivateAccess  bool              // the endpoint can be reached from within the VPC
	PublicCIDRs    []string          // source CIDRs of the public endpoint, sorted; empty: 0.0.0.0/0
	Issuer         string            // URL of the OIDC issuer
	AuthMode       string            // CONFIG_MAP, API or API_AND_CONFIG_MAP
	Created        time.Time         // creation time
	Tags           map[string]string // of the cluster
}

// Facts reads our cluster's description from EKS. The error is awserr.Gone if there is no cluster with that name.
func (d *Client) Facts(ctx context.Context) (Facts, error) {
	op := "DescribeCluster " + d.cluster
	out, err := d.eks.DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: aws.String(d.cluster)})
	if err != nil {
		return Facts{}, awserr.Classify(op, err)
	}
	c := out.Cluster
	if c == nil || aws.ToString(c.Endpoint) == "" {
		return Facts{}, &awserr.Error{Op: op, Kind: awserr.Transient, Reason: "EmptyAnswer",
			Message: "EKS returned no cluster endpoint; EKS may still be creating the cluster"}
	}
	f := Facts{Name: aws.ToString(c.Name), ARN: aws.ToString(c.Arn), Status: string(c.Status), Version: aws.ToString(c.Version),
		Endpoint: aws.ToString(c.Endpoint), Created: aws.ToTime(c.CreatedAt), Tags: c.Tags}
	if c.CertificateAuthority != nil {
		f.CA = aws.ToString(c.CertificateAuthority.Data)
	}
	if n := c.KubernetesNetworkConfig; n != nil {
		f.ServiceCIDR = cmp.Or(aws.ToString(n.ServiceIpv4Cidr), aws.ToString(n.ServiceIpv6Cidr))
		f.IPv6 = n.IpFamily == "ipv6"
	}
	if v := c.ResourcesVpcConfig; v != nil {
		f.VPC, f.SecurityGroup = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId)
		f.SecurityGroups, f.Subnets = slices.Sorted(slices.Values(v.SecurityGroupIds)), slices.Sorted(slices.Values(v.SubnetIds))
		f.PublicAccess, f.PrivateAccess = v.EndpointPublicAccess, v.EndpointPrivateAccess
		f.PublicCIDRs = slices.Sorted(slices.Values(v.PublicAccessCidrs))
	}
	if c.Identity != nil && c.Identity.Oidc != nil {
		f.Issuer = aws.ToString(c.Identity.Oidc.Issuer)
	}
	f.AuthMode = "CONFIG_MAP" // the mode of clusters that were created before EKS had access entries
	if c.AccessConfig != nil && c.AccessConfig.AuthenticationMode != "" {
		f.AuthMode = string(c.AccessConfig.AuthenticationMode)
	}
	return f, nil
}

// Entry is an access entry: the Kubernetes user and groups of an IAM principal.
type Entry struct {
	Principal string    // ARN
	Type      string    // "STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", …
	Username  string    // Kubernetes user name
	Groups    []string  // sorted
	Created   time.Time // creation time
}

// Entries returns the cluster's access entries, sorted by principal. The error is awserr.Misconfigured for a cluster
// with AuthMode CONFIG_MAP, which cannot have access entries.
func (d *Client) Entries(ctx context.Context) ([]Entry, error) {
	var out []Entry
	pages := awseks.NewListAccessEntriesPaginator(d.eks, &awseks.ListAccessEntriesInput{ClusterName: aws.String(d.cluster)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("ListAccessEntries", err)
		}
		for _, arn := range page.AccessEntries {
			e, err := d.Entry(ctx, arn)
			if awserr.Is(err, awserr.Gone) {
				continue // removed since the list was read
			}
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Principal, b.Principal) })
	return out, nil
}

// Entry returns the access entry of a principal, given by its ARN. The error is awserr.Gone if there is none.
func (d *Client) Entry(ctx context.Context, principal string) (Entry, error) {
	out, err := d.eks.DescribeAccessEntry(ctx, &awseks.DescribeAccessEntryInput{
		ClusterName: aws.String(d.cluster), PrincipalArn: aws.String(principal)})
	if err != nil {
		return Entry{}, awserr.Classify("DescribeAccessEntry "+principal, err)
	}
	if out.AccessEntry == nil {
		return Entry{Principal: principal}, nil
	}
	a := out.AccessEntry
	return Entry{Principal: aws.ToString(a.PrincipalArn), Type: aws.ToString(a.Type), Username: aws.ToString(a.Username),
		Groups: slices.Sorted(slices.Values(a.KubernetesGroups)), Created: aws.ToTime(a.CreatedAt)}, nil
}
