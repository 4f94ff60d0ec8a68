package driftcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// poolDrift is the result of a pass for a pool.
type poolDrift struct {
	pool           *karpv1.NodePool
	class          *awsv1.EC2NodeClass      // the node class of the pool
	settings       driftSettings            // the drift settings of the pool
	nodes          []nodeDrift              // sorted by name of the claim
	massDrift      drift.MassDrift          // many nodes drift because of a change in AWS; zero: no mass drift
	isHeld         bool                     // there is a mass drift, and the user has not approved it
	state          string                   // short hash of the objects that the selectors found in AWS
	unresolvedHold string                   // message of an earlier mass drift that cannot be judged now for lack of data; else empty
	proven         map[string]bool          // by target: more nodes with this target are fit than have failed
	failed         map[string]drift.Failure // by target: failures of the targets that are in use
	setbacks       []drift.ReplacedImage    // images of the class that are not used, because their nodes failed
}

// nodeDrift is the result of a pass for a node.
type nodeDrift struct {
	claim     *karpv1.NodeClaim
	verdicts  []drift.Verdict // how the node drifts; empty if it does not
	isUnknown bool            // EC2 has not reported the state of the instance
	undecided []drift.Reason  // reasons for which it cannot be decided now whether the node drifts
	target    string          // identifies the configuration from which a replacement would be made
	isFit     bool            // the node is fit for pods: it is ready, and has been initialized for FitAfter
	isYoung   bool            // the node may still become fit
}

type driftSettings struct {
	disruption.Policy
	allowed string // token of the mass drift that the user has approved
	problem string // the setting that cannot be parsed, which blocks replacements; empty: all settings are valid
}

func driftSettingsOf(pool *karpv1.NodePool, now time.Time) driftSettings {
	out := driftSettings{Policy: nodestate.PolicyOf(pool, now), allowed: strings.TrimSpace(pool.Annotations[nodestate.AnnotationDriftAllow])}
	if problem, isForbidden := out.Forbidden(disruption.Drifted); isForbidden {
		out.problem = problem.String()
	}
	return out
}

// typeOffers are the zones and capacity types in which an instance type is offered, regardless of shortages.
type typeOffers []catalog.Offering

// offersByType returns the offerings of a class in a pool, by instance type; nil until EC2 has answered.
func (d *Reconciler) offersByType(class *awsv1.EC2NodeClass, pool string, now time.Time) map[string]typeOffers {
	market, ok := d.Market.Catalog(class, now)
	if !ok {
		return nil
	}
	types := market.Of(pool)
	out := make(map[string]typeOffers, len(types))
	for _, t := range types {
		out[t.Name] = t.Offerings
	}
	return out
}

// has reports whether there is an offering for a node with these labels. For a node with capacity type reserved, an
// on-demand offering counts too: the instance keeps running as on-demand when its reservation ends.
func (t typeOffers) has(labels map[string]string) bool {
	capacityType := labels[karpv1.LabelCapacityType]
	return slices.ContainsFunc(t, func(o catalog.Offering) bool {
		return o.Zone == labels[catalog.LabelZone] &&
			(o.CapacityType == capacityType || capacityType == catalog.Reserved && o.CapacityType == catalog.OnDemand)
	})
}

func (d *Reconciler) judge(seen driftInput, pool *karpv1.NodePool, now time.Time) poolDrift {
	class := seen.classes[pool.Spec.Template.Spec.NodeClassRef.Name]
	out := poolDrift{pool: pool, class: class, settings: seen.settings[pool.Name], proven: map[string]bool{},
		failed: map[string]drift.Failure{}}
	var judged []drift.NodeVerdicts
	for _, claim := range seen.claims[pool.Name] {
		n := d.judgeNode(seen, pool, claim, now)
		out.nodes = append(out.nodes, n)
		judged = append(judged, drift.NodeVerdicts{Name: claim.Name, Verdicts: n.verdicts})
	}
	slices.SortFunc(out.nodes, func(a, b nodeDrift) int { return compareNames(a.claim, b.claim) })
	selected := selectedText(class, d.Authority)
	out.state = drift.Short(selected)
	massDrift, isMass := drift.FindMassDrift(judged, selected, drift.Breaker(d.Breaker), isWaiting(pool, class, out.state))
	out.massDrift, out.isHeld = massDrift, isMass && out.settings.allowed != massDrift.Token && !out.settings.ObserveDrift
	if !isMass && !out.settings.ObserveDrift && isUndecided(out) {
		out.unresolvedHold = openBreakerMessage(pool)
	}
	failures := d.CurrentFailures(pool, now)
	fit := map[string]int{}
	for _, n := range out.nodes {
		if n.isFit && len(n.verdicts) == 0 {
			fit[n.target]++
		}
	}
	for _, n := range out.nodes {
		f, failed := failures[n.target]
		if failed {
			out.failed[n.target] = f
		}
		out.proven[n.target] = fit[n.target] > len(f.Claims)
	}
	history := ImageHistoryOf(class)
	_, out.setbacks = history.Use(history.SelectedImages(ImagesIn(class)), class.Generation)
	return out
}

