package offerings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

type overlayResult struct {
	key      string                               // fingerprint of the inputs
	types    map[string]map[string][]catalog.Type // by class and pool: types that differ from those of the class
	assumed  map[string]catalog.Price             // by instance type: prices for types without an AWS price
	verdicts map[string]overlayVerdict            // by name of the overlay
}

// overlayListTimeout is how long a plan waits for the first list of NodeOverlays.
const overlayListTimeout = 5 * time.Second

// overlayVerdict is the reason why an overlay is not applied; the zero value if it is applied.
type overlayVerdict struct{ reason, message string }

// overlays returns all NodeOverlays, the valid ones converted, both sorted by name, and the verdicts by name.
func (m *Catalogs) overlays() ([]karpv1alpha1.NodeOverlay, []catalog.Overlay, map[string]overlayVerdict, error) {
	// The first call starts the informer. If NodeOverlays cannot be listed in time, plans continue without them.
	ctx, cancel := context.WithTimeout(context.Background(), overlayListTimeout)
	defer cancel()
	var list karpv1alpha1.NodeOverlayList
	if err := m.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, nil, fmt.Errorf("list nodeoverlays: %w", err)
	}
	items := slices.DeleteFunc(list.Items, func(o karpv1alpha1.NodeOverlay) bool { return o.DeletionTimestamp != nil })
	slices.SortFunc(items, func(a, b karpv1alpha1.NodeOverlay) int { return strings.Compare(a.Name, b.Name) })
	verdicts := map[string]overlayVerdict{}
	var out []catalog.Overlay
	for i := range items {
		overlay, wrong := overlayOf(&items[i])
		if wrong != "" {
			verdicts[items[i].Name] = overlayVerdict{karpv1alpha1.ReasonRuntimeValidation, wrong}
			continue
		}
		verdicts[items[i].Name] = overlayVerdict{}
		out = append(out, overlay)
	}
	return items, out, verdicts, nil
}

// overlayOf converts a NodeOverlay, and returns the problems that the schema cannot find; empty if there are none.
func overlayOf(o *karpv1alpha1.NodeOverlay) (catalog.Overlay, string) {
	out := catalog.Overlay{Name: o.Name, Capacity: conversion.Amounts(o.Spec.Capacity)}
	if o.Spec.Weight != nil {
		out.Weight = int(*o.Spec.Weight)
	}
	var wrong []string
	var required []requirements.Requirement
	for i, r := range o.Spec.Requirements {
		wrong = append(wrong, overlayRequirementProblems(fmt.Sprintf("spec.requirements[%d]", i), r)...)
		required = append(required, requirements.Requirement{
			Key: karpv1.StableLabel(r.Key), Operator: requirements.Operator(r.Operator), Values: r.Values,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Capacity)) {
		amount := o.Spec.Capacity[name]
		switch {
		case slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
			corev1.ResourcePods}, name):
			wrong = append(wrong, fmt.Sprintf("spec.capacity: %s is set by EC2: leave it out", name))
		case amount.Sign() < 0:
			wrong = append(wrong, fmt.Sprintf("spec.capacity: %s is below 0", name))
		}
		for _, text := range validation.IsQualifiedName(string(name)) {
			wrong = append(wrong, fmt.Sprintf("spec.capacity: %q: %s", name, text))
		}
	}
	price, err := catalog.ParseRepricing(textOf(o.Spec.Price), textOf(o.Spec.PriceAdjustment))
	if err != nil {
		wrong = append(wrong, "spec."+err.Error())
	}
	out.Price = price
	if len(wrong) > 0 {
		return out, strings.Join(wrong, "; ")
	}
	accepted, unreadable := requirements.All(required...)
	if unreadable != nil {
		return out, fmt.Sprintf("spec.requirements: the requirements on %s cannot be parsed", unreadable.Key)
	}
	out.Requirements = accepted
	return out, ""
}

