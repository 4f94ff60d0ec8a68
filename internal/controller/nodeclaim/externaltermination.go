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
	EndedByCall  = "call"    // another client called TerminateInstances
	EndedWithin  = "within"  // a process on the instance shut it down
	EndedUnknown = "unknown" // EC2 no longer returns the instance
)

// HowEnded classifies why, the state reason of a terminated instance. The result is empty if AWS terminated the
// instance: after a spot interruption, or because a volume could not be created. known is false if EC2 no longer
// returns the instance.
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

// ExternalTermination describes the end of an instance that Joiner did not terminate.
type ExternalTermination struct {
	Claim *karpv1.NodeClaim // the NodeClaim of the instance
	How   string            // EndedByCall, EndedWithin or EndedUnknown; empty: AWS terminated it, or its end is not confirmed
	Why   string            // EC2's state reason
}

// Report counts the termination, logs it, and emits one event with a hint on how to find its cause. Report does nothing
// if How is empty.
func (o ExternalTermination) Report(events loop.EventRecorder, m *metrics.Metrics, log *slog.Logger) {
	if o.How == "" {
		return
	}
	m.ForeignTerminations.WithLabelValues(o.Claim.Labels[karpv1.LabelNodePool], o.How).Inc()
	id, _ := ec2.ParseProviderID(o.Claim.Status.ProviderID)
	message := "Instance " + id + " was terminated from outside Joiner, while its NodeClaim was in use: "
	hint := "to find who called TerminateInstances, run: " +
		"aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue=" + id
	switch o.How {
	case EndedByCall:
		message += "another client called TerminateInstances"
	case EndedWithin:
		message += "a process on the instance shut it down"
		hint = "to find the process, read the console output of the instance"
	default:
		message += "EC2 no longer returns it"
	}
	events.Emit(o.Claim, kubeclient.ReasonEndedOutside, message+"; "+hint)
	log.Warn("an instance was terminated from outside Joiner", "NodeClaim", o.Claim.Name, "instance", id,
		"how", o.How, "stateReason", o.Why, "hint", hint)
}

// FindExternalTermination reads from EC2 why an instance ended. The result is empty if the end is not confirmed. If
// EC2 does not answer, it is empty too: pods must not wait for EC2.
func FindExternalTermination(ctx context.Context, instances loop.InstanceClient, claim *karpv1.NodeClaim) ExternalTermination {
	id, ok := ec2.ParseProviderID(claim.Status.ProviderID)
	if !ok {
		return ExternalTermination{}
	}
	instance, err := instances.Instance(ctx, id)
	switch {
	case awserr.Is(err, awserr.Gone):
		return ExternalTermination{claim, HowEnded("", false), ""}
	case err != nil, !instance.State.Ended():
		return ExternalTermination{}
	}
	return ExternalTermination{claim, HowEnded(instance.StateReason, true), instance.StateReason}
}
