package nodeclass

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
)

type networks interface {
	Subnets(ctx context.Context, vpc string, terms []vpc.Term) ([]vpc.Subnet, []vpc.Miss, error)
	Groups(ctx context.Context, vpc string, terms []vpc.Term) ([]vpc.Group, []vpc.Miss, error)
}

// ImageClient finds AMIs.
type ImageClient interface {
	Images(ctx context.Context, version string, terms []ami.Term) ([]ami.Image, []ami.Unmatched, error)
}

// ProfileClient creates and deletes instance profiles.
type ProfileClient interface {
	EnsureProfile(ctx context.Context, class iam.NodeClass) (iam.Profile, error)
	Profile(ctx context.Context, name string) (iam.Profile, error)
	DeleteProfiles(ctx context.Context, nodeClassUID string) error
}

type templates interface {
	DeleteTemplates(ctx context.Context, nodeClass string) (int, error)
}

// versions returns the Kubernetes version of the control plane, for example "1.33".
type versions interface {
	Version(ctx context.Context) (string, error)
}

type classWriter interface {
	PatchClass(ctx context.Context, class *awsv1.EC2NodeClass, change func(*awsv1.EC2NodeClass)) (*awsv1.EC2NodeClass, error)
}

// Reconciler resolves each EC2NodeClass to AWS resources, and writes the resources to the status of the class.
type Reconciler struct {
	Cache     client.Reader // reads objects from the informers
	Objects   classWriter   // writes objects to the API server
	Networks  networks      // reads subnets and security groups
	Images    ImageClient   // finds AMIs
	Profiles  ProfileClient // manages instance profiles
	Templates templates     // deletes launch templates by the class's name
	Versions  versions      // reads the Kubernetes version
	// Reservations finds capacity reservations; nil: reservations are not used.
	Reservations offerings.Reservations
	Placements   offerings.Placements      // finds placement groups
	DryRunner    DryRunner                 // makes dry runs of launches; nil disables them
	Offers       *offerings.RequestBuilder // builds the parameters of launches
	Diagnoses    *diagnoser.Diagnoser      // preflight checks whether nodes can join; nil disables them
	VPC          string                    // ID of the cluster's VPC; empty if unknown
	Isolated     bool                      // true: IAM cannot be reached, so spec.instanceProfile is not checked
	Refresh      time.Duration             // interval between two reads of AWS resources
	Batch        *loop.Batch               // gets a request for a plan when a class becomes ready
	Events       loop.EventRecorder        // emits events
	Metrics      *metrics.Metrics          // the metrics of this process
	Log          *slog.Logger              // the log of this process

	Failures         loop.Backoff // back-off by name of the class
	finalizeFailures loop.Backoff // back-off of finalize, so that a deletion does not wait for the back-off in Failures
	DryRuns          dryRuns      // results of dry runs by class; the zero value is empty
}

// Reconcile brings the status of one class up to date.
func (n *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &awsv1.EC2NodeClass{}
	err := n.Cache.Get(ctx, request.NamespacedName, class)
	failures, until := &n.Failures, time.Time{}
	switch {
	case apierrors.IsNotFound(err):
		err = nil
	case err != nil: // loop.ResultOf reports the error
	case class.DeletionTimestamp != nil:
		failures = &n.finalizeFailures
		until, err = n.finalize(ctx, class)
	default:
		until, err = n.visit(ctx, class)
	}
	return loop.ResultOf(loop.Outcome{
		Loop: "nodeclass", Kind: "EC2NodeClass", Name: request.Name, Until: until, Err: err,
		Failures: failures, Metrics: n.Metrics, Log: n.Log,
	})
}

