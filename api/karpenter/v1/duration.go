package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Never is the text of an infinite duration.
const Never = "Never"

// Longest is the result of decoding a duration that exceeds time.Duration, such as 9999999h. The schema of the API
// accepts such durations, and one object that cannot be decoded would make listing all objects of its kind fail. Two of
// these durations can be added without overflow.
const Longest = 100 * 365 * 24 * time.Hour

// schemaPattern matches the durations that the schema of the API accepts.
var schemaPattern = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// parseDuration reads a duration in Go's notation. It returns Longest for a duration that exceeds time.Duration.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil && schemaPattern.MatchString(text) {
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
		d.Duration, err = parseDuration(text)
	}
	if err != nil {
		return fmt.Errorf("read duration: want a text such as \"30m\": %w", err)
	}
	return nil
}

// MarshalJSON writes the duration in Go's notation.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ToUnstructured returns the value of MarshalJSON for the converter to unstructured objects.
func (d Duration) ToUnstructured() any { return d.String() }

// NillableDuration is a duration that can be "Never".
//
// The zero value is Never. A value that was decoded keeps its original text. Otherwise encoding would turn 72h into
// 72h0m0s, and GitOps tools would report a difference.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
type NillableDuration struct {
	// Duration is nil for Never.
	*time.Duration
	// Raw is the JSON that the value was decoded from, quotes included. It is nil for Never, and for a value that was
	// not decoded.
	Raw []byte `hash:"ignore"`
}

// After returns the duration d as a NillableDuration.
func After(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// IsNever reports whether the duration is infinite.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// String returns the text that the value was decoded from. Without such a text, String returns Never or Go's notation.
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

// Equal reports whether both durations have the same length, regardless of their spelling.
func (d NillableDuration) Equal(other NillableDuration) bool {
	if d.Duration == nil || other.Duration == nil {
		return d.Duration == other.Duration
	}
	return *d.Duration == *other.Duration
}

// UnmarshalJSON reads a duration in Go's notation, or Never. null leaves d unchanged, as usual in encoding/json.
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
	parsed, err := parseDuration(text)
	if err != nil {
		return fmt.Errorf("read duration: want a text such as \"30m\" or %q: %w", Never, err)
	}
	*d = NillableDuration{Duration: &parsed, Raw: bytes.Clone(data)}
	return nil
}

// MarshalJSON writes the text that the value was decoded from. Without such a text, MarshalJSON writes Never or Go's
// notation.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Raw != nil {
		return d.Raw, nil
	}
	return json.Marshal(d.String())
}

// ToUnstructured returns the value of MarshalJSON for the converter to unstructured objects.
func (d NillableDuration) ToUnstructured() any { return d.String() }
