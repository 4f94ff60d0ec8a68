// Package fargate stands in for Fargate, where EKS runs pods without nodes of the account.
//
// In: pods as they are made, the cluster's Fargate profiles, and who lets their pod execution roles in.
// Out: pods given to Fargate's scheduler, a Node of its own for each of them, or an event that says why not, in EKS's words.
// Never: a pod that was made before its profile was active, one that Fargate cannot run, or a second look at one that was refused.
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
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// Names by which Fargate's pods and nodes are known.
const (
	Scheduler    = "fargate-scheduler"                 // spec.schedulerName of its pods
	ProfileLabel = "eks.amazonaws.com/fargate-profile" // of its pods: the profile that they were given to it by
	ComputeType  = "eks.amazonaws.com/compute-type"    // label and taint of its nodes
	Value        = "fargate"                           // of ComputeType

	// Service is whom the trust policy of a pod execution role must name.
	Service = "eks-fargate-pods.amazonaws.com"
	// ExecutionPolicy is the managed policy that a pod execution role must have.
	ExecutionPolicy = "AmazonEKSFargatePodExecutionRolePolicy"
)

// Options say whose pods run on Fargate. All but Launch and Log are needed.
type Options struct {
	Account, Region, Cluster string

	Emulator *emulator.Server
	Kube     kubernetes.Interface
	Fleet    *kubelet.Fleet // its kubelets
	Server   string         // the API server's URL
	CA       []byte         // and its authority's certificate, PEM
	Version  string         // of the kubelets

	// Review is what the cluster's authenticator says of a token at a time.
	Review func(ctx context.Context, token string, now time.Time) authenticationv1.TokenReviewStatus
	// Launch is how long a machine takes to start. Zero: no time.
	Launch time.Duration
	// Log receives a line for each thing that did not go as it should and no event tells of; nil discards them.
	Log io.Writer
}

// Fargate runs pods. It serves the webhook that gives them to it: see ServeHTTP.
type Fargate struct {
	Options
	deaf atomic.Bool
	logs sync.Mutex

	running sync.WaitGroup
	mu      sync.Mutex
	pods    map[types.UID]context.CancelFunc // ends when the pod does
}

// New returns a Fargate that runs nothing yet.
func New(o Options) *Fargate {
	if o.Log == nil {
		o.Log = io.Discard
	}
	return &Fargate{Options: o, pods: map[types.UID]context.CancelFunc{}}
}

// SetDeaf has the webhook refuse to answer. The API server then makes pods as if there were none, as before the cluster's first profile.
func (f *Fargate) SetDeaf(deaf bool) { f.deaf.Store(deaf) }

// Start begins to watch the pods that have been given to Fargate, and returns when they are known. It goes on until ctx ends.
func (f *Fargate) Start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(f.Kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.schedulerName", Scheduler).String()
	}))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				f.take(ctx, pod)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				f.drop(pod.UID)
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

// Wait waits until nothing runs any more; the context of Start has ended.
func (f *Fargate) Wait() { f.running.Wait() }

// take sees to a pod from now on, unless that is over already.
func (f *Fargate) take(ctx context.Context, pod *corev1.Pod) {
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

func (f *Fargate) drop(pod types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.pods[pod]; cancel != nil {
		cancel()
		delete(f.pods, pod)
	}
}

// profiles are the cluster's Fargate profiles as they are now, by name.
func (f *Fargate) profiles() []world.FargateProfile {
	var out []world.FargateProfile
	f.Emulator.Do(func(w *world.World, _ time.Time) {
		c, err := w.Region(f.Account, f.Region).Cluster(f.Cluster)
		if err != nil {
			return
		}
		for _, p := range c.FargateProfiles() {
			out = append(out, *p)
		}
	})
	return out
}

func (f *Fargate) log(format string, args ...any) {
	f.logs.Lock()
	defer f.logs.Unlock()
	fmt.Fprintf(f.Log, "time=%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
}
