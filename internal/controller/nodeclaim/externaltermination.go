package nodeclaim

import (
	"context"
	"log/slog"
	"strings"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// How an instance of an active NodeClaim was terminated, as metric labels.
const (
	EndedByCall  = "call"    // a call of TerminateInstances by another client
	EndedWithin  = "within"  // it was shut down from within
	EndedUnknown = "unknown" // EC2 does not say any more
)

// HowEnded classifies the state reason of a terminated instance. The result is empty if AWS terminated it: after a spot
// interruption, or because a volume could not be created. known is false if EC2 no longer returns the instance.
func HowEnded(why string, known bool) string {
	switch {
	case !known:
		return EndedUnknown
	case strings.Contains(why, "User initiated"), strings.Contains(why, "Client.UserInitiatedShutdown"):
		return EndedByCall
	case strings.Contains(why, "Instance initiated"), strings.Contains(why, "Client.InstanceInitiatedShutdown"):
		return EndedWithin
	}
	return ""
}

// ExternalTermination is a claim whose instance neither Joiner nor AWS terminated.
type ExternalTermination struct {
	Claim *karpv1.NodeClaim // the NodeClaim of the instance
	How   string            // empty: AWS terminated it
	Why   string            // EC2's state reason
}

// Report counts the termination, logs it, and emits one event with the command that finds the caller.
func (o ExternalTermination) Report(teller loop.EventRecorder, m *metrics.Metrics, log *slog.Logger) {
	if o.How == "" {
		return
	}
	m.Foreign.WithLabelValues(o.Claim.Labels[karpv1.LabelNodePool], o.How).Inc()
	id, _ := ec2.ParseProviderID(o.Claim.Status.ProviderID)
	message := "Instance " + id + " was ended from outside, while its NodeClaim wanted it: "
	hint := "aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue=" + id +
		" says who called TerminateInstances"
	switch o.How {
	case EndedByCall:
		message += "TerminateInstances was called from outside Joiner"
	case EndedWithin:
		message += "it was shut down from within"
		hint = "its console output and the programs on it say who did"
	default:
		message += "EC2 does not know it any more"
	}
	teller.Tell(o.Claim, kubeclient.ReasonEndedOutside, message+"; "+hint)
	log.Warn("an instance was ended from outside", "NodeClaim", o.Claim.Name, "instance", id, "how", o.How, "EC2 says", o.Why, "hint", hint)
}

// FindExternalTermination asks EC2 why an instance ended. It returns no termination if EC2 does not answer, so that
// pods do not wait for it.
func FindExternalTermination(ctx context.Context, machines loop.InstanceClient, claim *karpv1.NodeClaim) ExternalTermination {
	id, ok := ec2.ParseProviderID(claim.Status.ProviderID)
	if !ok {
		return ExternalTermination{}
	}
	instance, err := machines.Instance(ctx, id)
	switch {
	case awserr.Is(err, awserr.Gone):
		return ExternalTermination{claim, HowEnded("", false), ""}
	case err != nil, !instance.State.Ended():
		return ExternalTermination{}
	}
	return ExternalTermination{claim, HowEnded(instance.StateReason, true), instance.StateReason}
}