// isWaiting reports whether a mass drift of the pool waits for the user's approval. The wait continues while state is
// the same as at its start or the selectors find other AWS resources than before the drift. The wait ends when the
// selectors find the earlier resources again; the next mass drift then needs a new approval. state is stored on the
// pool, so that a restarted process knows it.
func isWaiting(pool *karpv1.NodePool, class *awsv1.EC2NodeClass, state string) bool {
	before := pool.Annotations[nodestate.AnnotationDriftState]
	return before != "" && (before == state || len(storedSelections(class).Outside(currentSelections(class))) > 0)
}

// openBreakerMessage returns the message of the mass drift that waits for the user's approval; empty if there is none.
func openBreakerMessage(pool *karpv1.NodePool) string {
	c, _ := pool.StatusConditions().Find(karpv1.ConditionDriftHeld)
	if pool.Annotations[nodestate.AnnotationDriftState] == "" || c.Reason != karpv1.ReasonMassDriftHeld {
		return ""
	}
	return c.Message
}

// isUndecided reports whether it cannot be decided now if the nodes with the condition Drifted still drift: the class
// finds no security groups or no subnets, or data about the instance of such a node is missing.
func isUndecided(p poolDrift) bool {
	if len(p.class.Status.SecurityGroups) == 0 || len(p.class.Status.Subnets) == 0 {
		return true
	}
	return slices.ContainsFunc(p.nodes, func(n nodeDrift) bool {
		c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDrifted)
		return ok && slices.Contains(n.undecided, drift.Reason(c.Reason))
	})
}

func (d *Reconciler) judgeNode(seen driftInput, pool *karpv1.NodePool, claim *karpv1.NodeClaim, now time.Time) nodeDrift {
	recordedPool, recordedClass := conversion.RecordedFields(claim, pool)
	instance, known := d.instances[claim.Status.ProviderID]
	n := drift.Node{
		Claim: claim.Name, Labels: claim.Labels, Age: now.Sub(claim.CreationTimestamp.Time), Pool: recordedPool, Class: recordedClass,
		Image: claim.Status.ImageID, Known: known, Groups: instance.SecurityGroups, Subnet: instance.SubnetID,
		Placement: claim.Labels[awsv1.LabelPlacementGroupID],
	}
	if d.ComparesReservations {
		n.Reservation = instance.Reservation.ID
	}
	desired := d.desiredFor(seen, pool, claim)
	out := nodeDrift{claim: claim, verdicts: drift.Judge(n, desired), isUnknown: !known, undecided: drift.Unknown(n, desired)}
	class := seen.classes[pool.Spec.Template.Spec.NodeClassRef.Name]
	image, _ := ami.For(offerings.ImagesOf(class), claim.Labels)
	out.target = drift.Target(seen.poolOrigins[pool.Name].Stamp, seen.classOrigins[class.Name].Stamp, image.ID, groupIDs(class))
	initialized, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	out.isYoung = claim.DeletionTimestamp == nil && n.Age < maxYoungAge
	out.isFit = ok && initialized.Status == "True" && now.Sub(initialized.LastTransitionTime.Time) >= FitAfter &&
		seen.ready[claim.Status.ProviderID]
	return out
}

