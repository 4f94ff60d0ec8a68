package nodeclass

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Problems returns the findings of a check about user data.
func Problems(ix *index.Index, id string) []diagnosis.Finding {
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.UserData.Value {
		if p.ID != id {
			continue
		}
		f := diagnosis.ReportBroken("EC2NodeClass "+p.Class, p.Certainty, "%s", p.Sentence)
		if p.Certainty != diagnosis.Certain {
			f.Verdict = diagnosis.Suspicious
		}
		f = f.With(p.Where).Explaining(diagnosis.ScriptFailed)
		if p.Fix != "" && !p.Corrected {
			f = f.With("the line should be: " + p.Fix)
		}
		out = append(out, f.FixedBy(fixOf(ix, p)))
	}
	return out
}

// correctUserData is the step that corrects the user data of an EC2NodeClass. User data may hold secrets, so the
// evidence does not contain it, and joiner correct writes the patch when the user runs the step.
func correctUserData(ix *index.Index, class string, options ...fix.Value) fix.Step {
	if ix.Evidence.Name != "" {
		options = append([]fix.Value{fix.Text("--cluster-name"), fix.ClusterName(ix.Evidence.Name)}, options...)
	}
	return fix.Correct(class, options...)
}

// isCorrected reports whether joiner correct corrects all problems that a check has found in the user data of a class.
func isCorrected(ix *index.Index, class, check string) bool {
	all := false
	for _, p := range ix.Evidence.UserData.Value {
		if p.Class == class && p.ID == check {
			if all = p.Corrected; !all {
				return false
			}
		}
	}
	return all
}

// fixOf is the step that corrects a problem of user data, or asks the user to edit it.
func fixOf(ix *index.Index, p diagnosis.UserDataProblem) fix.Step {
	edit := fix.Edit(fix.NodeClass(p.Class))
	switch {
	case p.Corrected && p.Where+p.Fix == "":
		return correctUserData(ix, p.Class, fix.Text("--check"), fix.Check(p.ID))
	case p.Corrected:
		return correctUserData(ix, p.Class, fix.Text("--check"),
			fix.Check(p.ID)).With("%s", strings.TrimPrefix(strings.TrimSuffix(p.Where+": "+p.Fix, ": "), ": "))
	case p.Fix != "":
		return edit.With("the line of spec.userData should be: %s", p.Fix)
	}
	return edit.With("correct spec.userData, or remove the faulty part: %s", diagnosis.OrElse(p.Where, "the whole user data"))
}
