package diagnosis

import "time"

// Stamp formats a time for a finding, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// OrElse returns the text, or otherwise if the text is empty.
func OrElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Plural returns s unless the list has one element: the ending of a noun.
func Plural(list []string, s string) string {
	if len(list) == 1 {
		return ""
	}
	return s
}

// Singular returns s if the list has one element: the ending of a verb.
func Singular(list []string, s string) string {
	if len(list) == 1 {
		return s
	}
	return ""
}
