package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joiner-sh/joiner/lab"
)

// finding is a finding in the format of joiner doctor -o json.
type finding struct{ Check, Verdict, Cause string }

// firstFinding returns the first finding of joiner doctor. joiner is the path of the program.
func firstFinding(ctx context.Context, l *lab.Lab, joiner string) (finding, error) {
	printed, _, err := l.Doctor(ctx, joiner, "-o", "json")
	if err != nil {
		return finding{}, err
	}
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(printed), &report); err != nil || len(report.Findings) == 0 {
		return finding{}, errors.Join(err, fmt.Errorf("no finding in %q", printed))
	}
	return report.Findings[0], nil
}
