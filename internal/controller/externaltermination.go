package controller

import (
	"context"
	"log/slog"
	"strings"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// How an instance of an active NodeClaim was terminated, as metric labels.
const (
	endedByCall  = "call"    // somebody called TerminateInstances
	endedWithin  = "within"  // it was shut down from within
	endedUnknown = "unknown" // EC2 does not say any more
)

// howEnded classifies the state reason of a terminated instance. The result is empty if AWS terminated it: after a spot interruption, or because
// a volume could not be created. known is false if EC2 no longer returns the instance.
func howEnded(why string, known bool) string {
	switch {
	case !known:
		return endedUnknown
	case strings.Contains(why, "User initiated"), strings.Contains(why, "Client.UserInitiatedShutdown"):
		return endedByCall
	case strings.Contains(why, "Instance initiated"), strings.Contains(why, "Client.InstanceInitiatedShutdown"):
		return endedWithin
	}
	return ""
}

// outside is a claim whose machine neither we nor AWS ended.
type outside struct {
	claim *karpv1.NodeClaim
	how   string // empty: AWS terminated it
	why   string // EC2's state reason
}

// tell counts it, and says it once, with the way to find out who it was.
func (o outside) tell(teller teller, m *metrics.Metrics, log *slog.Logger) {
	if o.how == "" {
		return
	}
	m.Foreign.WithLabelValues(o.claim.Labels[karpv1.LabelNodePool], o.how).Inc()
	id, _ := ec2.ParseProviderID(o.claim.Status.ProviderID)
	message := "Instance " + id + " was ended from outside, while its NodeClaim wanted it: "
	hint := "aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue=" + id + " says who called TerminateInstances"
	switch o.how {
	case endedByCall:
		message += "somebody called TerminateInstances, and it was not this controller"
	case endedWithin:
		message += "it was shut down from within"
		hint = "its console output and the programs on it say who did"
	default:
		message += "EC2 does not know it any more"
	}
	teller.Tell(o.claim, kube.ReasonEndedOutside, message+"; "+hint)
	log.Warn("an instance was ended from outside", "NodeClaim", o.claim.Name, "instance", id, "how", o.how, "EC2 says", o.why, "hint", hint)
}

// askOutside asks EC2 why a machine ended that a notice or the end of its Node told of. What EC2 does not answer is no reason to keep
// pods waiting: nothing is told then.
func askOutside(ctx context.Context, machines machines, claim *karpv1.NodeClaim) outside {
	id, ok := ec2.ParseProviderID(claim.Status.ProviderID)
	if !ok {
		return outside{}
	}
	instance, err := machines.Instance(ctx, id)
	switch {
	case awserr.Is(err, awserr.Gone):
		return outside{claim, howEnded("", false), ""}
	case err != nil, !instance.State.Ended():
		return outside{}
	}
	return outside{claim, howEnded(instance.StateReason, true), instance.StateReason}
}
