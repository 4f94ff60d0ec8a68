package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// View is the data that was read about one claim: the input of the decision, and the objects from which the input was
// made.
type View struct {
	seen lifecycle.Observation

	Claim    *karpv1.NodeClaim   // the NodeClaim that is reconciled
	Class    *awsv1.EC2NodeClass // nil if the class does not exist or is not needed in this phase
	nodes    []*corev1.Node      // Nodes of the claim's instance
	refused  []refusedNode       // Nodes with the same provider ID that do not belong to the instance
	strays   []*corev1.Node      // Nodes of earlier registrations of the instance; while the claim is being deleted, nodes holds them instead
	instance *ec2.Instance       // nil: not found, or not read
	drain    drain.Step          // the next step of the drain; zero if the Node is not being deleted
}

func (v View) node() *corev1.Node {
	if len(v.nodes) == 0 {
		return nil
	}
	return v.nodes[0]
}

// settleTime is how long after a launch EC2 may not return the instance yet: half a minute, and 15 seconds for the
// difference of the clocks and because condition times are whole seconds.
const settleTime = 45 * time.Second

func (c *Reconciler) observe(ctx context.Context, claim *karpv1.NodeClaim, now time.Time) (View, error) {
	v := View{Claim: claim, seen: lifecycle.Observation{Claim: nodestate.LifecycleClaimOf(claim)}}
	var err error
	if v.nodes, err = c.Cluster.NodesOf(ctx, claim.Status.ProviderID); err != nil {
		return v, err
	}
	if v.nodes, v.refused, err = c.identify(ctx, claim, v.nodes, now); err != nil {
		return v, err
	}
	sortNodes(v.nodes)
	s := &v.seen.Claim
	if s.Deleted.IsZero() {
		v.nodes, v.strays = withoutStrays(v.nodes)
		v.nodes = preferRegistered(claim, v.nodes)
	}
	if len(v.nodes) > 0 {
		v.seen.Node = nodeSeen(claim, v.nodes)
		v.seen.Node.Strays = len(v.strays)
	}
	c.observeClosed(ctx, &v, now)
	v.noteRefused()
	s.Unlabelled = s.Launched && isUnlabelled(claim, v.nodes)
	// Use the time of this process, not the API server's deletion time. If the API server's clock were ahead, a tainted
	// node would count as empty too late.
	v.seen.Node.Deleted = c.leaving.Note(claim.UID, !v.seen.Node.Deleted.IsZero(), now)
	isLost := s.Registered && s.Deleted.IsZero() && len(v.nodes) == 0
	v.seen.Node.MissingSince = c.absences.Note(claim.UID, isLost, now)
	switch {
	case !s.Deleted.IsZero():
		if err := c.seeInstance(ctx, &v, now); err != nil {
			return v, err
		}
		return v, c.seePods(ctx, &v, now)
	case !s.Launched:
		return v, c.seeLaunch(ctx, &v, now)
	case len(v.nodes) == 1:
		return v, c.seeNode(ctx, &v, now)
	case !s.Registered && len(v.nodes) == 0:
		s.OutdatedAt, err = c.outdatedAt(ctx, claim, s.LaunchedAt, now)
		return v, err
	}
	return v, nil
}

// seeNode reads whether the claim's only Node needs repair or has expired.
func (c *Reconciler) seeNode(ctx context.Context, v *View, now time.Time) error {
	s := &v.seen.Claim
	var err error
	if v.seen.Node.Ailment, err = c.Repair.see(ctx, v.Claim, v.node(), now); err != nil {
		return err
	}
	if s.Initialized && s.Expired(now) {
		s.Replacement, err = c.Replacements.see(ctx, v.Claim, v.node(), now)
	}
	return err
}

