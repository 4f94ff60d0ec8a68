package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// maxSentences is how many problems a condition lists; the others are counted.
const maxSentences = 3

// preflight holds the problems found before a launch: in user data, and in everything that nodes need to join.
type preflight struct {
	mode     string // awsv1.PreflightEnforce, …
	odd      string // the value of the annotation if it is no known mode
	problems []userdata.Problem
	broken   problem             // why user data cannot be rendered
	ahead    []diagnosis.Finding // other causes that are certain to keep nodes from joining
}

// preflightOf reads the preflight mode of the class.
func preflightOf(class *awsv1.EC2NodeClass) preflight {
	switch mode := class.Annotations[awsv1.AnnotationPreflight]; mode {
	case awsv1.PreflightWarn, awsv1.PreflightOff:
		return preflight{mode: mode}
	case "", awsv1.PreflightEnforce:
		return preflight{mode: awsv1.PreflightEnforce}
	default:
		return preflight{mode: awsv1.PreflightEnforce, odd: mode}
	}
}

// unwritable returns why user data cannot be rendered. It prefers the parser's
// message, which does not quote values that may be secret.
func unwritable(in userdata.Input, err error) problem {
	if known, ok := reading.Foreign(in); ok {
		return problem{reasonUserDataInvalid, known.String()}
	}
	return problem{reasonOf(err), err.Error()}
}

// add adds the problems of one AMI, without duplicates.
func (p *preflight) add(all []userdata.Problem) {
	for _, one := range all {
		if !slices.Contains(p.problems, one) {
			p.problems = append(p.problems, one)
		}
	}
}

// fatal returns the problems that are certain to keep every node from joining.
func (p preflight) fatal() []userdata.Problem {
	return slices.DeleteFunc(slices.Clone(p.problems), func(one userdata.Problem) bool { return !one.IsFatal() })
}

// write sets the PreflightPassed condition, on which Ready does not depend.
func (p preflight) write(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionPreflightPassed
	told := slices.DeleteFunc(slices.Clone(p.problems), func(one userdata.Problem) bool { return one.Certainty == userdata.Possible })
	switch {
	case p.mode == "":
	case p.broken.reason != "":
		c.SetFalse(now, condition, p.broken.reason, fix.Visible(p.broken.message))
	case p.odd != "":
		c.SetFalse(now, condition, awsv1.ReasonPreflightInvalid, fmt.Sprintf("the annotation %s has to be %s, %s or %s: it counts as %s",
			awsv1.AnnotationPreflight, awsv1.PreflightEnforce, awsv1.PreflightWarn, awsv1.PreflightOff, awsv1.PreflightEnforce))
	case p.mode == awsv1.PreflightOff:
		c.Remove(condition)
	case len(p.ahead) > 0:
		c.SetFalse(now, condition, reasonOfCheck(p.ahead[0].Check), p.causes())
	case len(told) > 0:
		c.SetFalse(now, condition, string(told[0].Kind), sentences(told))
	default:
		c.SetTrue(now, condition)
	}
}

// causes lists what keeps nodes from joining, without the consequences of other findings.
func (p preflight) causes() string {
	var texts []string
	for _, f := range p.ahead {
		if f.Follows == "" && len(texts) < maxSentences {
			texts = append(texts, sentence(f))
		}
	}
	if len(texts) == 0 {
		texts = append(texts, sentence(p.ahead[0]))
	}
	return strings.Join(texts, "; ")
}

// sentences lists the first few problems, and the number of the others.
func sentences(all []userdata.Problem) string {
	var texts []string
	for _, one := range all[:min(len(all), maxSentences)] {
		texts = append(texts, fix.Visible(one.String()))
	}
	out := strings.Join(texts, "; ")
	if more := len(all) - maxSentences; more > 0 {
		out += fmt.Sprintf("; and %d more: joiner render userdata tells them all", more)
	}
	return out
}

// problem is a mistake in the class itself, whatever AWS answers.
type problem struct{ reason, message string }

// probeClaim returns a claim to render user data for before there is a real one.
func probeClaim() *karpv1.NodeClaim {
	probe := &karpv1.NodeClaim{}
	probe.Labels = requirements.Labels{karpv1.LabelNodePool: "probe"}
	return probe
}
