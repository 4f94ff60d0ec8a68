package ec2

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// StatusProblemKind is the source of a problem that EC2 reports for an instance.
type StatusProblemKind string

// The kinds.
const (
	InstanceCheckFailed StatusProblemKind = "instance" // the instance's status check fails
	SystemCheckFailed   StatusProblemKind = "system"   // the host's status check fails
	EventScheduled      StatusProblemKind = "event"    // EC2 will reboot, stop or retire the instance, or maintain its host
)

// StatusProblem is a current or scheduled problem of an instance that EC2 reports.
type StatusProblem struct {
	ID   string            // ID of the instance, which may have any owner
	Kind StatusProblemKind // source of the problem
	// Since is when the status check began to fail, or when the event begins; zero if EC2 does not report it.
	Since  time.Time
	Detail string // name of the failed check, or code and description of the event
}

func eventCodes() []string {
	return []string{
		string(awstypes.EventCodeInstanceReboot), string(awstypes.EventCodeInstanceRetirement), string(awstypes.EventCodeInstanceStop),
		string(awstypes.EventCodeSystemMaintenance), string(awstypes.EventCodeSystemReboot),
	}
}

// StatusProblems returns the problems that EC2 reports for the running instances of the account and region, sorted by
// ID and kind. It leaves out completed and canceled events, and checks of attached volumes.
func (d *Client) StatusProblems(ctx context.Context) ([]StatusProblem, error) {
	found := map[StatusProblem]bool{}
	for _, f := range []awstypes.Filter{
		filter("instance-status.status", string(awstypes.SummaryStatusImpaired)),
		filter("system-status.status", string(awstypes.SummaryStatusImpaired)),
		filter("event.code", eventCodes()...),
	} {
		pages := awsec2.NewDescribeInstanceStatusPaginator(d.reads, &awsec2.DescribeInstanceStatusInput{
			Filters: []awstypes.Filter{f}, MaxResults: aws.Int32(1000)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, awserr.Classify("DescribeInstanceStatus", err)
			}
			for _, s := range page.InstanceStatuses {
				for _, p := range problemsOf(s) {
					found[p] = true
				}
			}
		}
	}
	out := make([]StatusProblem, 0, len(found))
	for p := range found {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b StatusProblem) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind), a.Since.Compare(b.Since), cmp.Compare(a.Detail, b.Detail))
	})
	return out, nil
}

func problemsOf(s awstypes.InstanceStatus) []StatusProblem {
	var out []StatusProblem
	id := aws.ToString(s.InstanceId)
	for kind, summary := range map[StatusProblemKind]*awstypes.InstanceStatusSummary{
		InstanceCheckFailed: s.InstanceStatus,
		SystemCheckFailed:   s.SystemStatus,
	} {
		if summary == nil || summary.Status != awstypes.SummaryStatusImpaired {
			continue
		}
		for _, detail := range summary.Details {
			if detail.Status == awstypes.StatusTypeFailed {
				out = append(out, StatusProblem{ID: id, Kind: kind, Since: aws.ToTime(detail.ImpairedSince).UTC(), Detail: string(detail.Name)})
			}
		}
	}
	for _, e := range s.Events {
		description := aws.ToString(e.Description)
		if strings.HasPrefix(description, "[Completed]") || strings.HasPrefix(description, "[Canceled]") ||
			!slices.Contains(eventCodes(), string(e.Code)) {
			continue
		}
		out = append(out, StatusProblem{
			ID: id, Kind: EventScheduled, Since: aws.ToTime(e.NotBefore).UTC(), Detail: string(e.Code) + ": " + description,
		})
	}
	return out
}
