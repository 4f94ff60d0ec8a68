package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// chartFolder is where the chart is in a checkout.
const chartFolder = "deploy/charts/joiner"

// chart packs the Helm chart of the release to out/joiner-VERSION.tgz, as `helm package` does; the same sources result
// in the same bytes. The chart's version is the release without the "v", and its appVersion is the release.
func (o *options) chart() error {
	version := strings.TrimPrefix(o.release, "v")
	head, err := os.ReadFile(filepath.Join(o.root, chartFolder, "Chart.yaml"))
	if err != nil {
		return err
	}
	if head, err = released(head, version, o.release); err != nil {
		return err
	}
	data, err := o.packChart(head)
	if err != nil {
		return err
	}
	file := "joiner-" + version + ".tgz"
	if err := os.WriteFile(filepath.Join(o.out, file), data, 0o644); err != nil {
		return err
	}
	say("chart %s", file)
	return nil
}

// released returns Chart.yaml with the version of the release. A file without exactly one version line and one
// appVersion line is an error.
func released(head []byte, version, appVersion string) ([]byte, error) {
	for key, value := range map[string]string{"version": version, "appVersion": appVersion} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if len(line.FindAll(head, -1)) != 1 {
			return nil, fmt.Errorf("Chart.yaml must have exactly one line %q", key+":")
		}
		head = line.ReplaceAllLiteral(head, []byte(key+": "+value))
	}
	return head, nil
}

// packChart packs the chart's files below the folder "joiner", sorted by name after Chart.yaml, which has the text
// head. It leaves out the files that match a pattern in .helmignore.
func (o *options) packChart(head []byte) ([]byte, error) {
	root := filepath.Join(o.root, chartFolder)
	ignored, err := os.ReadFile(filepath.Join(root, ".helmignore"))
	if err != nil {
		return nil, err
	}
	patterns := strings.Fields(string(ignored))
	entries := []entry{{name: "joiner/Chart.yaml", data: head}}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		isIgnored := slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, path.Base(name))
			return err == nil && ok
		})
		if name == "Chart.yaml" || isIgnored {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: "joiner/" + name, data: data})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pack(entries)
}
