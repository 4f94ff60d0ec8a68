package nodeclass

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// resolvedClass has the AWS resources that a node class selects, and the problems of the class.
type resolvedClass struct {
	subnets        []vpc.Subnet
	missingSubnets []vpc.Miss // selector terms that found no subnet
	subnetErr      error

	groups        []vpc.Group
	missingGroups []vpc.Miss // selector terms that found no security group
	groupErr      error

	images        []ami.Image
	missingImages []ami.Unmatched // selector terms that found no image
	imageErr      error
	setbacks      []drift.ReplacedImage // images that were found, but are not used because their nodes failed
	history       drift.ImageHistory    // records of good and bad images, to store on the class

	profile    string // name of the instance profile; empty if there is none
	profileErr error

	usesReservations bool // the feature gate ReservedCapacity is on
	reservations     []ec2.Reservation
	reservationErr   error

	placement    ec2.PlacementGroup // the zero value if the class selects none
	placementErr error

	problem   offerings.Problem   // the problem of the class itself; the zero value if there is none
	preflight offerings.Preflight // result of the preflight checks
	pending   bool                // no preflight report covers the class yet, and the class waits for it

	dryRunErr error // the error of a dry run of a launch; nil: no error, or no dry run
}

// Reasons of conditions if a class selects resources of several VPCs. reasonGroupVPCMismatch is also EC2's error code
// at launch.
const (
	reasonSubnetVPCMismatch = "SubnetVPCMismatch"
	reasonGroupVPCMismatch  = "SecurityGroupSubnetVPCMismatch"
)

// retryableErr returns the first error that a retry may fix, or nil.
func (f resolvedClass) retryableErr() error {
	for _, err := range []error{f.subnetErr, f.groupErr, f.imageErr, f.profileErr, f.reservationErr, f.placementErr} {
		if err != nil {
			return err
		}
	}
	if awserr.Is(f.dryRunErr, awserr.Denied) || awserr.Is(f.dryRunErr, awserr.Misconfigured) || f.settlePause() > 0 {
		return nil
	}
	return f.dryRunErr
}

// isComplete reports whether the class has everything that a launch needs, as far as that can be known before a launch.
func (f resolvedClass) isComplete() bool {
	condition, _ := f.vpcProblem()
	return f.retryableErr() == nil && f.problem.Reason == "" && condition == "" && !f.pending && f.profile != "" &&
		len(f.subnets) > 0 && len(f.groups) > 0 && len(f.images) > 0
}

// write stores the results in the status. Fields of resources that could not be read stay unchanged.
func (f resolvedClass) write(class *awsv1.EC2NodeClass, now time.Time) {
	s, c := &class.Status, class.StatusConditions(f.reservationConditions()...)
	c.Start(now)
	if f.subnetErr == nil {
		s.Subnets = nil
		for _, subnet := range f.subnets {
			s.Subnets = append(s.Subnets, awsv1.Subnet{ID: subnet.ID, Zone: subnet.Zone, ZoneID: subnet.ZoneID})
		}
	}
	setCondition(c, now, awsv1.ConditionSubnetsReady, f.subnetErr, len(s.Subnets) > 0, awsv1.ReasonSubnetsNotFound,
		"spec.subnetSelectorTerms found no subnet in the cluster's VPC"+missingText(f.missingSubnets))
	noteMisses(c, now, awsv1.ConditionSubnetsReady, "spec.subnetSelectorTerms", f.missingSubnets)
	if f.groupErr == nil {
		s.SecurityGroups = nil
		for _, g := range f.groups {
			s.SecurityGroups = append(s.SecurityGroups, awsv1.SecurityGroup{ID: g.ID, Name: g.Name})
		}
	}
	setCondition(c, now, awsv1.ConditionSecurityGroupsReady, f.groupErr, len(s.SecurityGroups) > 0, awsv1.ReasonSecurityGroupsNotFound,
		"spec.securityGroupSelectorTerms found no security group in the cluster's VPC"+missingText(f.missingGroups))
	noteMisses(c, now, awsv1.ConditionSecurityGroupsReady, "spec.securityGroupSelectorTerms", f.missingGroups)
	if condition, p := f.vpcProblem(); p.Reason != "" {
		c.SetFalse(now, condition, p.Reason, p.Message)
	}
	if f.imageErr == nil {
		s.AMIs = amis(f.images)
		f.writeSetbacks(class, c, now)
	}
	missingReason := awsv1.ReasonAMINotFound
	if len(f.missingImages) > 0 {
		missingReason = f.missingImages[0].Reason
	}
	setCondition(c, now, awsv1.ConditionAMIsReady, f.imageErr, len(s.AMIs) > 0, missingReason,
		"spec.amiSelectorTerms found no image"+missingText(f.missingImages))
	if f.profileErr == nil {
		s.InstanceProfile = f.profile
	}
	setCondition(c, now, awsv1.ConditionInstanceProfileReady, f.profileErr, s.InstanceProfile != "", "InstanceProfileNotFound",
		"there is no instance profile")
	if f.reservationErr == nil {
		s.CapacityReservations = f.reservationStatus()
	}
	if f.usesReservations { // finding no reservation is not a problem
		setCondition(c, now, awsv1.ConditionCapacityReservationsReady, f.reservationErr, true, "", "")
	}
	f.writeRest(c, now)
}

