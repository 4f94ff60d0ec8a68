package diagnosis

import "time"

// Stamp formats a time for a finding, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// OrElse returns text; fallback if text is empty.
func OrElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// Plural returns ending, for a noun that names the elements of a list; empty if there is one element.
func Plural(list []string, ending string) string {
	if len(list) == 1 {
		return ""
	}
	return ending
}

// Singular returns ending, for a verb whose subject is the elements of a list; empty unless there is one element.
func Singular(list []string, ending string) string {
	if len(list) == 1 {
		return ending
	}
	return ""
}
