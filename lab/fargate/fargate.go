// Package fargate emulates Fargate, where EKS runs pods without nodes in the account.
//
// In: pods as they are created, the cluster's Fargate profiles, and the mapping of their pod execution roles.
// Out: pods assigned to Fargate's scheduler, a Node for each of them, or an event with the reason for the refusal, in
// the wording of EKS.
// Never: a pod that was created before its profile was active, a pod that Fargate cannot run, or a retry of a refused
// pod.
package fargate

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// Names of Fargate's pods and nodes.
const (
	Scheduler          = "fargate-scheduler"                 // spec.schedulerName of the pods
	ProfileLabel       = "eks.amazonaws.com/fargate-profile" // label of the pods: the name of the profile that selected the pod
	ComputeType        = "eks.amazonaws.com/compute-type"    // label and taint of the nodes
	ComputeTypeFargate = "fargate"                           // value of that label and taint

	// Service is the principal that the trust policy of a pod execution role must name.
	Service = "eks-fargate-pods.amazonaws.com"
	// ExecutionPolicy is the managed policy that a pod execution role must have.
	ExecutionPolicy = "AmazonEKSFargatePodExecutionRolePolicy"
)

// Options configure a Fargate. All fields except Launch and Log are required.
type Options struct {
	Account, Region, Cluster string // account ID, AWS region and name of the EKS cluster

	Emulator *emulator.Server     // the emulated AWS
	Kube     kubernetes.Interface // client with an administrator's permissions
	Fleet    *kubelet.Fleet       // runs the kubelets
	Server   string               // URL of the API server
	CA       []byte               // certificate of the API server's authority, PEM
	Version  string               // version of the kubelets

	// Review authenticates a token, with now as the current time, as the cluster's authenticator does.
	Review func(ctx context.Context, token string, now time.Time) authenticationv1.TokenReviewStatus
	// Launch is how long the start of a node takes. Zero starts nodes immediately.
	Launch time.Duration
	// Log receives a line for each error that is not reported by an event. nil discards the lines.
	Log io.Writer
}

// Fargate runs pods. ServeHTTP is its admission webhook.
type Fargate struct {
	Options
	isDown atomic.Bool // the webhook fails
	logMu  sync.Mutex  // held while a line is written to Log

	running sync.WaitGroup
	mu      sync.Mutex
	pods    map[types.UID]context.CancelFunc // by pod UID: ends the run of the pod
}

// New returns a Fargate without pods.
func New(o Options) *Fargate {
	if o.Log == nil {
		o.Log = io.Discard
	}
	return &Fargate{Options: o, pods: map[types.UID]context.CancelFunc{}}
}

// SetDown makes the webhook fail, or work again. While the webhook fails, the API server creates pods as if the webhook
// did not exist.
func (f *Fargate) SetDown(isDown bool) { f.isDown.Store(isDown) }

// Start starts to watch the pods that are assigned to Fargate, and returns once they are listed. The watch ends with
// ctx.
func (f *Fargate) Start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(f.Kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.schedulerName", Scheduler).String()
	}))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				f.startPod(ctx, pod)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				f.endPod(pod.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch Fargate's pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return fmt.Errorf("watch Fargate's pods: %w", context.Cause(ctx))
	}
	return nil
}

// Wait waits until all pods have ended. Call it after the context of Start has ended.
func (f *Fargate) Wait() { f.running.Wait() }

// startPod starts to run a pod, unless the pod is already bound or is being deleted.
func (f *Fargate) startPod(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods[pod.UID] != nil || ctx.Err() != nil {
		return
	}
	podCtx, cancel := context.WithCancel(ctx)
	f.pods[pod.UID] = cancel
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		f.run(ctx, podCtx, pod)
	}()
}

func (f *Fargate) endPod(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.pods[uid]; cancel != nil {
		cancel()
		delete(f.pods, uid)
	}
}

// profiles returns the cluster's current Fargate profiles, sorted by name.
func (f *Fargate) profiles() []ekscluster.FargateProfile {
	var out []ekscluster.FargateProfile
	f.Emulator.Do(func(w *world.World, _ time.Time) {
		c, err := w.Region(f.Account, f.Region).EKS.Cluster(f.Cluster)
		if err != nil {
			return
		}
		for _, p := range c.FargateProfiles() {
			out = append(out, *p)
		}
	})
	return out
}

// log writes a line to Log, with the time. format has the line's other fields.
func (f *Fargate) log(format string, args ...any) {
	f.logMu.Lock()
	defer f.logMu.Unlock()
	fmt.Fprintf(f.Log, "time=%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
}