func (n *Reconciler) visit(ctx context.Context, class *awsv1.EC2NodeClass) (time.Time, error) {
	if !slices.Contains(class.Finalizers, awsv1.FinalizerTermination) {
		// The finalizer comes first: without it, the AWS resources of a class that is deleted now would be leaked.
		withFinalizer, err := n.Objects.PatchClass(ctx, class, addFinalizer)
		if err != nil {
			return time.Time{}, err
		}
		class = withFinalizer
	}
	// 1. read
	found := n.resolve(ctx, class)
	found.dryRunErr = n.checkLaunch(ctx, class, found, time.Now())
	// 2. decide, 3. act
	wasReady := class.StatusConditions().IsReady()
	now := time.Now()
	written, err := n.Objects.PatchClass(ctx, class, func(c *awsv1.EC2NodeClass) {
		found.write(c, now)
	})
	if err != nil {
		return time.Time{}, err
	}
	// 4. report
	n.report(written, wasReady)
	if err := found.retryableErr(); err != nil {
		return time.Time{}, err
	}
	if found.pending {
		return now.Add(diagnoser.MaxPreflightWait), nil // the result of the checks triggers an earlier reconcile
	}
	if pause := found.settlePause(); pause > 0 {
		return now.Add(min(pause, n.Refresh)), nil
	}
	if !written.StatusConditions().IsReady() {
		return now.Add(min(notReadyRefresh, n.Refresh)), nil // the user may be fixing the cause in AWS, which sends no event
	}
	return now.Add(n.Refresh), nil
}

// notReadyRefresh is how often AWS resources are read for a class that is not ready.
const notReadyRefresh = 20 * time.Second

func addFinalizer(class *awsv1.EC2NodeClass) {
	class.Finalizers = append(slices.Clone(class.Finalizers), awsv1.FinalizerTermination)
}

// report logs changes of the readiness, and emits events about problems.
func (n *Reconciler) report(class *awsv1.EC2NodeClass, wasReady bool) {
	conditions := class.StatusConditions()
	if c, ok := conditions.Find(awsv1.ConditionPreflightPassed); ok && c.Status != "True" && conditions.IsReady() {
		n.Events.Emit(class, kubeclient.ReasonPreflightFailed, c.Message)
	}
	switch isReady := conditions.IsReady(); {
	case isReady && !wasReady:
		n.Log.Info("EC2NodeClass is ready", "EC2NodeClass", class.Name, "subnets", len(class.Status.Subnets),
			"securityGroups", len(class.Status.SecurityGroups), "images", len(class.Status.AMIs), "instanceProfile", class.Status.InstanceProfile)
		n.Batch.Ask(string(class.UID))
	case !isReady:
		var causes []string
		for _, c := range class.Status.Conditions {
			if c.Type != karpv1.ConditionReady && c.Type != awsv1.ConditionPreflightPassed && c.Status != "True" {
				causes = append(causes, c.Type+": "+c.Message)
			}
		}
		if wasReady {
			n.Log.Error("EC2NodeClass is no longer ready", "EC2NodeClass", class.Name, "cause", strings.Join(causes, "; "))
		}
		// Unknown conditions cause no warning: every new class has them.
		if slices.ContainsFunc(class.Status.Conditions, keepsUnready) {
			n.Events.Emit(class, kubeclient.ReasonNodeClassInvalid, strings.Join(causes, "; "))
		}
	}
}

// keepsUnready reports whether Ready depends on the condition and the condition is False.
func keepsUnready(c metav1.Condition) bool {
	return c.Type != karpv1.ConditionReady && c.Type != awsv1.ConditionPreflightPassed && c.Status == metav1.ConditionFalse
}

