package world

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Template is a launch template.
type Template struct {
	ID        string            // "lt-0…"
	Name      string            // unique in the region; 3 to 128 characters
	CreatedAt time.Time         // creation time
	CreatedBy string            // ARN of the caller that created the template
	Tags      map[string]string // of the template itself; nil: none
	Versions  []TemplateVersion // sorted by number; the first is $Default, the last is $Latest

	idempotency Idempotency // of the call that created the template
}

// LaunchTemplates has the launch templates of a region.
type LaunchTemplates struct {
	region *Region
	byID   map[string]*Template
}

// TemplateVersion is one version of a launch template.
type TemplateVersion struct {
	Number      int64        // counts from 1
	Description string       // free text; empty: none
	CreatedAt   time.Time    // creation time
	Data        TemplateData // launch parameters
}

// Idempotency identifies a repeated call. Calls with the same token are executed only once; they must have the same
// fingerprint. Calls without a token are independent.
type Idempotency struct {
	Token       string // chosen by the caller; empty: none
	Fingerprint string // hash of all parameters
}

// Create creates a launch template with one version. A repeated call returns the template of the first call.
func (lt *LaunchTemplates) Create(now time.Time, t Template, v TemplateVersion, idempotency Idempotency) (*Template, error) {
	for _, known := range lt.byID {
		if idempotency.Token == "" || known.idempotency.Token != idempotency.Token {
			continue
		}
		if known.idempotency != idempotency {
			return nil, failure.Mismatch()
		}
		return known, nil
	}
	if len(t.Name) < 3 || len(t.Name) > 128 {
		return nil, failure.New("InvalidLaunchTemplateName.MalformedException", "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the following characters: - ( ) . / _.")
	}
	if lt.ByIDOrName("", t.Name) != nil {
		return nil, failure.New("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	if err := v.Data.checkUserData("InvalidUserData.Malformed"); err != nil {
		return nil, err
	}
	t.ID, t.idempotency = lt.region.site.IDs.New("lt"), idempotency
	t.CreatedAt, v.CreatedAt, v.Number = now, now, 1
	t.Versions = []TemplateVersion{v}
	t.Tags = maps.Clone(t.Tags)
	lt.byID[t.ID] = &t
	return &t, nil
}

// ByIDOrName returns a launch template by id, or by name if the id is empty; nil if it does not exist.
func (lt *LaunchTemplates) ByIDOrName(id, name string) *Template {
	if id != "" {
		return lt.byID[id]
	}
	for _, t := range lt.byID {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// All returns the launch templates of the region, oldest first.
func (lt *LaunchTemplates) All() []*Template {
	return slices.SortedFunc(maps.Values(lt.byID), func(a, b *Template) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// Delete deletes a launch template, by id or by name. Instances launched from it continue to run.
func (lt *LaunchTemplates) Delete(id, name string) (*Template, error) {
	t, err := lt.Find(id, name)
	if err != nil {
		return nil, err
	}
	delete(lt.byID, t.ID)
	return t, nil
}

// Version returns a version by number, "$Latest" or "$Default"; empty stands for "$Default".
func (t *Template) Version(version string) (TemplateVersion, error) {
	switch version {
	case "$Latest":
		return t.Versions[len(t.Versions)-1], nil
	case "", "$Default":
		return t.Versions[0], nil
	}
	for _, v := range t.Versions {
		if strconv.FormatInt(v.Number, 10) == version {
			return v, nil
		}
	}
	return TemplateVersion{}, failure.New("InvalidLaunchTemplateId.VersionNotFound",
		"Could not find launch template version %s of launch template %s", version, t.ID)
}

// Find returns the launch template that a call names by id or by name. It returns EC2's error if the call has both or
// neither, or if the template does not exist.
func (lt *LaunchTemplates) Find(id, name string) (*Template, error) {
	if id == "" && name == "" {
		return nil, failure.New("MissingParameter", "Either a launch template ID or a launch template name must be specified in the request.")
	}
	if id != "" && name != "" {
		return nil, failure.New("InvalidParameterCombination", "The parameters launchTemplateId and launchTemplateName cannot be used together.")
	}
	t := lt.ByIDOrName(id, name)
	if t == nil && id != "" {
		return nil, failure.New("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	if t == nil {
		return nil, failure.New("InvalidLaunchTemplateName.NotFoundException",
			"At least one of the launch templates specified in the request does not exist.")
	}
	return t, nil
}

func (t *Template) latestNumber() string {
	return strconv.FormatInt(t.Versions[len(t.Versions)-1].Number, 10)
}
