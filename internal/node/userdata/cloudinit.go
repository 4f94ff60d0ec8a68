package userdata

import (
	"errors"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// asType is errors.As, with its answer alone.
func asType[T error](err error, to *T) bool { return errors.As(err, to) }

// cloudInit reads user data as an image with cloud-init does, and with nodeadm if it is AL2023.
func (r *reader) cloudInit(t text) {
	all := r.parts(t)
	if r.in.Family != familyCustom && r.in.Data != nil {
		r.ours = len(all)
	}
	r.judgeForm(all)
	var configs []text
	for _, p := range all {
		if p.kind == typeNodeConfig {
			configs = append(configs, p.text)
		}
	}
	if r.system() != catalog.AL2 {
		r.nodeConfigs(configs)
	}
	for _, p := range all {
		switch p.kind {
		case typeScript, typeBoothook:
			r.script(p)
		case typeCloudConfig:
			r.cloudConfig(p)
		}
	}
}

// judgeForm looks for what the image does not read at all.
func (r *reader) judgeForm(all []part) {
	for _, p := range all {
		switch p.kind {
		case typeScript, typeBoothook, typeCloudConfig, "text/x-include-url", "text/x-include-once-url", "text/cloud-config-archive",
			"text/part-handler", "text/jinja2":
		case typeNodeConfig:
			if r.system() == catalog.AL2 {
				r.nodeConfigOnAL2(p.text.at)
			}
		default:
			r.unknownPart(p)
		}
	}
}

// nodeConfigOnAL2 reports a NodeConfig that an image of AL2 gets.
func (r *reader) nodeConfigOnAL2(at Spot) {
	r.problem(OtherFamily, Certain, r.scriptHarm(), at, "a NodeConfig is for nodeadm of AL2023; an image of AL2 does not read it").
		with("call "+bySh+" in a shell script, or choose an image of AL2023", "")
}

// unknownPart says what a part that nothing reads looks like.
func (r *reader) unknownPart(p part) {
	harm := r.scriptHarm()
	switch formOf(p.text.body) {
	case FormNothing:
	case FormBottlerocket:
		r.problem(OtherFamily, Certain, harm, p.text.at, "these are settings of Bottlerocket, which no other image reads").
			with("set spec.amiFamily to Bottlerocket, or write it for "+r.in.Family, "")
	case FormPowerShell:
		r.problem(OtherFamily, Certain, harm, p.text.at, "this is for Windows, and no other image runs it").
			with("set spec.amiFamily to one of Windows, or write it for "+r.in.Family, "")
	default:
		if p.kind == typePlain && strings.HasPrefix(p.text.body, "#include") {
			r.opaque = append(r.opaque, "the user data includes more from elsewhere")
			return
		}
		r.problem(UnknownPart, Certain, harm, p.text.at, "nothing on the instance reads this: it is no shell script, which begins with #!, no cloud-config and no NodeConfig").
			with("begin it as what it is, or give the part its Content-Type", "")
	}
}

// cloudConfig reads the commands and the files of a cloud-config.
func (r *reader) cloudConfig(p part) {
	var doc struct {
		RunCommands  []any `json:"runcmd"`
		BootCommands []any `json:"bootcmd"`
		Files        []struct {
			Path     string `json:"path"`
			Content  string `json:"content"`
			Encoding string `json:"encoding"`
		} `json:"write_files"`
	}
	if err := yaml.Unmarshal([]byte(p.text.body), &doc); err != nil {
		r.problem(SettingInvalid, Certain, r.scriptHarm(), spotOfYAML(err, p.text.at), "the cloud-config cannot be read%s, so none of it is done", plainYAML(err)).
			with("fix its YAML", "")
		return
	}
	spots := spotsOfYAML(p.text)
	for i, f := range doc.Files {
		spot := spots["write_files."+strconv.Itoa(i)+".content"]
		r.files[f.Path] = text{body: f.Content, at: spot, vague: f.Encoding != ""}
		r.wrote(f.Path, r.files[f.Path])
		if !setsProxies(r.files[f.Path]) {
			r.touch(f.Path, spot)
		}
	}
	r.commands("bootcmd", doc.BootCommands, spots, p.text.at)
	r.commands("runcmd", doc.RunCommands, spots, p.text.at)
}

// commands goes through the commands of a cloud-config: each a line of a shell, or a list of words.
func (r *reader) commands(field string, all []any, spots map[string]Spot, at Spot) {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	first := len(r.out.Problems)
	starts := len(r.starts)
	for _, one := range all {
		switch one := one.(type) {
		case string:
			script.WriteString(one + "\n")
		case []any:
			var line []string
			for _, w := range one {
				if s, ok := w.(string); ok {
					line = append(line, "'"+strings.ReplaceAll(s, "'", `'\''`)+"'")
				}
			}
			script.WriteString(strings.Join(line, " ") + "\n")
		}
	}
	r.script(part{kind: typeScript, text: text{body: script.String(), at: at}})
	// Lines of the script that was put together are none of the user's.
	spot := either(spots[field], at)
	for i := first; i < len(r.out.Problems); i++ {
		r.out.Problems[i].At = spot
	}
	for i := starts; i < len(r.starts); i++ {
		s := &r.starts[i]
		s.at, s.cluster.At, s.endpoint.At, s.ca.At = spot, spot, spot, spot
		for j := range s.flags {
			s.flags[j].at = spot
		}
		for name := range s.spots {
			s.spots[name] = spot
		}
	}
}
