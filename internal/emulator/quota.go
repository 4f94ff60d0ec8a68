package emulator

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

func quotaActions() map[string]api.Action {
	return map[string]api.Action{
		"GetServiceQuota":             api.Op(getServiceQuota),
		"RequestServiceQuotaIncrease": api.Op(requestServiceQuotaIncrease),
	}
}

// quotaCodes has EC2's quotas of running vCPUs, by code.
// Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-quotas.html.
var quotaCodes = map[string]world.Quota{
	"L-1216C47A": {Kind: "standard"}, "L-34B43A08": {Kind: "standard", Spot: true},
	"L-DB2E81BA": {Kind: "g"}, "L-3819A6DF": {Kind: "g", Spot: true},
	"L-417A185B": {Kind: "p"}, "L-7212CCBC": {Kind: "p", Spot: true},
	"L-7295265B": {Kind: "x"}, "L-E3A00192": {Kind: "x", Spot: true},
	"L-1945791B": {Kind: "inf"}, "L-B5D1601B": {Kind: "inf", Spot: true},
}

type quotaIn struct {
	ServiceCode  string
	QuotaCode    string
	DesiredValue float64
}

type quotaOut struct{ Quota serviceQuota }

type serviceQuota struct {
	ServiceCode string
	QuotaCode   string
	QuotaName   string
	Value       float64
	Adjustable  bool
}

// unlimited is the value that the API returns for a quota without limit, in vCPUs.
const unlimited = 1e6

func getServiceQuota(c *api.Call, in *quotaIn) (quotaOut, error) {
	q, err := in.quota()
	if err != nil {
		return quotaOut{}, err
	}
	value := float64(unlimited)
	if limit, isLimited := c.Region.Capacity.Quotas[q]; isLimited {
		value = float64(limit)
	}
	return quotaOut{serviceQuota{ServiceCode: in.ServiceCode, QuotaCode: in.QuotaCode, Value: value, Adjustable: true}}, nil
}

type quotaRequestOut struct{ RequestedQuota requestedQuota }

type requestedQuota struct {
	Id           string
	ServiceCode  string
	QuotaCode    string
	DesiredValue float64
	Status       string
}

// requestServiceQuotaIncrease increases a quota at once. AWS takes minutes or days for an increase.
func requestServiceQuotaIncrease(c *api.Call, in *quotaIn) (quotaRequestOut, error) {
	q, err := in.quota()
	if err != nil {
		return quotaRequestOut{}, err
	}
	if limit, isLimited := c.Region.Capacity.Quotas[q]; !isLimited || in.DesiredValue <= float64(limit) {
		return quotaRequestOut{},
			&failure.Error{Code: "IllegalArgumentException", Message: "You must provide a quota value greater than the current quota value."}
	}
	c.Region.Capacity.Quotas[q] = int64(in.DesiredValue)
	return quotaRequestOut{requestedQuota{
		Id:           c.ID,
		ServiceCode:  in.ServiceCode,
		QuotaCode:    in.QuotaCode,
		DesiredValue: in.DesiredValue,
		Status:       "APPROVED",
	}}, nil
}

func (in *quotaIn) quota() (world.Quota, error) {
	q, known := quotaCodes[in.QuotaCode]
	if in.ServiceCode != "ec2" || !known {
		return world.Quota{},
			&failure.Error{Code: "NoSuchResourceException", Message: "The request failed because the specified service quota does not exist.", Status: 404}
	}
	return q, nil
}
