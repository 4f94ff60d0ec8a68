package bootstrap_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

var documents = []string{
	// Valid.
	settings,
	"", "# nothing\n", "\t\n", "[a]\n", "a = 1", "a=1#c", "[a.b]\nc = true\n[a]\nd = false", "a.b.c = 1\na.b.d = 2",
	"a = +1_000\nb = 0xdead_beef\nc = 0o17\nd = 0b1\ne = -0", "a = 1.5e-3\nb = inf\nc = -nan\nd = 1e5",
	"a = 1979-05-27T07:32:00Z\nb = 07:32:00\nc = 1979-05-27",
	`a = "x\ty \u00e9 \" \\"`, `a = 'C:\x'`, "a = \"\"\"\nx \\\n   y\"\"\"\"\"", "a = '''x'y''z'''", `"a b".c = 1`, `"" = 1`, `'q' = 1`,
	"a = []", "a = [1, 2, ]", "a = [[1], ['x', \"y\"], # c\n {b = 1}\n]", "a = {}", "a = { b = 1, c.d = 'x' }", "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3",
	"a = 9223372036854775807", "[a]\nb.c = 1\nb.d = 2\n[a.e]",

	// Invalid.
	"a", "a =", "= 1", "a = b", "a = yes", "a = 01", "a = 1_", "a = .5", "a = 1.", "a = tRue",
	"a = 9223372036854775808", "a = 1 2", "a = 1979-05",
	`a = "x`, `a = "\ud800"`, `a = "\u12"`, "a = \"x\ny\"", "a = \"\"\"x", "a = 'x", "a = \"\x01\"", `a = "\ x"`,
	"a = [1", "a = [1 2]", "a = [,]", "a = [1,,2]", "a = [b]", "a = { b = 1", "a = { b }", "a = { b = 1 } c",
	"[a", "[a]]", "[[a]", "[]", "[a.]", "[a] b", "a. = 1", "\"\"\"a\"\"\" = 1", "a b = 1",
	"a = 1\na = 2", "[a]\n[a]", "a = 1\n[a]", "[a]\nb = 1\n[a.b]", "a.b = 1\na = 2", "a = 1\na.b = 2",
	"[a.b]\n[a]\nb = 1", "[a]\nb.c = 1\n[a.b]",
	"[[a]]\n[a]", "[a]\n[[a]]", "a = {b = 1}\na.c = 2", "a = {b = 1}\n[a.c]", "a = {b = 1, b = 2}", "a = {b = 1, b.c = 2}",
	"a = []\n[[a]]", "[a.b]\nc = 1\n[a]\nb.d = 2",
	"\xff = 1", "a = \"\xff\"",
}

// TestTOML: UserData accepts the same TOML texts as go-toml, and keeps the user's settings.
func TestTOML(t *testing.T) {
	t.Parallel()
	for _, text := range documents {
		compareWithGoTOML(t, text)
		_, err := bootstrap.UserData(withUserData(minimalNode(catalog.Bottlerocket), text))
		if goTOMLErr := toml.Unmarshal([]byte(text), &map[string]any{}); err != nil && goTOMLErr == nil {
			t.Errorf("rejected (%v), but go-toml accepts the text:\n%s", err, text)
		}
	}
}

// TestTOML11 checks that additions of TOML 1.1 are rejected, because Bottlerocket's parser may not know them.
func TestTOML11(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`a = "\x41"`, `a = "\e"`, "a = { b = 1, }", "a = {\nb = 1 }"} {
		if _, err := bootstrap.UserData(withUserData(minimalNode(catalog.Bottlerocket), text)); err == nil {
			t.Errorf("accepted, want an error:\n%s", text)
		}
	}
}

// TestMissingTable: if the user's text has another value where Joiner needs a table, the error asks for a table.
func TestMissingTable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"settings = 1", "settings.kubernetes = 'x'", "[[settings]]", "[[settings.kubernetes]]",
		"settings.kubernetes.node-labels = []"} {
		_, err := bootstrap.UserData(withUserData(minimalNode(catalog.Bottlerocket), text))
		if err == nil || !strings.Contains(err.Error(), "spec.userData") || !strings.Contains(err.Error(), "must be a table") {
			t.Errorf("%q: %v, want an error that spec.userData must have a table", text, err)
		}
	}
}

// FuzzTOML looks for texts that UserData and go-toml read differently.
func FuzzTOML(f *testing.F) {
	for _, text := range documents {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { compareWithGoTOML(t, text) })
}

// compareWithGoTOML checks that go-toml accepts text if UserData accepts it, and that the generated user data has the
// same settings as text. UserData may reject a text that go-toml accepts, because go-toml also accepts TOML 1.1.
func compareWithGoTOML(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "settings") && text != settings {
		return // Joiner may override or reject these settings
	}
	var want map[string]any
	goTOMLErr := toml.Unmarshal([]byte(text), &want)
	got, err := bootstrap.UserData(withUserData(minimalNode(catalog.Bottlerocket), text))
	switch {
	case err == nil && goTOMLErr != nil:
		t.Errorf("accepted, but go-toml returns the error %v:\n%s", goTOMLErr, text)
		return
	case err != nil:
		if !strings.Contains(err.Error(), "spec.userData") {
			t.Errorf("the error does not name spec.userData: %v", err)
		}
		return
	}
	var generated map[string]any
	if err := toml.Unmarshal(got, &generated); err != nil {
		t.Errorf("the generated text is invalid: %v\n%s\ngenerated from:\n%s", err, got, text)
		return
	}
	delete(generated, "settings")
	delete(want, "settings")
	if diff := cmp.Diff(withoutEmptyTables(want), withoutEmptyTables(generated), equalFloats); diff != "" {
		t.Errorf("the user's settings have changed (-want +got):\n%s\nthe user's text:\n%s", diff, text)
	}
}

var equalFloats = cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })

// withoutEmptyTables returns the value without empty tables, which are left out of the generated text.
func withoutEmptyTables(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			if table, ok := withoutEmptyTables(item).(map[string]any); ok && len(table) == 0 {
				continue
			}
			out[key] = withoutEmptyTables(item)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, withoutEmptyTables(item))
		}
		return out
	}
	return value
}
