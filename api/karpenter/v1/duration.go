package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Never is the text of a duration without end.
const Never = "Never"

// Longest replaces durations that time.Duration cannot hold, such as 9999999h. The schema of the API accepts them, and one object
// that could not be decoded would keep the controller from listing all objects of its kind.
const Longest = 100 * 365 * 24 * time.Hour

// passes matches the durations that the schema of the API accepts.
var passes = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// parse reads a duration in Go's notation.
func parse(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil && passes.MatchString(text) {
		return Longest, nil
	}
	return d, err
}

// Duration is a finite duration, written in Go's notation.
//
// +kubebuilder:validation:Type=string
type Duration struct {
	time.Duration
}

// UnmarshalJSON reads a duration in Go's notation.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	err := json.Unmarshal(data, &text)
	if err == nil {
		d.Duration, err = parse(text)
	}
	if err != nil {
		return fmt.Errorf("read duration: want a text such as \"30m\": %w", err)
	}
	return nil
}

// MarshalJSON writes Go's notation.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ToUnstructured returns the value of MarshalJSON for the converter to unstructured objects.
func (d Duration) ToUnstructured() any { return d.String() }

// NillableDuration is a duration that can be "Never".
//
// The zero value is Never. A value that was read keeps the text it was read from, so that writing it back does not turn
// 72h into 72h0m0s and make GitOps tools see a difference.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
type NillableDuration struct {
	// Duration is nil for Never.
	*time.Duration
	// Raw is the JSON that the value was read from, quotes included; nil when it was not read, or is Never.
	Raw []byte `hash:"ignore"`
}

// After is the duration d.
func After(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// IsNever reports whether the duration has no end.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// String is the text of the manifest when there is one, else Go's notation, or Never.
func (d NillableDuration) String() string {
	var text string
	if d.Raw != nil && json.Unmarshal(d.Raw, &text) == nil {
		return text
	}
	if d.Duration == nil {
		return Never
	}
	return d.Duration.String()
}

// Equal reports whether both last equally long, however they are written.
func (d NillableDuration) Equal(other NillableDuration) bool {
	if d.Duration == nil || other.Duration == nil {
		return d.Duration == other.Duration
	}
	return *d.Duration == *other.Duration
}

// UnmarshalJSON reads a duration in Go's notation, or Never.
func (d *NillableDuration) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("read duration: want a text such as \"30m\" or %q: %w", Never, err)
	}
	if text == Never {
		*d = NillableDuration{}
		return nil
	}
	parsed, err := parse(text)
	if err != nil {
		return fmt.Errorf("read duration: want a text such as \"30m\" or %q: %w", Never, err)
	}
	*d = NillableDuration{Duration: &parsed, Raw: bytes.Clone(data)}
	return nil
}

// MarshalJSON writes the text that was read, else Go's notation, or Never.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Raw != nil {
		return d.Raw, nil
	}
	return json.Marshal(d.String())
}

// ToUnstructured returns the value of MarshalJSON for the converter to unstructured objects.
func (d NillableDuration) ToUnstructured() any { return d.String() }
