package fargate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/lab/authn"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// CapacityAnnotation is the annotation of a pod with the capacity of its Fargate node.
const CapacityAnnotation = "CapacityProvisioned"

const nodeReadyTimeout = 30 * time.Second

// run runs one pod on Fargate until podCtx ends. podCtx ends when the pod is deleted. After that, run deletes the pod's
// node, unless ctx has ended too.
func (f *Fargate) run(ctx, podCtx context.Context, pod *corev1.Pod) {
	profile, s, refusal := f.profileAndSize(pod)
	if refusal != "" {
		f.emit(podCtx, pod, corev1.EventTypeWarning, "FailedScheduling", refusal)
		return
	}
	var place network.FargateAddress
	var err error
	f.Emulator.Do(func(w *world.World, _ time.Time) {
		place, err = w.Region(f.Account, f.Region).Network.TakeFargatePlace(profile.SubnetIDs)
	})
	if err != nil {
		f.emit(podCtx, pod, corev1.EventTypeWarning, "FailedScheduling", err.Error())
		return
	}
	defer f.Emulator.Do(func(w *world.World, _ time.Time) { w.Region(f.Account, f.Region).Network.ReleaseFargatePlace(place) })
	node := "fargate-" + place.Name
	if err := f.checkRole(podCtx, profile.Role, node); err != nil {
		f.log("pod=%s/%s profile=%s error=%q", pod.Namespace, pod.Name, profile.Name, err)
		f.emit(podCtx, pod, corev1.EventTypeWarning, "FailedScheduling", fmt.Sprintf(blockedMessage, profile.Name))
		return
	}
	f.runNode(ctx, podCtx, pod, f.settings(podCtx, place, profile.Role, s))
}

// profileAndSize returns the profile that selected the pod for Fargate and the size of the pod's node, or the reason
// why Fargate refuses the pod.
func (f *Fargate) profileAndSize(pod *corev1.Pod) (profile ekscluster.FargateProfile, s size, refusal string) {
	name := pod.Labels[ProfileLabel]
	if name == "" {
		return ekscluster.FargateProfile{}, size{}, "Misconfigured Fargate Profile: pod does not have profile label " + ProfileLabel
	}
	all := f.profiles()
	i := slices.IndexFunc(all, func(p ekscluster.FargateProfile) bool { return p.Name == name && p.Status == ekscluster.ProfileActive })
	if i < 0 {
		return ekscluster.FargateProfile{}, size{}, "Misconfigured Fargate Profile: fargate profile " + name + " is not active"
	}
	if why := unsupportedReason(pod); why != "" {
		return all[i], size{}, why
	}
	s, ok := sizeOf(pod)
	if !ok {
		return all[i], s, tooLargeMessage
	}
	return all[i], s, ""
}

func (f *Fargate) settings(podCtx context.Context, place network.FargateAddress, role string, s size) kubelet.Settings {
	node := "fargate-" + place.Name
	return kubelet.Settings{
		NodeName: node, ProviderID: "aws:///" + place.Zone.Name + "/fargate/" + node, IP: place.IP, OwnNetwork: true,
		Labels: map[string]string{
			ComputeType: ComputeTypeFargate, corev1.LabelTopologyZone: place.Zone.Name, corev1.LabelTopologyRegion: f.Region,
		},
		Taints:   []corev1.Taint{{Key: ComputeType, Value: ComputeTypeFargate, Effect: corev1.TaintEffectNoSchedule}},
		Capacity: s.capacity(), Allocatable: s.capacity(),
		Arch: "amd64", OSImage: "Amazon Linux 2", KernelVersion: "5.10.238-234.956.amzn2.x86_64", Version: f.Version,
		Server: f.Server, CA: f.CA,
		Token:         f.tokens(podCtx, role, node),
		BeforeRemoval: func() { f.cordon(podCtx, node) },
		Say:           func(line string) { f.log("node=%s kubelet=%q", node, line) },
	}
}

