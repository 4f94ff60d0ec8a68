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

// Keep is the path of a folder with results, one file per fleet and side, so that a report can combine several runs.
// The zero value stores nothing.
type Keep string

// load returns the stored result of a fleet and side; false if none is stored.
func (k Keep) load(fleet string, by Side) (Outcome, bool, error) {
	var out Outcome
	if k == "" {
		return out, false, nil
	}
	data, err := os.ReadFile(k.file(fleet, by))
	if errors.Is(err, fs.ErrNotExist) {
		return out, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return out, false, fmt.Errorf("read the stored result of %s for fleet %s: %w", by, fleet, err)
	}
	return out, true, nil
}

// save stores the result of a fleet and side.
func (k Keep) save(fleet string, by Side, o Outcome) error {
	if k == "" {
		return nil
	}
	data, err := json.MarshalIndent(o, "", "\t")
	if err == nil {
		err = os.MkdirAll(string(k), 0o755)
	}
	if err == nil {
		err = os.WriteFile(k.file(fleet, by), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("store the result of %s for fleet %s: %w", by, fleet, err)
	}
	return nil
}

// file returns the path of the stored result of one side for one fleet.
func (k Keep) file(fleet string, by Side) string {
	return filepath.Join(string(k), fmt.Sprintf("%s.%s.json", fleet, by))
}