// desiredFor returns the configuration that a node with the claim's labels should have now. It uses the class that the
// claim names. If the pool now names another class, the node drifts anyway, because the pool's hash differs.
func (d *Reconciler) desiredFor(seen driftInput, pool *karpv1.NodePool, claim *karpv1.NodeClaim) drift.Desired {
	desired := drift.Desired{
		PoolName:  pool.Name,
		ClassName: claim.Spec.NodeClassRef.Name,
		Pool:      seen.poolOrigins[pool.Name],
		Ignored:   seen.settings[pool.Name].IgnoreDrift,
	}
	for _, r := range pool.Spec.Template.Spec.Requirements {
		desired.Requirements = append(desired.Requirements, requirements.Requirement{
			Key: conversion.StableKey(r.Key), Operator: requirements.Operator(r.Operator), Values: r.Values})
	}
	class := seen.classes[claim.Spec.NodeClassRef.Name]
	if class == nil || class.DeletionTimestamp != nil {
		return desired
	}
	desired.Class = seen.classOrigins[class.Name]
	if offered := seen.types[pool.Name]; offered != nil && class.Name == pool.Spec.Template.Spec.NodeClassRef.Name {
		isOffered := offered[claim.Labels[catalog.LabelInstanceType]].has(claim.Labels)
		desired.Offered = &isOffered
	}
	if image, ok := ami.For(offerings.ImagesOf(class), claim.Labels); ok {
		desired.Image = image.ID
	}
	desired.Groups = groupIDs(class)
	for _, s := range class.Status.Subnets {
		desired.Subnets = append(desired.Subnets, s.ID)
	}
	desired.Reservations = reservationIDs(class)
	if group, known := d.Market.Placements.Of(class); known {
		desired.Placement = &group.ID
	}
	stored := storedSelections(class)
	// Outside has the selectors that find other objects although the user did not change the selectors.
	desired.Outside, desired.PastGroups = stored.Outside(currentSelections(class)), stored.EverSelected(drift.FieldGroups)
	if !selectsByTags(class) {
		// A user who selects images by alias, name or parameter expects new images. So drift because of a new image
		// does not count as a change from outside.
		delete(desired.Outside, drift.FieldImages)
	}
	return desired
}

func groupIDs(class *awsv1.EC2NodeClass) []string {
	var out []string
	for _, g := range class.Status.SecurityGroups {
		out = append(out, g.ID)
	}
	return out
}

func reservationIDs(class *awsv1.EC2NodeClass) []string {
	var out []string
	for _, r := range class.Status.CapacityReservations {
		out = append(out, r.ID)
	}
	return out
}

// selectsByTags reports whether the class selects images by tags. Users other than the owner of the class can set tags.
func selectsByTags(class *awsv1.EC2NodeClass) bool {
	return slices.ContainsFunc(class.Spec.AMISelectorTerms, func(t awsv1.AMISelectorTerm) bool { return len(t.Tags) > 0 })
}

// currentSelections returns the objects that the selectors of a class find now. It omits selectors that were not evaluated
// since the last change of the class.
func currentSelections(class *awsv1.EC2NodeClass) drift.Selections {
	out := drift.Selections{}
	add := func(condition, field string, terms any, found []string) {
		c, ok := class.StatusConditions().Find(condition)
		hash, err := drift.Hash(terms)
		if !ok || err != nil || c.Status != "True" || c.ObservedGeneration != class.Generation {
			return
		}
		slices.Sort(found)
		out[field] = drift.Selection{Terms: drift.Short(hash), Found: slices.Compact(found)}
	}
	var subnets, images []string
	for _, s := range class.Status.Subnets {
		subnets = append(subnets, s.ID)
	}
	for _, i := range class.Status.AMIs {
		images = append(images, i.ID)
	}
	add(awsv1.ConditionSecurityGroupsReady, drift.FieldGroups, class.Spec.SecurityGroupSelectorTerms, groupIDs(class))
	add(awsv1.ConditionSubnetsReady, drift.FieldSubnets, class.Spec.SubnetSelectorTerms, subnets)
	add(awsv1.ConditionCapacityReservationsReady, drift.FieldReservations, class.Spec.CapacityReservationSelectorTerms, reservationIDs(class))
	add(awsv1.ConditionAMIsReady, drift.FieldImages, class.Spec.AMISelectorTerms, images)
	return out
}

// storedSelections returns the objects that the selectors of a class found earlier, as stored on the class; nil if they
// cannot be read.
func storedSelections(class *awsv1.EC2NodeClass) drift.Selections {
	var out drift.Selections
	if err := json.Unmarshal([]byte(class.Annotations[kubeclient.AnnotationSelected]), &out); err != nil {
		return nil
	}
	return out
}

// selectedText returns a text that differs if a class finds other objects in AWS, or if the certificate authority
// differs. The user approves a mass drift only for one such text.
func selectedText(class *awsv1.EC2NodeClass, authority string) string {
	current := currentSelections(class)
	return fmt.Sprint(current[drift.FieldGroups].Found, current[drift.FieldSubnets].Found, current[drift.FieldImages].Found,
		current[drift.FieldReservations].Found, authority)
}
