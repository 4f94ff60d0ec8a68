package nodestate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// policyAnnotation describes an annotation of a NodePool that sets a part of its disruption policy.
type policyAnnotation struct {
	read   func(value string, p *disruption.Policy) error // parses the value into the policy
	blocks []disruption.Reason                            // the disruption that an invalid value blocks
}

// policyAnnotations returns the known policy annotations by key, without karpv1.AnnotationPaused.
func policyAnnotations() map[string]policyAnnotation {
	underutilized, drifted := []disruption.Reason{disruption.Underutilized}, []disruption.Reason{disruption.Drifted}
	driftedAndUnderutilized := []disruption.Reason{disruption.Drifted, disruption.Underutilized}
	return map[string]policyAnnotation{
		karpv1.AnnotationMinimumSaving:   {readSaving, underutilized},
		karpv1.AnnotationMinimumLifetime: {readLifetime, driftedAndUnderutilized},
		karpv1.AnnotationMaximumMoves: {func(v string, p *disruption.Policy) (err error) {
			p.MovesPerHour, err = readCount(v)
			return err
		}, driftedAndUnderutilized},
		karpv1.AnnotationDrift:       {readDrift, drifted},
		karpv1.AnnotationDriftIgnore: {readIgnored, drifted},
		karpv1.AnnotationDriftCanary: {func(v string, p *disruption.Policy) (err error) {
			p.Canary, err = readCount(v)
			return err
		}, drifted},
		karpv1.AnnotationDriftWave: {readWave, drifted},
	}
}

func readAnnotations(annotations map[string]string, now time.Time, p *disruption.Policy) {
	readPause(annotations, now, p)
	known := policyAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, "joiner.sh/") || slices.Contains(otherAnnotations(), key) {
			continue
		}
		annotation, ok := known[key]
		if !ok {
			p.Problems = append(p.Problems, unknownAnnotation(key, known))
			continue
		}
		if err := annotation.read(strings.TrimSpace(annotations[key]), p); err != nil {
			p.Problems = append(p.Problems, disruption.Problem{Field: key, Text: err.Error(), Reasons: annotation.blocks})
		}
	}
}

// otherAnnotations returns the joiner.sh annotations of NodePools that policyAnnotations does not have on purpose.
func otherAnnotations() []string {
	return []string{karpv1.AnnotationPaused, karpv1.KeyClusterUID, AnnotationDriftAllow, AnnotationDriftState, kubeclient.AnnotationFailed}
}

// unknownAnnotation returns the problem of an annotation with an unknown key. If the key resembles a known one, the
// problem blocks the same disruption as an invalid value of the known annotation.
func unknownAnnotation(key string, known map[string]policyAnnotation) disruption.Problem {
	nearest := suggest.Nearest(key, karpv1.PolicyAnnotations())
	out := disruption.Problem{
		Field:   key,
		Text:    "there is no such annotation" + suggest.Hint(key, karpv1.PolicyAnnotations()),
		Reasons: known[nearest].blocks,
	}
	if nearest == karpv1.AnnotationPaused {
		out.Reasons = voluntaryReasons()
	}
	return out
}

// readPause reads whether the pool is paused. A value that cannot be parsed also pauses the pool, because the user
// intended a pause.
func readPause(annotations map[string]string, now time.Time, p *disruption.Policy) {
	value, ok := annotations[karpv1.AnnotationPaused]
	if !ok {
		return
	}
	until, isPaused, err := loop.PauseOf(value, now)
	if err != nil {
		p.Problems = append(p.Problems, disruption.Problem{Field: karpv1.AnnotationPaused, Text: err.Error()})
	}
	if isPaused {
		p.Paused, p.PausedUntil = "annotation "+karpv1.AnnotationPaused+" of the NodePool", until
	}
}

// readSaving parses the minimum saving of a move: dollars per hour ("$0.05"), or a share of the price ("10%").
func readSaving(value string, p *disruption.Policy) error {
	if digits, ok := strings.CutSuffix(value, "%"); ok {
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n >= 0 && n <= 100) { // also true for NaN
			return fmt.Errorf("%q is not a percentage from 0%% to 100%%", value)
		}
		p.MinSavingShare = n / 100
		return nil
	}
	digits, ok := strings.CutPrefix(value, "$")
	if !ok {
		return fmt.Errorf("%q is not an amount per hour such as $0.05, and not a percentage such as 10%%", value)
	}
	price, err := catalog.ParsePrice(digits)
	if err != nil || price < 0 {
		return fmt.Errorf("%q is not an amount per hour such as $0.05", value)
	}
	p.MinSaving = price
	return nil
}

// readLifetime parses the age that a node must have before it is disrupted.
func readLifetime(value string, p *disruption.Policy) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration such as 1h30m", value)
	}
	p.MinLifetime = d
	return nil
}

func readCount(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a whole number above 0", value)
	}
	return n, nil
}

// readDrift parses whether drifted nodes are replaced, or only reported (observe).
func readDrift(value string, p *disruption.Policy) error {
	if value != "observe" && value != "replace" {
		return fmt.Errorf("%q is not observe or replace", value)
	}
	p.ObserveDrift = value == "observe"
	return nil
}

// readWave parses how many drifted nodes are replaced at once: a number or a percentage.
func readWave(value string, p *disruption.Policy) error {
	n, _, err := disruption.ParseNodes(value)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("a wave of 0 nodes would replace no node: use joiner.sh/drift: observe instead")
	}
	p.Wave = value
	return nil
}

// readIgnored parses a list of fields, separated by commas. Known fields are ignored for drift even if others in the
// list are unknown.
func readIgnored(value string, p *disruption.Policy) error {
	var unknown []string
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		field, ok := drift.FieldOf(word)
		if !ok {
			// The hint is for the last name in a path such as spec.role.
			unknown = append(unknown, strconv.Quote(word)+suggest.Hint(word[strings.LastIndexByte(word, '.')+1:], drift.Fields()))
			continue
		}
		p.IgnoreDrift = append(p.IgnoreDrift, field)
	}
	slices.Sort(p.IgnoreDrift)
	p.IgnoreDrift = slices.Compact(p.IgnoreDrift)
	if len(unknown) > 0 {
		return fmt.Errorf("%s is not a field of the NodePool's template or the EC2NodeClass whose change makes nodes drift",
			strings.Join(unknown, ", "))
	}
	return nil
}
