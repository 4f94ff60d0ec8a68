package offerings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

const maxListedProblems = 3 // in the message of a condition

// Preflight has the problems that were found before a launch: problems of user data, and other causes that will keep
// nodes from joining.
type Preflight struct {
	Mode         string              // awsv1.PreflightEnforce, PreflightWarn or PreflightOff; empty: user data was not judged
	unknownMode  string              // the value of the annotation if it is not a known mode
	problems     []userdata.Problem  // the problems of user data, without duplicates
	Broken       Problem             // why user data cannot be rendered; the zero value if it can be rendered
	JoinFindings []diagnosis.Finding // other causes that will certainly keep nodes from joining
}

func preflightOf(class *awsv1.EC2NodeClass) Preflight {
	switch mode := class.Annotations[awsv1.AnnotationPreflight]; mode {
	case awsv1.PreflightWarn, awsv1.PreflightOff:
		return Preflight{Mode: mode}
	case "", awsv1.PreflightEnforce:
		return Preflight{Mode: awsv1.PreflightEnforce}
	default:
		return Preflight{Mode: awsv1.PreflightEnforce, unknownMode: mode}
	}
}

// renderProblem returns why user data cannot be rendered. It prefers the parser's message, which does not quote values
// that may be secret.
func renderProblem(in userdata.Input, err error) Problem {
	if known, ok := reading.MergeProblem(in); ok {
		return Problem{ReasonUserDataInvalid, known.String()}
	}
	return Problem{ReasonOf(err), err.Error()}
}

// add adds those problems of one AMI that p does not have yet.
func (p *Preflight) add(all []userdata.Problem) {
	for _, problem := range all {
		if !slices.Contains(p.problems, problem) {
			p.problems = append(p.problems, problem)
		}
	}
}

func (p Preflight) fatal() []userdata.Problem {
	return slices.DeleteFunc(slices.Clone(p.problems), func(problem userdata.Problem) bool { return !problem.IsFatal() })
}

// Write sets the condition PreflightPassed, on which Ready does not depend.
func (p Preflight) Write(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionPreflightPassed
	reported := slices.DeleteFunc(slices.Clone(p.problems), func(u userdata.Problem) bool { return u.Certainty == userdata.Possible })
	switch {
	case p.Mode == "":
	case p.Broken.Reason != "":
		c.SetFalse(now, condition, p.Broken.Reason, fix.Visible(p.Broken.Message))
	case p.unknownMode != "":
		c.SetFalse(now, condition, awsv1.ReasonPreflightInvalid, fmt.Sprintf("the annotation %s must be %s, %s or %s: its present value counts as %s",
			awsv1.AnnotationPreflight, awsv1.PreflightEnforce, awsv1.PreflightWarn, awsv1.PreflightOff, awsv1.PreflightEnforce))
	case p.Mode == awsv1.PreflightOff:
		c.Remove(condition)
	case len(p.JoinFindings) > 0:
		c.SetFalse(now, condition, poolhealth.ReasonOfCheck(p.JoinFindings[0].Check), p.causes())
	case len(reported) > 0:
		c.SetFalse(now, condition, string(reported[0].Kind), ProblemsText(reported))
	default:
		c.SetTrue(now, condition)
	}
}

// causes lists the causes that keep nodes from joining, without findings that follow from other findings.
func (p Preflight) causes() string {
	var texts []string
	for _, f := range p.JoinFindings {
		if f.Follows == "" && len(texts) < maxListedProblems {
			texts = append(texts, loop.FindingText(f))
		}
	}
	if len(texts) == 0 {
		texts = append(texts, loop.FindingText(p.JoinFindings[0]))
	}
	return strings.Join(texts, "; ")
}

// ProblemsText lists the first maxListedProblems problems, and counts the others.
func ProblemsText(all []userdata.Problem) string {
	var texts []string
	for _, problem := range all[:min(len(all), maxListedProblems)] {
		texts = append(texts, fix.Visible(problem.String()))
	}
	out := strings.Join(texts, "; ")
	if more := len(all) - maxListedProblems; more > 0 {
		out += fmt.Sprintf("; and %d more: joiner render userdata lists all", more)
	}
	return out
}

// Problem is a problem of a class that keeps launches from succeeding, as a condition of the class.
type Problem struct {
	Reason  string // reason of the condition; empty: no problem
	Message string // message of the condition
}

// ProbeClaim returns a claim with which user data can be rendered before there is a real claim.
func ProbeClaim() *karpv1.NodeClaim {
	probe := &karpv1.NodeClaim{}
	probe.Labels = requirements.Labels{karpv1.LabelNodePool: "probe"}
	return probe
}