// writeRest sets the conditions of the placement group and the preflight checks, and ValidationSucceeded.
func (f resolvedClass) writeRest(c karpv1.ConditionSet, now time.Time) {
	f.writePlacement(c, now)
	f.preflight.Write(c, now)
	needed := []string{awsv1.ConditionSubnetsReady, awsv1.ConditionSecurityGroupsReady, awsv1.ConditionAMIsReady,
		awsv1.ConditionInstanceProfileReady}
	switch {
	case f.problem.Reason != "":
		c.SetFalse(now, awsv1.ConditionValidationSucceeded, f.problem.Reason, f.problem.Message)
	case !c.IsTrue(needed...):
		c.SetUnknown(now, awsv1.ConditionValidationSucceeded, awsv1.ReasonDependenciesNotReady,
			"waiting for "+strings.Join(untrue(c, needed), ", "))
	case f.pending:
		c.SetUnknown(now, awsv1.ConditionValidationSucceeded, reasonPreflightPending, "checking whether nodes of the class can join the cluster")
	case f.dryRunErr != nil:
		f.writeDryRun(c, now)
	default:
		c.SetTrue(now, awsv1.ConditionValidationSucceeded)
	}
}

// setCondition sets one condition from the error of a read; without an error, from whether the read found a resource.
// Of the errors, only Misconfigured and Refused, which the user must fix, end an earlier success.
func setCondition(c karpv1.ConditionSet, now time.Time, condition string, err error, found bool, notFoundReason, notFoundMessage string) {
	e := awserr.Of(err)
	switch {
	case err == nil && found:
		c.SetTrue(now, condition)
	case err == nil:
		c.SetFalse(now, condition, notFoundReason, notFoundMessage)
	case e.Kind == awserr.Misconfigured, e.Kind == awserr.Refused:
		c.SetFalse(now, condition, e.Reason, awserr.StableText(err))
	case !c.IsTrue(condition) && e.Kind == awserr.Denied:
		c.SetFalse(now, condition, e.Reason, awserr.StableText(err))
	case !c.IsTrue(condition):
		c.SetUnknown(now, condition, e.Reason, awserr.StableText(err))
	default:
		c.SetTrue(now, condition) // updates observedGeneration; the call is retried, and the error is logged
	}
}

// noteMisses adds the selector terms that found nothing to the message of a condition that is True. The class can be
// used, but perhaps not as its author intends.
func noteMisses(c karpv1.ConditionSet, now time.Time, condition, field string, misses []vpc.Miss) {
	if len(misses) > 0 && c.IsTrue(condition) {
		c.Set(now, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition,
			Message: "some of " + field + " found nothing in the cluster's VPC" + missingText(misses)})
	}
}

// vpcProblem returns the condition and the problem if the selected subnets and security groups are in several VPCs. EC2
// refuses to launch with them. This can happen only if the cluster's VPC is not known: otherwise only resources of that
// VPC are selected.
func (f resolvedClass) vpcProblem() (string, offerings.Problem) {
	if len(f.subnets) == 0 || f.subnetErr != nil || f.groupErr != nil {
		return "", offerings.Problem{}
	}
	first := f.subnets[0]
	for _, s := range f.subnets {
		if s.VPC != first.VPC {
			return awsv1.ConditionSubnetsReady, offerings.Problem{Reason: reasonSubnetVPCMismatch, Message: fmt.Sprintf(
				"spec.subnetSelectorTerms select subnets of several VPCs, %s of %s and %s of %s: select only subnets of the cluster's VPC", first.ID, first.VPC, s.ID, s.VPC)}
		}
	}
	for _, g := range f.groups {
		if g.VPC != first.VPC {
			return awsv1.ConditionSecurityGroupsReady, offerings.Problem{Reason: reasonGroupVPCMismatch, Message: fmt.Sprintf(
				"spec.securityGroupSelectorTerms select %s of %s, but spec.subnetSelectorTerms select subnets of %s: select only resources of the cluster's VPC", g.ID, g.VPC, first.VPC)}
		}
	}
	return "", offerings.Problem{}
}

