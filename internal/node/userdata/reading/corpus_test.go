package reading_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected readings of the corpus")

// sample is one file of the corpus: its description, the known facts, user data, and the expected reading, separated by
// lines of dashes.
type sample struct {
	about, head string // the description, and the whole text before the first ruler
	input       userdata.Input
	pack        []string // changes of the user data before it is read, in order: see transform
	alone       bool     // the user data is read without Joiner's part
	body, want  string   // user data, and the expected reading
}

// ruler separates the sections of a file.
const ruler = "\n----\n"

func parse(t testing.TB, file string) sample {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, hasBody := strings.Cut(string(data), ruler)
	body, want, hasReading := strings.Cut(rest, ruler)
	if !hasBody || !hasReading && !*rewrite { // -rewrite adds a missing reading
		t.Fatalf("%s: want a head, user data and a reading, separated by lines of dashes", file)
	}
	s := sample{head: head, body: body, want: want}
	if !hasReading {
		s.body = strings.TrimSuffix(s.body, "----\n")
	}
	s.input = userdata.Input{Cluster: "prod", Endpoint: "https://ENDPOINT.example", Version: "1.33"}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "family":
			s.input.Family = value
		case "image":
			s.input.Image = value
		case "arch":
			s.input.Arch = value
		case "version":
			s.input.Version = value
		case "pack":
			s.pack = strings.Fields(value)
		case "alone":
			s.alone = true
		default:
			if !strings.HasPrefix(line, "#") {
				t.Fatalf("%s: unknown line %q", file, line)
			}
			s.about += line
		}
	}
	return s
}

// read reads the sample's user data, merged with Joiner's part unless the family is Custom or the sample is alone.
func (s sample) read(t *testing.T) string {
	t.Helper()
	s.input.Own = s.body
	for _, change := range s.pack {
		s.input.Own = transform(t, s.input.Own, change)
	}
	if s.input.Family != catalog.Custom && !s.alone {
		pods := int64(29)
		data, err := bootstrap.UserData(bootstrap.Node{
			Family: s.input.Family, UserData: s.input.Own, ImageName: s.input.Image,
			Cluster: bootstrap.Cluster{Name: "prod", Endpoint: "https://ENDPOINT.example", CA: "Q0E=",
				ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
			Kubelet: bootstrap.Kubelet{MaxPods: &pods}, Labels: requirements.Labels{"team": "a"},
		})
		if err != nil {
			return "cannot be merged: " + err.Error() + "\n"
		}
		s.input.Data = data
	}
	return formatReading(reading.Read(s.input))
}

func transform(t *testing.T, body, change string) string {
	t.Helper()
	switch change {
	case "base64":
		return base64.StdEncoding.EncodeToString([]byte(body))
	case "crlf":
		return strings.ReplaceAll(body, "\n", "\r\n")
	case "cut":
		return body[:len(body)-8]
	case "long":
		return body + strings.Repeat("# and so on\n", 1500)
	case "gzip":
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	t.Fatalf("unknown change %q", change)
	return ""
}

func formatReading(r userdata.Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "form: %s\n", r.Form)
	for _, v := range []struct {
		name  string
		value userdata.Value
	}{{"cluster", r.Cluster}, {"endpoint", r.Endpoint}, {"node-ip", r.NodeIP}, {"max-pods", r.MaxPods}, {"dns", r.ClusterDNS}} {
		if v.value.IsSet() {
			fmt.Fprintf(&b, "%s: %s%s\n", v.name, v.value.Text, positionText(v.value.At))
		}
	}
	for _, t := range r.Taints {
		fmt.Fprintf(&b, "taint: %s%s\n", t.Taint, positionText(t.At))
	}
	for _, l := range r.Labels {
		fmt.Fprintf(&b, "label: %s=%s%s\n", l.Key, l.Value, positionText(l.At))
	}
	for _, f := range r.Kubelet.Flags {
		fmt.Fprintf(&b, "flag: %s\n", f)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Kubelet.Config)) {
		value, err := json.Marshal(r.Kubelet.Config[name])
		if err != nil {
			value = []byte(err.Error())
		}
		fmt.Fprintf(&b, "config: %s=%s\n", name, value)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s, %s, %s:\n  %s\n", p.Kind, p.Certainty, p.Harm, p)
	}
	return b.String()
}

func positionText(p userdata.Position) string {
	if p == (userdata.Position{}) {
		return ""
	}
	return " (" + p.String() + ")"
}

// TestCorpus: for every form of user data, and every mistake that was observed, the reading is as in the sample's file.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) < 60 && !*rewrite {
		t.Fatalf("the corpus has %d files, want at least 60 (error %v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := parse(t, file)
			got := s.read(t)
			if s.about == "" {
				t.Error("the sample has no description: want lines that begin with #")
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.head+ruler+s.body+ruler+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("the reading differs (-want +got):\n%s", diff)
			}
		})
	}
}
