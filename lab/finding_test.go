package lab_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joiner-sh/joiner/lab"
)

// found is a finding in the format of joiner doctor -o json.
type found struct{ Check, Verdict, Cause string }

// firstFinding returns the first finding of joiner doctor.
func firstFinding(ctx context.Context, l *lab.Lab, joiner string) (found, error) {
	printed, _, err := l.Doctor(ctx, joiner, "-o", "json")
	if err != nil {
		return found{}, err
	}
	var report struct{ Findings []found }
	if err := json.Unmarshal([]byte(printed), &report); err != nil || len(report.Findings) == 0 {
		return found{}, fmt.Errorf("read %q: %w", printed, err)
	}
	return report.Findings[0], nil
}
