package repocheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: the targets of links in documents exist, including headings.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(string(text), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: the target of link %s does not exist", file, m[1])
				continue
			}
			if anchor != "" && !info.IsDir() && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no heading #%s", file, target, anchor)
			}
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." &&
			(strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" || slices.Contains([]string{"testdata", "bin", "dist"}, d.Name())) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".md") {
			out = append(out, file)
		}
		return nil
	})
	if err != nil || len(out) < 10 {
		t.Fatalf("the Markdown files are %v (%v), want at least 10", out, err)
	}
	return out
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors returns the link anchors of the headings of a document.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	isFenced := false
	for line := range strings.Lines(string(text)) {
		isFenced = isFenced != strings.HasPrefix(strings.TrimSpace(line), "```") // each fence begins or ends a block
		if title := strings.TrimLeft(line, "#"); !isFenced && title != line && strings.HasPrefix(title, " ") {
			out = append(out, strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	}
	return out
}
