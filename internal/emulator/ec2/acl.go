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

// finalRule is the number of the rule that denies all packets to which no other rule applies. Every ACL has it in each
// direction.
const finalRule = 32767

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
		entry := aclEntry{RuleNumber: e.Number, Protocol: e.Protocol, RuleAction: "allow", Egress: e.Out, CidrBlock: e.CIDR}
		if e.Deny {
			entry.RuleAction = "deny"
		}
		if e.Protocol != "-1" { // "-1", all protocols, has no ports
			entry.PortRange = &portRange{e.From, e.To}
		}
		out.Entries = append(out.Entries, entry)
	}
	for _, egress := range []bool{false, true} {
		out.Entries = append(out.Entries,
			aclEntry{RuleNumber: finalRule, Protocol: "-1", RuleAction: "deny", Egress: egress, CidrBlock: "0.0.0.0/0"})
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
	case in.RuleNumber < 1 || in.RuleNumber >= finalRule:
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