// overlayRequirementProblems returns the problems of a requirement of an overlay. Unlike a pool, an overlay may require
// names of NodePools.
func overlayRequirementProblems(field string, r karpv1alpha1.Requirement) []string {
	requirement := karpv1.Requirement{Key: r.Key, Operator: r.Operator, Values: r.Values}
	if r.Key != karpv1.LabelNodePool {
		return poolhealth.RequirementProblems(field, requirement)
	}
	if text := poolhealth.OperatorProblem(requirement); text != "" {
		return []string{field + ": " + text}
	}
	return nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// applyOverlays applies the NodeOverlays to the catalogs of the classes, for all pools at once. If the inputs have not
// changed, it returns the previous result.
func (m *Catalogs) applyOverlays(classes map[string]*builtCatalog) (*overlayResult, error) {
	items, overlays, verdicts, err := m.overlays()
	if err != nil {
		return nil, err
	}
	var pools karpv1.NodePoolList
	if err := m.Cache.List(context.Background(), &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodepools: %w", err)
	}
	slices.SortFunc(pools.Items, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintln(&key, "class", name, classes[name].key)
	}
	for i := range items {
		fmt.Fprintln(&key, "overlay", items[i].UID, items[i].Generation)
	}
	for i := range pools.Items {
		fmt.Fprintln(&key, "pool", pools.Items[i].UID, pools.Items[i].Generation)
	}
	m.mu.Lock()
	last := m.OverlayResult
	m.mu.Unlock()
	if last != nil && last.key == key.String() {
		return last, nil
	}
	out := &overlayResult{key: key.String(), types: map[string]map[string][]catalog.Type{}, assumed: assumedBy(overlays), verdicts: verdicts}
	out.fill(pools.Items, classes, overlays)
	m.mu.Lock()
	m.OverlayResult = out
	m.mu.Unlock()
	return out, nil
}

// fill sets the types of each pool, and the verdicts on overlays that conflict.
func (l *overlayResult) fill(pools []karpv1.NodePool, classes map[string]*builtCatalog, overlays []catalog.Overlay) {
	var poolTypes []catalog.PoolTypes
	classOf := map[string]string{} // name of the class, by pool
	for i := range pools {
		pool := &pools[i]
		ref := pool.Spec.Template.Spec.NodeClassRef
		if !nodestate.IsServed(ref) || classes[ref.Name] == nil || pool.DeletionTimestamp != nil {
			continue
		}
		if required, ok := poolRequirements(pool); ok {
			classOf[pool.Name] = ref.Name
			poolTypes = append(poolTypes, catalog.PoolTypes{Pool: pool.Name, Requirements: required, Types: classes[ref.Name].catalog.Types})
		}
	}
	applied := catalog.ApplyOverlays(poolTypes, overlays)
	for name := range applied.Conflicts {
		l.verdicts[name] = overlayVerdict{karpv1alpha1.ReasonConflict, "conflict with another overlay: " + applied.Conflicts[name] +
			" has the same weight and sets another value for an instance type; give one of the two another spec.weight"}
	}
	for pool, types := range applied.Types {
		if l.types[classOf[pool]] == nil {
			l.types[classOf[pool]] = map[string][]catalog.Type{}
		}
		l.types[classOf[pool]][pool] = types
	}
}

// poolRequirements returns the requirements and labels of a pool's nodes as requirements; false if no node can meet
// them.
func poolRequirements(pool *karpv1.NodePool) (requirements.Requirements, bool) {
	var all []requirements.Requirement
	for _, r := range pool.Spec.Template.Spec.Requirements {
		all = append(all, requirements.Requirement{Key: karpv1.StableLabel(r.Key), Operator: requirements.Operator(r.Operator), Values: r.Values})
	}
	required, wrong := requirements.All(all...)
	if wrong != nil {
		return nil, false
	}
	labels := maps.Clone(pool.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[karpv1.LabelNodePool] = pool.Name
	labels[awsv1.LabelNodeClass] = pool.Spec.Template.Spec.NodeClassRef.Name
	return required.And(requirements.Exactly(labels)), true
}

// assumedBy returns, by instance type, the prices that are set by overlays whose only requirement names instance types.
// A type without an AWS price, for example a new one, can be launched only with such a price. Of several overlays, the
// one with the highest weight sets the price.
func assumedBy(overlays []catalog.Overlay) map[string]catalog.Price {
	out, weights := map[string]catalog.Price{}, map[string]int{}
	for _, o := range overlays {
		names, ok := o.Requirements[catalog.LabelInstanceType]
		namesTypes := ok && len(o.Requirements) == 1 && !names.Complement
		if !namesTypes || o.Price == nil || o.Price.How != catalog.SetPrice {
			continue
		}
		for _, name := range names.Listed {
			if weight, known := weights[name]; known && weight > o.Weight {
				continue
			}
			out[name], weights[name] = o.Price.Apply(0), o.Weight // 0: SetPrice ignores AWS's price
		}
	}
	return out
}