// nodeSeen returns the part of the input that comes from the Nodes. Apart from Count, it describes the first Node.
func nodeSeen(claim *karpv1.NodeClaim, nodes []*corev1.Node) lifecycle.Node {
	node := nodes[0]
	out := lifecycle.Node{
		Count:     len(nodes),
		Finalizer: slices.Contains(node.Finalizers, karpv1.FinalizerTermination),
		Ready:     nodestate.IsReady(node),
		Lacks:     missingResource(claim, node),
	}
	if node.DeletionTimestamp != nil {
		out.Deleted = node.DeletionTimestamp.Time
	}
	// A registered Node has our metadata. Without it, the kubelet has recreated the Node.
	out.Recreated = claim.StatusConditions().IsTrue(karpv1.ConditionRegistered) && !out.Finalizer &&
		node.Labels[karpv1.LabelRegistered] != "true"
	for _, taint := range node.Spec.Taints {
		isStartup := slices.ContainsFunc(claim.Spec.StartupTaints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		switch {
		case taint.Key == conversion.TaintNominations:
			out.HasNominationTaint, out.IsCordonedForPods = true, conversion.IsCordonedForPods(node)
		case taint.Key == karpv1.TaintDisrupted:
			out.HasDisruptedTaint = true
			_, out.Cordoned = node.Labels[karpv1.LabelExcludeFromLoadBalancers]
		case isStartup && out.Startup == "":
			out.Startup = taint.ToString()
		case snapshot.IsEphemeral(&taint) && out.Ephemeral == "":
			out.Ephemeral = taint.ToString()
		}
	}
	return out
}

// withoutStrays separates the strays from the other Nodes of an instance. A stray is a Node that an earlier
// registration under another name has left behind. An instance has one kubelet: if one Node is ready, a Node that
// node-lifecycle-controller has marked as Unknown is a stray. A Node whose kubelet reports NotReady is kept, because
// it may just have joined.
func withoutStrays(nodes []*corev1.Node) (kept, strays []*corev1.Node) {
	if len(nodes) < 2 || !slices.ContainsFunc(nodes, nodestate.IsReady) {
		return nodes, nil
	}
	for _, node := range nodes {
		if nodestate.Readiness(node) == corev1.ConditionUnknown {
			strays = append(strays, node)
		} else {
			kept = append(kept, node)
		}
	}
	return kept, strays
}

// missingResource returns the first resource, by name, that the claim requests but the Node does not report.
func missingResource(claim *karpv1.NodeClaim, node *corev1.Node) string {
	missing := ""
	for name, asked := range claim.Spec.Resources.Requests {
		have := node.Status.Allocatable[name]
		if !asked.IsZero() && have.IsZero() && (missing == "" || string(name) < missing) {
			missing = string(name)
		}
	}
	return missing
}

func (c *Reconciler) seeLaunch(ctx context.Context, v *View, now time.Time) error {
	s := &v.seen.Claim
	class := &awsv1.EC2NodeClass{}
	err := c.Cache.Get(ctx, client.ObjectKey{Name: v.Claim.Spec.NodeClassRef.Name}, class)
	switch {
	case apierrors.IsNotFound(err):
		s.NodeClass = lifecycle.NodeClassMissing
	case err != nil:
		return fmt.Errorf("read ec2nodeclass %s: %w", v.Claim.Spec.NodeClassRef.Name, err)
	default:
		v.Class, s.NodeClass = class, classSeen(class)
	}
	a := c.attempts.of(v.Claim.UID)
	s.Shortage, s.NotBefore, s.FirstResponse = a.shortage, a.notBefore, a.timeoutFrom
	if now.Sub(s.Created) < lifecycle.LaunchTimeout || a.requestEnded.IsZero() && c.Ledger.IsOwn(v.Claim.UID) {
		return nil // the launch request is repeated and finds an earlier instance, or no launch was requested yet
	}
	return seeLaunched(ctx, c.Launcher, v)
}

// classSeen returns the readiness of the class. A result for an older generation of the class counts as unknown.
func classSeen(class *awsv1.EC2NodeClass) lifecycle.NodeClass {
	conditions := class.StatusConditions()
	ready, _ := conditions.Find(karpv1.ConditionReady)
	switch {
	case class.DeletionTimestamp != nil:
		return lifecycle.NodeClassMissing
	case conditions.IsReady():
		return lifecycle.NodeClassReady
	case ready.Status == "False" && ready.ObservedGeneration == class.Generation:
		return lifecycle.NodeClassNotReady
	}
	return lifecycle.NodeClassUnknown
}

// seeInstance reads from EC2 the instance of a claim that is being deleted.
func (c *Reconciler) seeInstance(ctx context.Context, v *View, now time.Time) error {
	out := &v.seen.Instance
	id, ok := ec2.ParseProviderID(v.Claim.Status.ProviderID)
	if !ok {
		a := c.attempts.of(v.Claim.UID)
		if a.clean {
			out.State = lifecycle.InstanceAbsent // no launch has created an instance
			return nil
		}
		if err := seeLaunched(ctx, c.Launcher, v); err != nil || out.State != lifecycle.InstanceAbsent {
			return err
		}
		// EC2 returned no instance. There is certainly none once settleTime has passed since both the deletion and the
		// last launch request. A launch may have started before the deletion, and ended long after the deletion.
		if now.Sub(v.Claim.DeletionTimestamp.Time) < settleTime || now.Sub(a.requestEnded) < settleTime {
			out.State = lifecycle.InstanceUnknown
		}
		return nil
	}
	instance, err := c.Instances.Instance(ctx, id)
	switch {
	case awserr.Is(err, awserr.Gone):
		out.State = lifecycle.InstanceAbsent
		launched, _ := v.Claim.StatusConditions().Find(karpv1.ConditionLaunched)
		if now.Sub(launched.LastTransitionTime.Time) < settleTime {
			out.State = lifecycle.InstanceUnknown
		}
		return nil
	case err != nil:
		return err
	}
	v.instance = &instance
	*out = instanceSeen(instance)
	return nil
}

// seeLaunched searches for an instance by the claim's name. It is used for a claim without a provider ID.
func seeLaunched(ctx context.Context, launcher InstanceLauncher, v *View) error {
	found, err := launcher.LaunchedFor(ctx, v.Claim.Name)
	if err != nil {
		return err
	}
	v.seen.Instance.State = lifecycle.InstanceAbsent
	if len(found) > 0 {
		v.instance = &found[0]
		v.seen.Instance = instanceSeen(found[0])
	}
	return nil
}

// instanceSeen returns the part of the input that comes from the instance. A stopped instance is still InstanceRunning,
// because it must be terminated.
func instanceSeen(instance ec2.Instance) lifecycle.Instance {
	out := lifecycle.Instance{
		State:    lifecycle.InstanceRunning,
		Foreign:  instance.Owner == ec2.Foreign || instance.Owner == ec2.SameName,
		Untagged: instance.Owner == ec2.Untagged,
	}
	switch instance.State {
	case ec2.Terminated:
		out.State = lifecycle.InstanceAbsent
	case ec2.ShuttingDown:
		out.State = lifecycle.InstanceEnding
	case ec2.Pending, ec2.Running, ec2.Stopping, ec2.Stopped:
	}
	return out
}

// seePods reads the pods and volumes that are still on a Node that is being deleted.
func (c *Reconciler) seePods(ctx context.Context, v *View, now time.Time) error {
	node := v.node()
	if node == nil || node.DeletionTimestamp == nil {
		return nil
	}
	pods, err := c.Cluster.PodsOn(ctx, node.Name)
	if err != nil {
		return err
	}
	drainPods := make([]drain.Pod, 0, len(pods))
	for _, pod := range pods {
		drainPods = append(drainPods, nodestate.DrainPodOf(pod))
	}
	v.drain = drain.Next(drainPods, v.seen.Claim.Deadline, now)
	if len(v.drain.Evict) > 0 {
		turn, err := c.turns.see(ctx, c.Cache, v.Claim, now)
		if err != nil {
			return err
		}
		v.drain = v.drain.InTurn(turn, now)
	}
	v.seen.Node.Pods = v.drain.Waiting
	if v.drain.Waiting > 0 {
		return nil
	}
	v.seen.Node.Volumes, err = c.countVolumes(ctx, node.Name, pods, drainPods, now)
	return err
}

// countVolumes counts the volumes attached to the Node, except those of pods that stay on it. drainPods[i] is pods[i].
func (c *Reconciler) countVolumes(ctx context.Context, node string, pods []*corev1.Pod, drainPods []drain.Pod, now time.Time) (int, error) {
	attachments, err := c.Cluster.AttachmentsOn(ctx, node)
	if err != nil || len(attachments) == 0 {
		return 0, err
	}
	staying := map[string]bool{} // names of PersistentVolumes of pods that stay
	for i, pod := range pods {
		if drainPods[i].Finished || drainPods[i].MustLeave(now) {
			continue // finished, or to be evicted
		}
		if err := addVolumes(ctx, c.Cache, pod, staying); err != nil {
			return 0, err
		}
	}
	n := 0
	for _, a := range attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && !staying[*name] {
			n++
		}
	}
	return n, nil
}

// addVolumes adds the names of the pod's PersistentVolumes to into.
func addVolumes(ctx context.Context, cache client.Reader, pod *corev1.Pod, into map[string]bool) error {
	for _, volume := range pod.Spec.Volumes {
		var name string
		switch {
		case volume.PersistentVolumeClaim != nil:
			name = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			name = pod.Name + "-" + volume.Name
		default:
			continue
		}
		var pvc corev1.PersistentVolumeClaim
		err := cache.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, &pvc)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read persistentvolumeclaim %s/%s: %w", pod.Namespace, name, err)
		}
		into[pvc.Spec.VolumeName] = true
	}
	return nil
}

// sortNodes sorts Nodes with our finalizer first, then by name.
func sortNodes(nodes []*corev1.Node) {
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		x := slices.Contains(a.Finalizers, karpv1.FinalizerTermination)
		y := slices.Contains(b.Finalizers, karpv1.FinalizerTermination)
		if x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// errNoInstance is returned by an action that needs an instance if no instance was found.
var errNoInstance = errors.New("no instance was found")
