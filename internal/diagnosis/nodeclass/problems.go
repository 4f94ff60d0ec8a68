package nodeclass

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Problems returns the findings of the check with this ID, which is about user data.
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
		out = append(out, f.FixedBy(problemFix(ix, p)))
	}
	return out
}

// correctUserData is the step that corrects the user data of an EC2NodeClass. The patch is not part of the step,
// because user data may hold secrets: joiner correct writes the patch when the user runs the step.
func correctUserData(ix *index.Index, class string, options ...fix.Value) fix.Step {
	if ix.Evidence.Name != "" {
		options = append([]fix.Value{fix.Text("--cluster-name"), fix.ClusterName(ix.Evidence.Name)}, options...)
	}
	return fix.Correct(class, options...)
}

// isCorrectable reports whether a check has found problems in the user data of a class, and joiner correct corrects all
// of them.
func isCorrectable(ix *index.Index, class, check string) bool {
	corrected := false
	for _, p := range ix.Evidence.UserData.Value {
		if p.Class == class && p.ID == check {
			if corrected = p.Corrected; !corrected {
				return false
			}
		}
	}
	return corrected
}

// problemFix is the step that corrects a problem of user data, or that asks the user to edit the user data.
func problemFix(ix *index.Index, p diagnosis.UserDataProblem) fix.Step {
	edit := fix.Edit(fix.NodeClass(p.Class))
	switch {
	case p.Corrected && p.Where+p.Fix == "":
		return correctUserData(ix, p.Class, fix.Text("--check"), fix.Check(p.ID))
	case p.Corrected: // Where or Fix may be empty
		return correctUserData(ix, p.Class, fix.Text("--check"),
			fix.Check(p.ID)).With("%s", strings.TrimPrefix(strings.TrimSuffix(p.Where+": "+p.Fix, ": "), ": "))
	case p.Fix != "":
		return edit.With("the line of spec.userData should be: %s", p.Fix)
	}
	return edit.With("correct spec.userData, or remove the faulty part: %s", diagnosis.OrElse(p.Where, "the whole user data"))
}