func untrue(c karpv1.ConditionSet, conditions []string) []string {
	return slices.DeleteFunc(slices.Clone(conditions), func(t string) bool { return c.IsTrue(t) })
}

// missingText lists the terms that found nothing, as the end of a message.
func missingText[T fmt.Stringer](terms []T) string {
	var texts []string
	for _, t := range terms {
		texts = append(texts, t.String())
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, "; ")
}

func amis(images []ami.Image) []awsv1.AMI {
	var out []awsv1.AMI
	for _, i := range images {
		a := awsv1.AMI{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: []corev1.NodeSelectorRequirement{}}
		for _, r := range i.Requirements {
			a.Requirements = append(a.Requirements, corev1.NodeSelectorRequirement{
				Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values,
			})
		}
		out = append(out, a)
	}
	return out
}

func disksOf(images []ami.Image) []conversion.ImageDisks {
	var out []conversion.ImageDisks
	for _, i := range images {
		out = append(out, conversion.ImageDisks{ID: i.ID, Name: i.Name, GiB: i.Disks})
	}
	return out
}

// classProblem returns the first mistake in the class that the schema accepts but that would make a launch fail. It
// does not check user data.
func classProblem(class *awsv1.EC2NodeClass) offerings.Problem {
	for _, key := range slices.Sorted(maps.Keys(class.Spec.Tags)) {
		if ec2.ReservedTag(key) {
			return offerings.Problem{
				Reason:  awsv1.ReasonTagValidationFailed,
				Message: "the tag " + key + " is set by Joiner itself: remove it from spec.tags",
			}
		}
	}
	if text := conversion.DiskProblem(class.Spec.BlockDeviceMappings); text != "" {
		return offerings.Problem{Reason: "BlockDeviceMappingInvalid", Message: text}
	}
	if reason, message := conversion.KubeletProblem(class); reason != "" {
		return offerings.Problem{Reason: reason, Message: message}
	}
	if _, err := conversion.Settings(class); err != nil {
		return offerings.Problem{Reason: awsv1.ReasonInvalidKubeletConfiguration, Message: err.Error()}
	}
	return offerings.Problem{}
}

func subnetTerms(class *awsv1.EC2NodeClass) []vpc.Term {
	var out []vpc.Term
	for _, t := range class.Spec.SubnetSelectorTerms {
		out = append(out, vpc.Term{ID: t.ID, Tags: t.Tags})
	}
	return out
}

func groupTerms(class *awsv1.EC2NodeClass) []vpc.Term {
	var out []vpc.Term
	for _, t := range class.Spec.SecurityGroupSelectorTerms {
		out = append(out, vpc.Term{ID: t.ID, Name: t.Name, Tags: t.Tags})
	}
	return out
}

func imageTerms(class *awsv1.EC2NodeClass) []ami.Term {
	var out []ami.Term
	for _, t := range class.Spec.AMISelectorTerms {
		out = append(out, ami.Term{Alias: t.Alias, ID: t.ID, SSMParameter: t.SSMParameter, Name: t.Name, Owner: t.Owner, Tags: t.Tags})
	}
	return out
}

// replaceBadImages replaces each image that is recorded as bad with the last good image of its slot.
func (f *resolvedClass) replaceBadImages(class *awsv1.EC2NodeClass) {
	if f.imageErr != nil {
		return
	}
	var found []drift.Image
	for _, i := range f.images {
		found = append(found, drift.Image{ID: i.ID, Name: i.Name, Slot: driftcheck.SlotOf(i.Requirements)})
	}
	f.history = driftcheck.ImageHistoryOf(class).Pruned(found, class.Generation)
	usable, setbacks := f.history.Use(found, class.Generation)
	f.images, f.setbacks = slices.Clone(f.images), setbacks
	for i := range f.images {
		if f.images[i].ID != usable[i].ID {
			f.images[i].ID, f.images[i].Name, f.images[i].Deprecated = usable[i].ID, usable[i].Name, false
		}
	}
}

// writeSetbacks sets the condition ImageHeldBack about images that are not used because their nodes failed, and drops
// records of bad images that the selectors no longer find.
func (f resolvedClass) writeSetbacks(class *awsv1.EC2NodeClass, c karpv1.ConditionSet, now time.Time) {
	if len(f.history.Bad) < len(driftcheck.ImageHistoryOf(class).Bad) {
		driftcheck.StoreImages(class, f.history)
	}
	if len(f.setbacks) == 0 {
		c.Remove(awsv1.ConditionImageHeldBack)
		return
	}
	c.Set(now, metav1.Condition{
		Type:    awsv1.ConditionImageHeldBack,
		Status:  metav1.ConditionTrue,
		Reason:  karpv1.ReasonImageFailed,
		Message: driftcheck.SetbackText(f.setbacks, class.Name),
	})
}
