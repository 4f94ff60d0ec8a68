package consolidation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Side names the controller that runs on a fleet.
type Side string

// The sides.
const (
	Joiner   Side = "joiner"
	Upstream Side = "upstream"
)

// ResultFolder is the path of a folder with results, one file per fleet and side, so that a report can combine several
// runs. The zero value stores nothing.
type ResultFolder string

// load returns the stored result of a fleet and side; false if none is stored.
func (r ResultFolder) load(fleet string, side Side) (Outcome, bool, error) {
	var out Outcome
	if r == "" {
		return out, false, nil
	}
	data, err := os.ReadFile(r.file(fleet, side))
	if errors.Is(err, fs.ErrNotExist) {
		return out, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return out, false, fmt.Errorf("read the stored result of %s for fleet %s: %w", side, fleet, err)
	}
	return out, true, nil
}

func (r ResultFolder) save(fleet string, side Side, o Outcome) error {
	if r == "" {
		return nil
	}
	data, err := json.MarshalIndent(o, "", "\t")
	if err == nil {
		err = os.MkdirAll(string(r), 0o755)
	}
	if err == nil {
		err = os.WriteFile(r.file(fleet, side), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("store the result of %s for fleet %s: %w", side, fleet, err)
	}
	return nil
}

func (r ResultFolder) file(fleet string, side Side) string {
	return filepath.Join(string(r), fmt.Sprintf("%s.%s.json", fleet, side))
}
