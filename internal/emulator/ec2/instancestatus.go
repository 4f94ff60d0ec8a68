package ec2

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

type instanceStatusIn struct {
	InstanceIds []string     `aws:"InstanceId"`
	Filters     []api.Filter `aws:"Filter"`
	All         bool         `aws:"IncludeAllInstances"`
	api.Paged
}

type instanceStatusOut struct {
	Statuses  []instanceStatus `aws:"InstanceStatusSet"`
	NextToken string
}

type instanceStatus struct {
	InstanceId       string
	AvailabilityZone string
	Events           []statusEvent `aws:"EventsSet"`
	State            instanceState `aws:"InstanceState"`
	InstanceStatus   statusSummary
	SystemStatus     statusSummary
}

type statusEvent struct {
	InstanceEventId string
	Code            string
	Description     string
	NotBefore       time.Time
}

type statusSummary struct {
	Status  string
	Details []statusDetail
}

type statusDetail struct {
	Name          string
	Status        string
	ImpairedSince time.Time
}

// describeInstanceStatus lists the status checks and scheduled events of running instances. With IncludeAllInstances it
// lists those of all instances.
func describeInstanceStatus(c *api.Call, in *instanceStatusIn) (instanceStatusOut, error) {
	found, err := visibleInstances(c, in.InstanceIds)
	if err != nil {
		return instanceStatusOut{}, err
	}
	found, err = api.FilterItems(found, in.Filters, statusFilters)
	if err != nil {
		return instanceStatusOut{}, err
	}
	out := instanceStatusOut{Statuses: []instanceStatus{}}
	for _, i := range found {
		if in.All || i.State == world.Running {
			out.Statuses = append(out.Statuses, statusOf(i))
		}
	}
	p, err := in.Page(100, 1000)
	if err != nil {
		return instanceStatusOut{}, err
	}
	out.Statuses, out.NextToken, err = api.PageOf(out.Statuses, func(s instanceStatus) string { return s.InstanceId }, p)
	return out, err
}

func statusFilters(i world.Instance) api.Filterable {
	f := instanceFilters(i)
	f.Values["instance-status.status"] = []string{summaryOf(i, i.InstanceFailsSince).Status}
	f.Values["system-status.status"] = []string{summaryOf(i, i.SystemFailsSince).Status}
	f.Values["event.code"] = nil
	for _, e := range i.Scheduled {
		f.Values["event.code"] = append(f.Values["event.code"], e.Code)
	}
	return f
}

func statusOf(i world.Instance) instanceStatus {
	out := instanceStatus{
		InstanceId: i.ID, AvailabilityZone: i.Zone, State: stateOf(i.State), Events: []statusEvent{},
		InstanceStatus: summaryOf(i, i.InstanceFailsSince), SystemStatus: summaryOf(i, i.SystemFailsSince),
	}
	for _, e := range i.Scheduled {
		out.Events = append(out.Events, statusEvent{InstanceEventId: e.ID, Code: e.Code, Description: e.Description, NotBefore: e.Begins})
	}
	return out
}

// summaryOf returns the result of a status check of an instance. failsSince is when the check began to fail; zero: the
// check passes.
func summaryOf(i world.Instance, failsSince time.Time) statusSummary {
	switch {
	case i.State != world.Running:
		return statusSummary{Status: "not-applicable"}
	case !failsSince.IsZero():
		return statusSummary{Status: "impaired", Details: []statusDetail{{Name: "reachability", Status: "failed", ImpairedSince: failsSince}}}
	}
	return statusSummary{Status: "ok", Details: []statusDetail{{Name: "reachability", Status: "passed"}}}
}