// tokens returns a function that returns a node's token. The function caches the token while it is valid.
func (f *Fargate) tokens(ctx context.Context, role, node string) func() (string, error) {
	var mu sync.Mutex
	var token string
	var created time.Time
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if token != "" && time.Since(created) < authn.TokenLife-time.Minute {
			return token, nil
		}
		next, err := f.token(ctx, role, node)
		if err != nil {
			return "", err
		}
		token, created = next, time.Now()
		return token, nil
	}
}

// runNode starts a pod's node and binds the pod to the node. It removes the node when the pod is deleted.
func (f *Fargate) runNode(ctx, podCtx context.Context, pod *corev1.Pod, s kubelet.Settings) {
	if !pause(podCtx, f.Launch) {
		return
	}
	k, err := f.Fleet.Start(podCtx, s)
	if err != nil {
		f.log("pod=%s/%s error=%q", pod.Namespace, pod.Name, err)
		return
	}
	defer f.deleteNode(ctx, s.NodeName)
	defer k.Stop()
	if err := f.bind(podCtx, pod, s); err != nil {
		if podCtx.Err() == nil {
			f.log("pod=%s/%s error=%q", pod.Namespace, pod.Name, err)
			// This is the text of EKS; Fargate here does not retry.
			f.emit(podCtx, pod, corev1.EventTypeWarning, "FailedScheduling",
				"Pod provisioning timed out (will retry) for pod: "+pod.Namespace+"/"+pod.Name)
		}
		return
	}
	<-podCtx.Done()
}

func (f *Fargate) bind(podCtx context.Context, pod *corev1.Pod, s kubelet.Settings) error {
	err := wait.PollUntilContextTimeout(podCtx, 20*time.Millisecond, nodeReadyTimeout, true, func(ctx context.Context) (bool, error) {
		node, err := f.Kube.CoreV1().Nodes().Get(ctx, s.NodeName, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err != nil {
		return fmt.Errorf("wait for node %s: %w", s.NodeName, err)
	}
	provisioned := size{s.Capacity.Cpu().MilliValue(), s.Capacity.Memory().Value() >> 20}.String()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{CapacityAnnotation: provisioned}}})
	if err != nil {
		return fmt.Errorf("annotate pod %s: %w", pod.Name, err)
	}
	pods := f.Kube.CoreV1().Pods(pod.Namespace)
	if _, err := pods.Patch(podCtx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate pod %s: %w", pod.Name, err)
	}
	err = pods.Bind(podCtx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: s.NodeName},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind pod %s: %w", pod.Name, err)
	}
	// Fargate emits this event for every pod when logging is not configured. The event is harmless.
	f.emit(podCtx, pod, corev1.EventTypeWarning, "LoggingDisabled",
		`Disabled logging because aws-logging configmap was not found. configmap "aws-logging" not found`)
	f.emit(podCtx, pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned "+pod.Namespace+"/"+pod.Name+" to "+s.NodeName)
	return nil
}

// cordon cordons a node whose pod is ending. Otherwise kube-scheduler would bind another pod to the node before the
// node is deleted.
func (f *Fargate) cordon(ctx context.Context, node string) {
	_, err := f.Kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if err != nil {
		f.log("node=%s error=%q", node, err)
	}
}

func (f *Fargate) deleteNode(ctx context.Context, node string) {
	if ctx.Err() != nil {
		return // the lab is closing, so the Node needs no deletion
	}
	if err := f.Kube.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		f.log("node=%s error=%q", node, err)
	}
}

func (f *Fargate) emit(ctx context.Context, pod *corev1.Pod, kind, reason, message string) {
	now := metav1.Now()
	_, err := f.Kube.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         reason, Message: message, Type: kind, Source: corev1.EventSource{Component: Scheduler},
		ReportingController: Scheduler, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		f.log("pod=%s/%s event=%s error=%q", pod.Namespace, pod.Name, reason, err)
	}
}

// pause waits for d. It returns false if the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
