package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// maxSentences is how many problems a condition tells; the rest is counted.
const maxSentences = 3

// preflight is what is wrong before anything is launched: with user data, and with all that nodes join by.
type preflight struct {
	mode     string // awsv1.PreflightEnforce, …
	odd      string // what the annotation says, if it is none of the modes
	problems []userdata.Problem
	broken   problem             // why user data cannot be written at all
	ahead    []diagnosis.Finding // what else is certain to keep nodes from joining
}

// preflightOf reads the mode that the class asks for.
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

// judgeUserData has user data written as for a launch, and read as the instance
// would, once for each image. The problem is what makes writing it impossible, or
// what is certain to keep every node from joining where that is enforced.
func (o *Offers) judgeUserData(class *awsv1.EC2NodeClass, images []ami.Image, version string) (preflight, problem) {
	p := preflightOf(class)
	if len(images) == 0 {
		images = []ami.Image{{}}
	}
	claim := probeClaim()
	for _, image := range images {
		in := userdata.Input{
			Family: class.Spec.ResolvedAMIFamily(), Image: image.Name, Arch: image.Arch, Version: version,
			Cluster: o.Cluster.Name, Endpoint: o.Cluster.Endpoint, CA: o.Cluster.CA,
		}
		set(&in.Own, class.Spec.UserData)
		data, err := bootstrap.UserData(o.node(claim, class, image, karpv1.CapacityTypeOnDemand, 110))
		if err != nil {
			p.broken = unwritable(in, err)
			return p, p.broken
		}
		if in.Family != catalog.Custom {
			in.Data = data
		}
		if p.mode != awsv1.PreflightOff {
			p.add(userdata.Read(in).Problems)
		}
	}
	for _, one := range p.problems {
		if one.IsFatal() && p.mode == awsv1.PreflightEnforce {
			return p, problem{reasonUserDataInvalid, sentences(p.fatal())}
		}
	}
	return p, problem{}
}

// unwritable says why user data cannot be written: in the reader's words, which
// repeat nothing that may be a secret, if it knows.
func unwritable(in userdata.Input, err error) problem {
	if known, ok := userdata.Foreign(in); ok {
		return problem{reasonUserDataInvalid, known.String()}
	}
	return problem{reasonOf(err), err.Error()}
}

// add adds the problems of one image. What is told of several images is told once.
func (p *preflight) add(all []userdata.Problem) {
	for _, one := range all {
		if !slices.Contains(p.problems, one) {
			p.problems = append(p.problems, one)
		}
	}
}

// fatal are the problems that are certain to keep every node from joining.
func (p preflight) fatal() []userdata.Problem {
	return slices.DeleteFunc(slices.Clone(p.problems), func(one userdata.Problem) bool { return !one.IsFatal() })
}

// write puts the outcome into a condition on which Ready does not stand.
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

// causes tells what keeps nodes from joining; what follows from another cause is not told.
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

// sentences tells the first few problems, and how many more there are.
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
