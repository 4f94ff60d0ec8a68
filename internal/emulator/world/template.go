package world

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Template is a launch template.
type Template struct {
	ID        string // "lt-0…"
	Name      string
	CreatedAt time.Time
	CreatedBy string // ARN
	Tags      map[string]string
	Versions  []TemplateVersion // number 1 first; the last is $Latest

	once Idempotency
}

// TemplateVersion is one version of a launch template.
type TemplateVersion struct {
	Number      int64
	Description string
	CreatedAt   time.Time
	Data        TemplateData
}

// Idempotency is how a caller makes sure that a call is carried out once: calls
// of one token are one call, and must have the same fingerprint. Without a token
// every call is its own.
type Idempotency struct {
	Token       string
	Fingerprint string // of all parameters
}

// CreateTemplate makes a launch template with one version.
func (r *Region) CreateTemplate(now time.Time, t Template, v TemplateVersion, once Idempotency) (*Template, error) {
	for _, known := range r.templates {
		if once.Token == "" || known.once.Token != once.Token {
			continue
		}
		if known.once != once {
			return nil, mismatch()
		}
		return known, nil
	}
	if len(t.Name) < 3 || len(t.Name) > 128 {
		return nil, refuse("InvalidLaunchTemplateName.MalformedException", "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the following characters: - ( ) . / _.")
	}
	if r.Template("", t.Name) != nil {
		return nil, refuse("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	if err := v.Data.checkUserData("InvalidUserData.Malformed"); err != nil {
		return nil, err
	}
	t.ID, t.once = r.world().NewID("lt"), once
	t.CreatedAt, v.CreatedAt, v.Number = now, now, 1
	t.Versions = []TemplateVersion{v}
	t.Tags = maps.Clone(t.Tags)
	r.templates[t.ID] = &t
	return &t, nil
}

// Template returns a launch template by id, or by name if the id is empty; nil if there is none.
func (r *Region) Template(id, name string) *Template {
	if id != "" {
		return r.templates[id]
	}
	for _, t := range r.templates {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Templates returns the launch templates of the region, oldest first.
func (r *Region) Templates() []*Template {
	return slices.SortedFunc(maps.Values(r.templates), func(a, b *Template) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// DeleteTemplate removes a launch template, by id or by name; instances made from it live on.
func (r *Region) DeleteTemplate(id, name string) (*Template, error) {
	t, err := r.FindTemplate(id, name)
	if err != nil {
		return nil, err
	}
	delete(r.templates, t.ID)
	return t, nil
}

// Version returns a version by number, "$Latest" or "$Default"; empty is the default.
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
	return TemplateVersion{}, refuse("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s of launch template %s", version, t.ID)
}

// FindTemplate finds a launch template that a call names, by id or by name.
func (r *Region) FindTemplate(id, name string) (*Template, error) {
	if id == "" && name == "" {
		return nil, refuse("MissingParameter", "Either a launch template ID or a launch template name must be specified in the request.")
	}
	if id != "" && name != "" {
		return nil, refuse("InvalidParameterCombination", "The parameters launchTemplateId and launchTemplateName cannot be used together.")
	}
	t := r.Template(id, name)
	if t == nil && id != "" {
		return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	if t == nil {
		return nil, refuse("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
	}
	return t, nil
}

// latest returns the number of the last version.
func (t *Template) latest() string {
	return strconv.FormatInt(t.Versions[len(t.Versions)-1].Number, 10)
}
