package offerings

import (
	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// efaOf returns the number of EFA interfaces for an instance of the type: the maximum of the type if the claim's pods
// request any, else 0. It is also 0 if the class lists network interfaces, which are then used instead.
func efaOf(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, t catalog.Type) int64 {
	if _, isRequested := claim.Spec.Resources.Requests[awsv1.ResourceEFA]; !isRequested || len(class.Spec.NetworkInterfaces) > 0 {
		return 0
	}
	return t.Capacity.Of(catalog.ResourceEFA)
}

// efaInterfaces returns count EFA interfaces, one on each network card. The primary interface is device 0 of card 0.
func efaInterfaces(count int64) []ec2.Interface {
	var out []ec2.Interface
	for card := range int32(min(count, 1<<15)) { // 1<<15: more than any type has; it fits in 32 bits
		out = append(out, ec2.Interface{Card: card, Device: min(card, 1), Type: "efa"})
	}
	return out
}
