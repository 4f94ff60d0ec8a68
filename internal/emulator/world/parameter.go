package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Parameter is a parameter of Systems Manager.
type Parameter struct {
	Name       string    // "/aws/service/eks/…/image_id"
	Kind       string    // "String", "StringList" or "SecureString"
	Value      string    // never empty
	DataType   string    // "text" or "aws:ec2:image"
	Version    int64     // counts from 1
	ModifiedAt time.Time // when this version was stored
	ARN        string    // without an account for names below /aws/
}

// SSM has the Systems Manager parameters of a region.
type SSM struct {
	region     *Region
	parameters map[string]*Parameter // by name
}

// PutParameter sets a parameter and returns its new version. Without overwrite, an existing parameter is an error.
func (s *SSM) PutParameter(now time.Time, p Parameter, overwrite bool) (int64, error) {
	if p.Name == "" || p.Value == "" {
		return 0, failure.New("ValidationException", "1 validation error detected: a parameter needs a name and a value")
	}
	p.Version = 1
	if old := s.parameters[p.Name]; old != nil {
		if !overwrite {
			return 0, failure.New("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
		}
		p.Version = old.Version + 1
		p.Kind = cmp.Or(p.Kind, old.Kind)
	}
	p.Kind, p.DataType, p.ModifiedAt = cmp.Or(p.Kind, "String"), cmp.Or(p.DataType, "text"), now
	owner := s.region.Account.ID
	if strings.HasPrefix(p.Name, "/aws/") {
		owner = ""
	}
	p.ARN = s.region.ARN("ssm", owner, "parameter/"+strings.TrimPrefix(p.Name, "/"))
	s.parameters[p.Name] = &p
	return p.Version, nil
}

// Parameter returns a parameter by name or ARN.
func (s *SSM) Parameter(name string) (Parameter, error) {
	if p := s.parameters[name]; p != nil {
		return *p, nil
	}
	if _, after, ok := strings.Cut(name, ":parameter/"); ok {
		for _, candidate := range []string{"/" + after, after} { // ARNs omit the slash of a name
			if p := s.parameters[candidate]; p != nil {
				return *p, nil
			}
		}
	}
	return Parameter{}, failure.New("ParameterNotFound", "Parameter %s not found.", name)
}

// ParametersByPath returns the parameters directly below a path, sorted by name. If recursive is true, it returns the
// parameters at any depth below the path.
func (s *SSM) ParametersByPath(path string, recursive bool) []Parameter {
	path = strings.TrimSuffix(path, "/") + "/"
	var out []Parameter
	for _, name := range slices.Sorted(maps.Keys(s.parameters)) {
		rest, isBelow := strings.CutPrefix(name, path)
		if isBelow && (recursive || !strings.Contains(rest, "/")) {
			out = append(out, *s.parameters[name])
		}
	}
	return out
}

// DeleteParameter removes a parameter.
func (s *SSM) DeleteParameter(name string) error {
	if s.parameters[name] == nil {
		return failure.New("ParameterNotFound", "Parameter %s not found.", name)
	}
	delete(s.parameters, name)
	return nil
}
