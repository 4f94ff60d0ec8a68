// Package cloudinit reads user data that cloud-init runs: MIME parts, scripts and cloud-config.
//
// In: a userdata.Reader and a text.
// Out: starts of the kubelet and problems, added to the Reader.
// Never: a value that may be a secret in a problem.
package cloudinit

import (
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
	"github.com/joiner-sh/joiner/internal/node/userdata/nodeadm"
	"github.com/joiner-sh/joiner/internal/node/userdata/shell"
)

// Read reads user data like cloud-init. Unless the image is AL2, it also reads the NodeConfigs like nodeadm.
func Read(r *userdata.Reader, t userdata.Text) {
	all := parts(r, t)
	if r.In.Family != userdata.FamilyCustom && r.In.Data != nil {
		r.OurPart = len(all) // Joiner appends its own part to the user's
	}
	reportUnreadParts(r, all)
	var configs []userdata.Text
	for _, p := range all {
		if p.Kind == userdata.TypeNodeConfig {
			configs = append(configs, p.Text)
		}
	}
	if r.System() != catalog.AL2 {
		nodeadm.Read(r, configs)
	}
	for _, p := range all {
		switch p.Kind {
		case userdata.TypeScript, userdata.TypeBoothook:
			shell.ReadScript(r, p)
		case userdata.TypeCloudConfig:
			readCloudConfig(r, p)
		}
	}
}

// reportUnreadParts reports parts of a type that no program of the image reads.
func reportUnreadParts(r *userdata.Reader, all []userdata.Part) {
	for _, p := range all {
		switch p.Kind {
		case userdata.TypeScript, userdata.TypeBoothook, userdata.TypeCloudConfig, "text/x-include-url",
			"text/x-include-once-url", "text/cloud-config-archive",
			"text/part-handler", "text/jinja2": // cloud-init processes these
		case userdata.TypeNodeConfig:
			if r.System() == catalog.AL2 {
				r.ReportNodeConfigOnAL2(p.Text.At)
			}
		default:
			r.ReportUnknownPart(p)
		}
	}
}

func readCloudConfig(r *userdata.Reader, p userdata.Part) {
	var doc struct {
		RunCommands  []any `json:"runcmd"`
		BootCommands []any `json:"bootcmd"`
		Files        []struct {
			Path     string `json:"path"`
			Content  string `json:"content"`
			Encoding string `json:"encoding"`
		} `json:"write_files"`
	}
	if err := yaml.Unmarshal([]byte(p.Text.Body), &doc); err != nil {
		r.Report(userdata.SettingInvalid, userdata.Certain, r.ScriptHarm(), userdata.YAMLErrorPosition(err, p.Text.At),
			"the cloud-config cannot be read%s, so none of it is done", userdata.SafeYAMLMessage(err)).
			Suggest("fix its YAML", "")
		return
	}
	positions := userdata.PositionsOfYAML(p.Text)
	for i, f := range doc.Files {
		position := positions["write_files."+strconv.Itoa(i)+".content"]
		// Encoded content is not decoded.
		r.Files[f.Path] = userdata.Text{Body: f.Content, At: position, Vague: f.Encoding != ""}
		kubelet.RecordWritten(r, f.Path, r.Files[f.Path])
		if !kubelet.SetsProxies(r.Files[f.Path]) { // proxies are judged later, from r.Written
			shell.RecordStartFileChange(r, f.Path, position)
		}
	}
	readCommands(r, "bootcmd", doc.BootCommands, positions, p.Text.At)
	readCommands(r, "runcmd", doc.RunCommands, positions, p.Text.At)
}

// readCommands reads the commands in a field of a cloud-config, bootcmd or runcmd. Each command is a line for a shell
// or a list of words. All problems and starts get the position of the field; if it is unknown, the position at.
func readCommands(r *userdata.Reader, field string, all []any, positions map[string]userdata.Position, at userdata.Position) {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	firstProblem := len(r.Out.Problems)
	firstStart := len(r.Starts)
	for _, command := range all {
		switch command := command.(type) {
		case string:
			script.WriteString(command + "\n")
		case []any:
			var line []string
			for _, word := range command {
				if s, ok := word.(string); ok {
					line = append(line, "'"+strings.ReplaceAll(s, "'", `'\''`)+"'")
				}
			}
			script.WriteString(strings.Join(line, " ") + "\n")
		}
	}
	shell.ReadScript(r, userdata.Part{Kind: userdata.TypeScript, Text: userdata.Text{Body: script.String(), At: at}})
	// The script is assembled from the commands, so its line numbers are not those of the user data.
	position := userdata.FirstKnown(positions[field], at)
	for i := firstProblem; i < len(r.Out.Problems); i++ {
		r.Out.Problems[i].At = position
	}
	for i := firstStart; i < len(r.Starts); i++ {
		s := &r.Starts[i]
		s.At, s.Cluster.At, s.Endpoint.At, s.CA.At = position, position, position, position
		for j := range s.Flags {
			s.Flags[j].At = position
		}
		for name := range s.Positions {
			s.Positions[name] = position
		}
	}
}
