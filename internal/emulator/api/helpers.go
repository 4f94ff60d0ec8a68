package api

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Tagging groups the tags of a request by resource type.
func Tagging(specs []world.TagSpecification) (world.Tagging, error) {
	out := world.Tagging{}
	for _, s := range specs {
		if s.Resource == "" {
			return nil, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter TagSpecification.ResourceType"}
		}
		if out[s.Resource] == nil {
			out[s.Resource] = map[string]string{}
		}
		for _, t := range s.Tags {
			if strings.HasPrefix(t.Key, "aws:") {
				return nil, &failure.Error{Code: "InvalidParameterValue", Message: "Tag keys starting with 'aws:' are reserved for internal use"}
			}
			out[s.Resource][t.Key] = t.Value
		}
	}
	return out, nil
}

// TagList returns tags as a list, sorted by key.
func TagList(tags map[string]string) []world.Tag {
	out := make([]world.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, world.Tag{Key: k, Value: tags[k]})
	}
	return out
}

// Fingerprint returns a hash of the request's parameters without those of its signature. Their order has no effect.
func (c *Call) Fingerprint() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.Form)) {
		if strings.HasPrefix(name, "X-Amz-") {
			continue
		}
		h.Write([]byte(name + "=" + strings.Join(c.Form[name], ",") + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Or returns the text, or the fallback if the text is empty.
func Or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// BoolValues returns a boolean as the value of a filter.
func BoolValues(b bool) []string {
	if b {
		return []string{"true"}
	}
	return []string{"false"}
}

// TagMap returns a list of tags as a map.
func TagMap(tags []world.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[t.Key] = t.Value
	}
	return out
}

// MissingParameter returns IAM's error for a missing parameter.
func MissingParameter(name string) error {
	return &failure.Error{Code: "ValidationError", Message: "1 validation error detected: Value at '" + name +
		"' failed to satisfy constraint: Member must not be null"}
}

// Epoch returns a time in the format of the JSON protocols: seconds since 1970, with milliseconds.
func Epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
