// Command release builds the published files of Joiner. The same sources result in the same bytes. The files are:
//
//   - the container image for both architectures
//
//   - the archives of the command line, their checksums, and krew's manifest
//
//   - a bill of materials for each binary
//
//   - the Helm chart
//
//     go -C hack/release run . -o dist            everything, for the checkout that contains this command
//     go -C hack/release run . -o dist -only image -twice
//     go -C hack/release run . -o dist -only push -push ghcr.io/joiner-sh/joiner   push the image that exists already
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

type options struct {
	root     string // folder of the checkout
	out      string // output folder; deleted and created again, unless only is "push"
	release  string // version: "v0.2.0"
	revision string // the commit
	only     string // "image", "archives", "chart" or "push"; empty: image, archives and chart, and push if push is set
	twice    bool   // build the image again from a copy of the sources, and compare the digests
	push     string // repository for pushing the image; empty: do not push
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "../..", "the `FOLDER` of the checkout")
	flags.StringVar(&o.out, "o", "dist", "the output `FOLDER`, relative to the checkout; it is deleted first")
	flags.StringVar(&o.release, "release", "", "the version; empty: the version that hack/version prints")
	flags.StringVar(&o.revision, "revision", "", "the commit; empty: the commit that hack/version prints")
	flags.StringVar(&o.only, "only", "", "build only image, archives or chart, or push the image that is already in the output folder; empty: build all")
	flags.BoolVar(&o.twice, "twice", false, "build the image a second time from a copy of the sources, and fail if the digests differ")
	flags.StringVar(&o.push, "push", "", "push the image to this `REPOSITORY`, with the version as its tag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || !slices.Contains([]string{"", "image", "archives", "chart", "push"}, o.only) {
		return errors.New("-only must be image, archives, chart or push, and other arguments are not allowed")
	}
	if o.only == "push" && o.push == "" {
		return errors.New("-only push needs -push REPOSITORY")
	}
	if err := o.complete(ctx); err != nil {
		return err
	}
	if o.only == "push" {
		return o.pushImage(ctx)
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		make func() error
	}{
		{"image", func() error { return o.writeImage(ctx) }},
		{"archives", func() error { return o.writeArchives(ctx) }},
		{"chart", o.writeChart},
	} {
		if o.only != "" && o.only != part.name {
			continue
		}
		if err := part.make(); err != nil {
			return err
		}
	}
	if o.push != "" {
		return o.pushImage(ctx)
	}
	return nil
}

// complete makes the folders absolute. It sets the version and the commit to those of the checkout, unless the user has
// set them.
func (o *options) complete(ctx context.Context) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	o.root = root
	if !filepath.IsAbs(o.out) {
		o.out = filepath.Join(root, o.out)
	}
	if o.release != "" && o.revision != "" {
		return nil
	}
	text, err := exec.CommandContext(ctx, filepath.Join(root, "hack/version")).Output()
	if err != nil {
		return fmt.Errorf("run hack/version: %w", err)
	}
	for _, word := range strings.Fields(string(text)) {
		if v, ok := strings.CutPrefix(word, "main.release="); ok && o.release == "" {
			o.release = v
		}
		if v, ok := strings.CutPrefix(word, "main.revision="); ok && o.revision == "" {
			o.revision = v
		}
	}
	return nil
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
