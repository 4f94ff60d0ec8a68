package ec2

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

type describeACLsIn struct {
	NetworkAclIds []string `aws:"NetworkAclId"`
	listIn
}

type describeACLsOut struct {
	NetworkAcls []networkACL `aws:"NetworkAclSet"`
	NextToken   string
}

type networkACL struct {
	NetworkAclId string
	VpcId        string
	OwnerId      string
	IsDefault    bool             `aws:"Default"`
	Associations []aclAssociation `aws:"AssociationSet"`
	Entries      []aclEntry       `aws:"EntrySet"`
}

type aclAssociation struct {
	NetworkAclAssociationId string
	NetworkAclId            string
	SubnetId                string
}

type aclEntry struct {
	RuleNumber int64
	Protocol   string
	RuleAction string
	Egress     bool
	CidrBlock  string
	PortRange  *portRange
}

type portRange struct{ From, To int64 }

// lastRule is the number of the last entry of an ACL. Every ACL has it in each direction. It denies all packets.
const lastRule = 32767

// describeNetworkAcls lists network ACLs.
func describeNetworkAcls(c *api.Call, in *describeACLsIn) (describeACLsOut, error) {
	found, next, err := list(in.listIn, listing[*network.ACL, networkACL]{
		items: c.Region.Network.NetworkACLs(),
		ids:   in.NetworkAclIds,
		id:    func(n *network.ACL) string { return n.ID },
		code:  "InvalidNetworkAclID.NotFound",
		filterable: func(n *network.ACL) api.Filterable {
			if n == nil {
				n = &network.ACL{}
			}
			return api.Filterable{Values: map[string][]string{
				"network-acl-id": {n.ID}, "vpc-id": {n.VPCID}, "association.subnet-id": n.SubnetIDs, "default": api.BoolValues(n.Default),
			}}
		},
		write: func(n *network.ACL) networkACL { return aclOf(c, n) },
	})
	return describeACLsOut{NetworkAcls: found, NextToken: next}, err
}

func aclOf(c *api.Call, n *network.ACL) networkACL {
	out := networkACL{
		NetworkAclId: n.ID,
		VpcId:        n.VPCID,
		OwnerId:      c.Caller.Account,
		IsDefault:    n.Default,
		Associations: []aclAssociation{},
		Entries:      []aclEntry{},
	}
	for _, id := range n.SubnetIDs {
		out.Associations = append(out.Associations,
			aclAssociation{NetworkAclAssociationId: "aclassoc-" + id[len("subnet-"):], NetworkAclId: n.ID, SubnetId: id})
	}
	for _, e := range n.Entries {
		one := aclEntry{RuleNumber: e.Number, Protocol: e.Protocol, RuleAction: "allow", Egress: e.Out, CidrBlock: e.CIDR}
		if e.Deny {
			one.RuleAction = "deny"
		}
		if e.Protocol != "-1" {
			one.PortRange = &portRange{e.From, e.To}
		}
		out.Entries = append(out.Entries, one)
	}
	for _, egress := range []bool{false, true} {
		out.Entries = append(out.Entries,
			aclEntry{RuleNumber: lastRule, Protocol: "-1", RuleAction: "deny", Egress: egress, CidrBlock: "0.0.0.0/0"})
	}
	return out
}

type createACLEntryIn struct {
	NetworkAclId string
	RuleNumber   int64
	Protocol     string
	RuleAction   string
	Egress       bool
	CidrBlock    string
	PortRange    *portRange
}

// createNetworkAclEntry adds a rule to a network ACL.
func createNetworkAclEntry(c *api.Call, in *createACLEntryIn) (api.Done, error) {
	all := c.Region.Network.NetworkACLs()
	i := slices.IndexFunc(all, func(n *network.ACL) bool { return n.ID == in.NetworkAclId })
	switch {
	case i < 0:
		return api.Done{}, &failure.Error{Code: "InvalidNetworkAclID.NotFound", Message: "The networkAcl ID '" +
			in.NetworkAclId + "' does not exist"}
	case slices.ContainsFunc(all[i].Entries, func(e network.ACLEntry) bool { return e.Number == in.RuleNumber && e.Out == in.Egress }):
		return api.Done{},
			&failure.Error{Code: "NetworkAclEntryAlreadyExists", Message: "The network acl entry identified by its number already exists."}
	case in.RuleNumber < 1 || in.RuleNumber >= lastRule:
		return api.Done{},
			&failure.Error{Code: "InvalidParameterValue", Message: "Value for parameter ruleNumber is invalid. It must be from 1 to 32766."}
	}
	e := network.ACLEntry{Number: in.RuleNumber, Out: in.Egress, Deny: in.RuleAction == "deny", Protocol: in.Protocol, CIDR: in.CidrBlock}
	if in.PortRange != nil {
		e.From, e.To = in.PortRange.From, in.PortRange.To
	}
	all[i].Entries = append(all[i].Entries, e)
	return api.Done{Return: true}, nil
}
