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

const chartFolder = "deploy/charts/joiner"

// writeChart packs the Helm chart of the release to out/joiner-VERSION.tgz, as `helm package` does. The same sources
// result in the same bytes. The chart's version is the release without the "v", and its appVersion is the release.
func (o *options) writeChart() error {
	version := strings.TrimPrefix(o.release, "v")
	chartYAML, err := os.ReadFile(filepath.Join(o.root, chartFolder, "Chart.yaml"))
	if err != nil {
		return err
	}
	if chartYAML, err = withVersion(chartYAML, version, o.release); err != nil {
		return err
	}
	data, err := o.packChart(chartYAML)
	if err != nil {
		return err
	}
	file := "joiner-" + version + ".tgz"
	if err := os.WriteFile(filepath.Join(o.out, file), data, 0o644); err != nil {
		return err
	}
	logf("chart %s", file)
	return nil
}

// withVersion replaces the version and the appVersion of Chart.yaml. A file without exactly one line of each is an
// error.
func withVersion(chartYAML []byte, version, appVersion string) ([]byte, error) {
	for key, value := range map[string]string{"version": version, "appVersion": appVersion} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if len(line.FindAll(chartYAML, -1)) != 1 {
			return nil, fmt.Errorf("Chart.yaml must have exactly one line %q", key+":")
		}
		chartYAML = line.ReplaceAllLiteral(chartYAML, []byte(key+": "+value))
	}
	return chartYAML, nil
}

// packChart packs the chart's files into the folder "joiner" of an archive: first Chart.yaml, with the content
// chartYAML, then the other files, sorted by name. It leaves out the files that match a pattern in .helmignore.
func (o *options) packChart(chartYAML []byte) ([]byte, error) {
	root := filepath.Join(o.root, chartFolder)
	ignored, err := os.ReadFile(filepath.Join(root, ".helmignore"))
	if err != nil {
		return nil, err
	}
	patterns := strings.Fields(string(ignored))
	entries := []entry{{name: "joiner/Chart.yaml", data: chartYAML}}
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
