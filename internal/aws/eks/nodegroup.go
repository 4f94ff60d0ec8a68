package eks

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// PodRole returns the ARN of the role that EKS Pod Identity assigns to a service account; empty if there is none.
func (d *Client) PodRole(ctx context.Context, namespace, serviceAccount string) (string, error) {
	list, err := d.eks.ListPodIdentityAssociations(ctx, &awseks.ListPodIdentityAssociationsInput{
		ClusterName: aws.String(d.cluster), Namespace: aws.String(namespace), ServiceAccount: aws.String(serviceAccount)})
	if err != nil {
		return "", awserr.Classify("ListPodIdentityAssociations", err)
	}
	if len(list.Associations) == 0 {
		return "", nil
	}
	described, err := d.eks.DescribePodIdentityAssociation(ctx, &awseks.DescribePodIdentityAssociationInput{
		ClusterName: aws.String(d.cluster), AssociationId: list.Associations[0].AssociationId})
	if err != nil {
		return "", awserr.Classify("DescribePodIdentityAssociation", err)
	}
	if described.Association == nil {
		return "", nil
	}
	return aws.ToString(described.Association.RoleArn), nil
}

// NodeGroups returns the cluster's managed node groups, sorted by name.
func (d *Client) NodeGroups(ctx context.Context) ([]diagnosis.NodeGroup, error) {
	out := []diagnosis.NodeGroup{}
	pages := awseks.NewListNodegroupsPaginator(d.eks, &awseks.ListNodegroupsInput{ClusterName: aws.String(d.cluster)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("ListNodegroups", err)
		}
		for _, name := range page.Nodegroups {
			got, err := d.eks.DescribeNodegroup(ctx,
				&awseks.DescribeNodegroupInput{ClusterName: aws.String(d.cluster), NodegroupName: aws.String(name)})
			if err = awserr.Classify("DescribeNodegroup "+name, err); awserr.Is(err, awserr.Gone) {
				continue // deleted since the list was read
			}
			if err != nil {
				return nil, err
			}
			if g := got.Nodegroup; g != nil {
				out = append(out, diagnosis.NodeGroup{Name: name, Role: aws.ToString(g.NodeRole), Status: string(g.Status)})
			}
		}
	}
	slices.SortFunc(out, func(a, b diagnosis.NodeGroup) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// FargateProfiles returns the cluster's Fargate profiles, sorted by name.
func (d *Client) FargateProfiles(ctx context.Context) ([]diagnosis.FargateProfile, error) {
	out := []diagnosis.FargateProfile{}
	pages := awseks.NewListFargateProfilesPaginator(d.eks, &awseks.ListFargateProfilesInput{ClusterName: aws.String(d.cluster)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("ListFargateProfiles", err)
		}
		for _, name := range page.FargateProfileNames {
			got, err := d.eks.DescribeFargateProfile(ctx,
				&awseks.DescribeFargateProfileInput{ClusterName: aws.String(d.cluster), FargateProfileName: aws.String(name)})
			if err = awserr.Classify("DescribeFargateProfile "+name, err); awserr.Is(err, awserr.Gone) {
				continue // deleted since the list was read
			}
			if err != nil {
				return nil, err
			}
			if got.FargateProfile != nil {
				out = append(out, fargateOf(got.FargateProfile))
			}
		}
	}
	slices.SortFunc(out, func(a, b diagnosis.FargateProfile) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func fargateOf(p *ekstypes.FargateProfile) diagnosis.FargateProfile {
	out := diagnosis.FargateProfile{
		Name:    aws.ToString(p.FargateProfileName),
		Status:  string(p.Status),
		Role:    aws.ToString(p.PodExecutionRoleArn),
		Subnets: slices.Sorted(slices.Values(p.Subnets)), Created: aws.ToTime(p.CreatedAt)}
	for _, s := range p.Selectors {
		out.Selectors = append(out.Selectors, diagnosis.FargateSelector{Namespace: aws.ToString(s.Namespace), Labels: s.Labels})
	}
	if p.Health != nil {
		for _, i := range p.Health.Issues {
			out.Issues = append(out.Issues, string(i.Code)+": "+aws.ToString(i.Message))
		}
	}
	return out
}
