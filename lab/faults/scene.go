package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

const pollInterval = 100 * time.Millisecond

// Scene is the set of objects of a fault: an EC2NodeClass, a NodePool and a Deployment with one pod, all with the same
// name. A fault changes the objects before they are created.
type Scene struct {
	Lab          *lab.Lab // the lab in which the objects are created
	Name         string   // name of all objects, and the value of the label "test" that the NodePool sets and the pods select
	Class        *awsv1.EC2NodeClass
	Pool         *karpv1.NodePool
	Pods         *appsv1.Deployment // has one pod, which the NodePool accepts
	ExtraObjects []client.Object    // further objects; created before Class, Pool and Pods

	undo    []func(context.Context) error // see AddUndo
	images  []string                      // IDs of the images that were registered for the scene
	created []client.Object               // in the order of creation
}

// NewScene returns a healthy scene. It creates no objects.
func NewScene(l *lab.Lab, name string) *Scene {
	discovery := map[string]string{"karpenter.sh/discovery": l.Cluster}
	s := &Scene{Lab: l, Name: name}
	s.Class = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: awsv1.EC2NodeClassSpec{
		Role:                       lab.NodeRole,
		AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
	}}
	s.Pool = &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Pool.Spec.Template.Labels = map[string]string{"test": name}
	s.Pool.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: &karpv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: name},
		Requirements: karpv1.Requirements{ // faults change these by index
			In(corev1.LabelArchStable, "amd64"), In(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand),
			In("karpenter.k8s.aws/instance-category", "c", "m", "r"),
		},
	}
	s.Pool.Spec.Disruption = karpv1.Disruption{ConsolidationPolicy: karpv1.ConsolidateWhenEmpty, ConsolidateAfter: karpv1.After(time.Second),
		Budgets: []karpv1.Budget{{Nodes: "100%"}}}
	s.Pods = newDeployment(name)
	return s
}

// In returns a requirement with operator In.
func In(key string, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// newDeployment returns a Deployment with one pod, which runs only on nodes whose label "test" has the value name.
func newDeployment(name string) *appsv1.Deployment {
	one, grace := int32(1), int64(1)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace, NodeSelector: map[string]string{"test": name},
					Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
					}}}},
				},
			},
		},
	}
}

// ChangeAWS changes the emulated AWS.
func (s *Scene) ChangeAWS(change func(w *world.World, now time.Time) error) error {
	var err error
	s.Lab.Emulator.Do(func(w *world.World, now time.Time) { err = change(w, now) })
	return err
}

// ChangeCluster changes the cluster in the emulated EKS.
func (s *Scene) ChangeCluster(change func(c *ekscluster.Cluster)) error {
	return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
		c, err := s.Lab.Estate.Region.EKS.Cluster(s.Lab.Cluster)
		if err == nil {
			change(c)
		}
		return err
	})
}

// AddUndo adds a function that reverts a change outside of the scene's objects. revert runs the functions, the newest
// first. Play calls revert only if the fault was not fixed, or if Fault.IsExclusive is true.
func (s *Scene) AddUndo(undo func(context.Context) error) { s.undo = append(s.undo, undo) }

func (s *Scene) revert(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(s.undo) {
		errs = append(errs, undo(ctx))
	}
	s.undo = nil
	return errors.Join(errs...)
}

func (s *Scene) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.Lab.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
		s.created = append(s.created, o)
	}
	return nil
}

// waitConditionSet waits until the condition Ready of the class is True or False.
func (s *Scene) waitConditionSet(ctx context.Context) error {
	return s.until(ctx, 30*time.Second, "the condition Ready of the EC2NodeClass", func(ctx context.Context) (bool, error) {
		var class awsv1.EC2NodeClass
		if err := s.Lab.Client.Get(ctx, client.ObjectKeyFromObject(s.Class), &class); err != nil {
			return false, err
		}
		ready, ok := class.StatusConditions().Find(karpv1.ConditionReady)
		return ok && ready.Status != metav1.ConditionUnknown, nil
	})
}

// Instances returns the instances of the scene's NodePool, in any state.
func (s *Scene) Instances() []world.Instance {
	return slices.DeleteFunc(s.Lab.Instances(), func(i world.Instance) bool { return i.Tags[karpv1.LabelNodePool] != s.Name })
}

func (s *Scene) isRunning(ctx context.Context) (bool, error) {
	list, err := s.Lab.Kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + s.Name})
	if err != nil {
		return false, err
	}
	return len(list.Items) > 0 && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning }), nil
}

// remove deletes the scene's objects, the newest first. It does not wait until they are gone.
func (s *Scene) remove(ctx context.Context) error {
	var errs []error
	for _, o := range slices.Backward(s.created) {
		if err := s.Lab.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil &&
			!apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// waitGone waits until all objects of the scene are deleted and all its instances are terminated.
func (s *Scene) waitGone(ctx context.Context) error {
	return s.until(ctx, time.Minute, "the scene's objects and instances to be deleted", func(ctx context.Context) (bool, error) {
		for _, o := range s.created {
			if err := s.Lab.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return !slices.ContainsFunc(s.Instances(), world.Instance.Alive), nil
	})
}

// until waits until done returns true and no error. After the limit it returns an error with the last error of done.
// The error contains what, a description of the expected state.
func (s *Scene) until(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
		isDone, err := done(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return isDone && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited %s for %s: %w", limit, what, errors.Join(err, last))
	}
	return nil
}
