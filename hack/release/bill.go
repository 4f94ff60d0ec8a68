package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// bill is a software bill of materials in the format CycloneDX 1.5.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     billMetadata `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type billMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf returns the bill of materials of a Go binary as JSON, from the build information in the binary. The same
// binary results in the same bytes.
func billOf(binary, release string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", binary, err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	program := componentOf("application", &debug.Module{Path: info.Main.Path, Version: release})
	program.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bill{
		Format: "CycloneDX", SpecVersion: "1.5", Version: 1, SerialNumber: serial(sum), Metadata: billMetadata{program},
		Components: []component{componentOf("library", &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := componentOf("library", m)
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}} // not in Hashes, which are of one file
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	root := dependency{Ref: program.Ref}
	for _, c := range b.Components {
		root.DependsOn = append(root.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{root}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// componentOf returns the component of a module. kind is "application" or "library".
func componentOf(kind string, m *debug.Module) component {
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	return component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
}

// serial returns a UUID that is made from the checksum of the binary.
func serial(sum [32]byte) string {
	u := [16]byte(sum[:16])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // RFC 9562: version 8, custom; its variant
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