// resolve reads the AWS resources that the class selects. If one read fails, the other resources are still read.
func (n *Reconciler) resolve(ctx context.Context, class *awsv1.EC2NodeClass) resolvedClass {
	var f resolvedClass
	f.subnets, f.missingSubnets, f.subnetErr = n.Networks.Subnets(ctx, n.VPC, subnetTerms(class))
	if f.subnetErr == nil {
		n.Offers.NoteSubnets(class.Name, f.subnets)
	}
	f.groups, f.missingGroups, f.groupErr = n.Networks.Groups(ctx, n.VPC, groupTerms(class))
	var version string
	if version, f.imageErr = n.Versions.Version(ctx); f.imageErr == nil {
		f.images, f.missingImages, f.imageErr = n.Images.Images(ctx, version, imageTerms(class))
	}
	f.replaceBadImages(class)
	f.profile, f.profileErr = n.profile(ctx, class)
	n.resolvePlacement(ctx, class, &f)
	n.resolveReservations(ctx, class, &f)
	f.preflight, f.problem = n.Offers.JudgeUserData(class, f.images, version)
	if p := classProblem(class); p.Reason != "" {
		f.problem = p
	}
	n.checkPreflight(ctx, class, &f)
	if text := conversion.SnapshotProblem(class.Spec.BlockDeviceMappings, disksOf(f.images)); text != "" &&
		f.problem.Reason == "" && !f.pending {
		f.problem = offerings.Problem{Reason: "BlockDeviceMappingInvalid", Message: text}
	}
	return f
}

// profile returns the name of the instance profile, and creates the profile if the class names only a role.
func (n *Reconciler) profile(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	if given := class.Spec.InstanceProfile; given != nil {
		if n.Isolated {
			return *given, nil // EC2 reports a wrong name at launch
		}
		profile, err := n.Profiles.Profile(ctx, *given)
		if err == nil && profile.Role == "" {
			return *given, awserr.Misconfiguredf("GetInstanceProfile", "InstanceProfileWithoutRole",
				"instance profile %q has no role: add the node role to the instance profile, or correct spec.instanceProfile of the EC2NodeClass", *given)
		}
		if awserr.Is(err, awserr.Gone) {
			return *given, awserr.Misconfiguredf("GetInstanceProfile", "InstanceProfileNotFound",
				"there is no instance profile %q in this account: correct spec.instanceProfile of the EC2NodeClass", *given)
		}
		if awserr.Is(err, awserr.Denied) {
			return *given, nil // Karpenter's policy lacks iam:GetInstanceProfile; EC2 reports a wrong name at launch
		}
		return *given, err
	}
	profile, err := n.Profiles.EnsureProfile(ctx, iam.NodeClass{
		Name: class.Name, UID: string(class.UID), Role: class.Spec.Role, Tags: class.Spec.Tags,
	})
	return profile.Name, err
}

// finalize waits until no NodeClaim uses the class. Then it deletes the AWS resources that were created for the class,
// and removes the finalizer.
func (n *Reconciler) finalize(ctx context.Context, class *awsv1.EC2NodeClass) (time.Time, error) {
	if !slices.Contains(class.Finalizers, awsv1.FinalizerTermination) {
		return time.Time{}, nil
	}
	var claims karpv1.NodeClaimList
	if err := n.Cache.List(ctx, &claims, client.MatchingFields{kubeclient.IndexClaimClass: class.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return time.Time{}, err
	}
	var waiting []string
	for _, c := range claims.Items {
		if nodestate.IsServed(c.Spec.NodeClassRef) { // exclude claims of another provider's class with the same name
			waiting = append(waiting, c.Name)
		}
	}
	if len(waiting) > 0 {
		n.Events.Emit(class, "WaitingOnNodeClaimTermination", "Waiting for "+loop.Count(len(waiting), "NodeClaim")+" to terminate: "+
			strings.Join(waiting[:min(5, len(waiting))], ", "))
		return time.Now().Add(time.Minute), nil // the deletion of a claim triggers an earlier reconcile
	}
	if class.Spec.InstanceProfile == nil {
		if err := n.Profiles.DeleteProfiles(ctx, string(class.UID)); err != nil {
			return time.Time{}, err
		}
	}
	if _, err := n.Templates.DeleteTemplates(ctx, class.Name); err != nil {
		return time.Time{}, err
	}
	_, err := n.Objects.PatchClass(ctx, class, func(c *awsv1.EC2NodeClass) {
		c.Finalizers = slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == awsv1.FinalizerTermination })
	})
	if err != nil {
		return time.Time{}, err
	}
	n.Log.Info("finalized EC2NodeClass", "EC2NodeClass", class.Name)
	return time.Time{}, nil
}
